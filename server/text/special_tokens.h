/*
 * special_tokens.h - the tokens that older tokenizer files name by their roles: bos_token, mask_token ...
 */
#ifndef ATTND_TEXT_SPECIAL_TOKENS_H
#define ATTND_TEXT_SPECIAL_TOKENS_H

#include "attn.h"

#include <jansson.h>

/* Where roles are looked for, in this order; each an object or NULL. */
struct special_tokens {
	const json_t *config;   /* tokenizer_config.json */
	const json_t *map;      /* special_tokens_map.json */
	const json_t *defaults; /* of the tokenizer's class: role to text */
	const json_t *vocabulary;
};

/* The text of the token of a role, NULL where there is none. */
const char *special_tokens_text(const struct special_tokens *tokens, const char *role);

/* The list that tokenizer.json calls added_tokens: those of added_tokens_decoder, or all roles, as far as
 * they are in the vocabulary. */
attn_status special_tokens_list(const struct special_tokens *tokens, json_t **out, attn_error *err);

#endif
