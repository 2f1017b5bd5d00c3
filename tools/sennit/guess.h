/* SPDX-License-Identifier: Apache-2.0 */
/* A first model file guessed from what sn_inspect_file() says of a data file. */
#ifndef SN_TOOLS_SENNIT_GUESS_H
#define SN_TOOLS_SENNIT_GUESS_H

#include <cJSON.h>

#include "core/status.h"

typedef enum guess_role { GUESS_UNUSED = 0, GUESS_INPUT, GUESS_OUTPUT, GUESS_LENGTHS } guess_role;
typedef enum guess_split { GUESS_WHOLE = 0, GUESS_TRAIN, GUESS_VALID, GUESS_TEST } guess_split;
typedef enum guess_form {
  GUESS_NUMBERS, /* [rows], [rows, F], ... */
  GUESS_WORDS,   /* [rows] strings, enums or booleans */
  GUESS_PACKED,  /* a group of values and offsets */
  GUESS_VLEN
} guess_form;

enum { GUESS_NAME = 64 };

/* A dataset, or a group of values and offsets. */
typedef struct guess_item {
  const char *path;      /* of the JSON */
  char base[GUESS_NAME]; /* the last part of the path without the words that name a split */
  char name[GUESS_NAME]; /* what it is called in the model file */
  guess_form form;
  guess_split split;
  guess_role role;
  const char *why; /* of an unused item; NULL: not worth a word */
  int64_t rows;
  int rank; /* with rows; of the values of a group */
  int64_t dims[8];
  bool integers;   /* by type */
  bool integral;   /* by value */
  int64_t classes; /* 0: not counted, or too many */
  double min, max, mean, deviation;
  int64_t bad;                      /* NaN and inf */
  const struct guess_item *lengths; /* of a padded input */
} guess_item;

typedef struct guess {
  const char *file;
  guess_item *items;
  size_t count;
  int64_t rows;             /* to train on */
  bool split;               /* the file names parts to train on */
  const guess_item *stream; /* instead of all else: one long row of ids */
} guess;

/* `json` must outlive the guess. DATA: nothing to read, or nothing to learn, and what to do. */
sn_status guess_make(const char *file, const cJSON *json, guess *out);
void guess_free(guess *g);

/* The part of `split` that belongs to a training item, or NULL. */
const guess_item *guess_twin(const guess *g, const guess_item *item, guess_split split);
bool guess_is_class(const guess_item *item);
/* Numbers that are 0 or 1, several to a row. */
bool guess_is_multilabel(const guess_item *item);
bool guess_is_set(const guess *g, const guess_item *item);
bool guess_is_ids(const guess_item *item);
/* [rows, height, width, channels], large enough to be looked at in windows. */
bool guess_is_image(const guess_item *item);
/* As an image, but with the channels before height and width. */
bool guess_is_channels_first(const guess_item *item);

/* The model file, with comments; the caller's own (sn__free). */
sn_status guess_write(const guess *g, char **out_text);

#endif
