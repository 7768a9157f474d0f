/*
 * token_rows.h - lists of token numbers, one a sequence, which may differ in length.
 *
 * In JSON: [L], [B, L] with rows of any length, {"shape", "data"} or {"shape", "dtype", "base64"}; in a
 * safetensors body a tensor [L] or [B, L] of I64 or I32. One thread at a time.
 */
#ifndef ATTND_CODEC_TOKEN_ROWS_H
#define ATTND_CODEC_TOKEN_ROWS_H

#include "attn.h"
#include "codec/json_path.h"
#include "codec/json_scan.h"
#include "codec/tensor_room.h"

#include <jansson.h>
#include <stdint.h>

/* Rows that a shape may have of no tokens: they cost a body nothing. */
#define TOKEN_ROWS_EMPTY_MAX 65536

/* How the numbers stood in the body. */
enum token_form { TOKENS_NESTED, TOKENS_DATA, TOKENS_BYTES, TOKENS_TEXT };

struct token_rows {
	int64_t *values; /* [count], row after row; malloc'd */
	size_t count;
	size_t *lengths; /* [rows]; malloc'd, NULL: none were given */
	size_t rows;
	size_t length; /* of each row where there is no row */
	bool batched;  /* there is a dimension of rows; else one row */
	enum token_form form;
};

/* Reads the value at pointer; false with a problem noted and rows {0}, as it is before. Cleared by the
 * caller.
 */
bool token_rows_read(const json_t *value, const char *pointer, struct tensor_room *room,
                     struct token_rows *rows, struct problem *problem);
/* Moves plain tokens that a scan has found. */
bool token_rows_take(struct json_array *array, const char *pointer, struct tensor_room *room,
                     struct token_rows *rows, struct problem *problem);
bool token_rows_read_stored(const attn_stored_tensor *stored, const char *pointer, struct tensor_room *room,
                            struct token_rows *rows, struct problem *problem);
void token_rows_clear(struct token_rows *rows);

/* The JSON pointer of a row, and of a number in it. */
void token_rows_row_pointer(const struct token_rows *rows, const char *pointer, size_t row,
                            char out[JSON_POINTER_MAX]);
void token_rows_pointer(const struct token_rows *rows, const char *pointer, size_t row, size_t column,
                        char out[JSON_POINTER_MAX]);

#endif
