/*
 * coding.h - how the bytes of a body or a reply are compressed (RFC 9110 section 8.4.1).
 */
#ifndef ATTND_CODEC_CODING_H
#define ATTND_CODEC_CODING_H

enum coding {
	CODING_IDENTITY, /* not at all */
	CODING_GZIP,     /* RFC 1952 */
	CODING_DEFLATE,  /* RFC 1950, zlib; when reading also RFC 1951 alone, as some clients send it */
};

/* As it stands in Content-Encoding. */
static inline const char *coding_text(enum coding coding)
{
	return coding == CODING_GZIP ? "gzip" : coding == CODING_DEFLATE ? "deflate" : "identity";
}

#endif
