/*
 * datadir.h - where the embedded default model lies: beside the program, installed or as built.
 */
#ifndef ATTND_DATADIR_H
#define ATTND_DATADIR_H

#include <stddef.h>

/* The directory of models that belongs to the program at `program` (NULL: this one): the first there is of
 * ../share/attnd/models (installed), ../config/models (build/attnd) and ../../config/models
 * (build/NAME/attnd), from the folder of the program. malloc'd; NULL with the reason in error. */
char *datadir_models(const char *program, char *error, size_t error_size);

#endif
