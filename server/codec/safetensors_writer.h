/*
 * safetensors_writer.h - tensors in the safetensors format, into memory of known size.
 *
 * First the metadata, then an entry for each tensor, then the end of the header, then the data of each tensor
 * in the order of the entries. Data begins at a multiple of 8 bytes; tensors of 8 bytes an element first keep
 * every tensor aligned. The caller reserves the upper bound before; the writer never grows. Names and keys
 * are the caller's own: printable ASCII without quotes. One thread at a time.
 */
#ifndef ATTND_CODEC_SAFETENSORS_WRITER_H
#define ATTND_CODEC_SAFETENSORS_WRITER_H

#include "attn.h"

/* Bytes of what stands around one entry or one metadatum, at most, besides name, key and escaped text. */
#define SAFETENSORS_ENTRY_MAX 256
/* Bytes of the rest of a header, length and padding included. */
#define SAFETENSORS_FRAME_MAX 64

struct safetensors_writer {
	char *bytes;   /* malloc'd by safetensors_writer_open; the caller's */
	size_t length; /* bytes written */
	size_t room;
	size_t data;   /* bytes of the entries' data */
	bool members;  /* the header has some */
	bool metadata; /* its last member, not ended */
};

/* false when the system refuses memory. */
bool safetensors_writer_open(struct safetensors_writer *writer, size_t room);
/* One key of the metadata, before all entries; each quote and backslash of the text takes one byte more. */
void safetensors_writer_metadata(struct safetensors_writer *writer, const char *key, const char *text);
/* rank at most ATTN_MAX_RANK. */
void safetensors_writer_entry(struct safetensors_writer *writer, const char *name, attn_dtype dtype,
                              const size_t *dims, size_t rank);
void safetensors_writer_end_header(struct safetensors_writer *writer);
/* float32 as a float type; integers as I64. */
void safetensors_writer_floats(struct safetensors_writer *writer, attn_dtype dtype, const float *data,
                               size_t count);
void safetensors_writer_integers(struct safetensors_writer *writer, const int64_t *data, size_t count);

#endif
