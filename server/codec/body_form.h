/*
 * body_form.h - the forms in which requests and replies come, and their media types. Pure: any thread.
 */
#ifndef ATTND_CODEC_BODY_FORM_H
#define ATTND_CODEC_BODY_FORM_H

enum body_form { BODY_JSON, BODY_SAFETENSORS, BODY_FORMS };

/* Of one exchange. {0} is JSON both ways. */
struct body_forms {
	enum body_form request, reply;
};

/* "application/json", ... */
const char *body_form_media_type(enum body_form form);

#endif
