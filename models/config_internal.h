/* SPDX-License-Identifier: Apache-2.0 */
/* The key table of the model file and the pieces that work on it: one row a key, the same rows for
 * reading, --set, checking and writing. */
#ifndef SN_MODELS_CONFIG_INTERNAL_H
#define SN_MODELS_CONFIG_INTERNAL_H

#include <yaml.h>

#include "core/alloc.h"
#include "models/config.h"

typedef enum sn__key_type {
  SN__KEY_BOOL,
  SN__KEY_INT,     /* int64_t */
  SN__KEY_NUMBER,  /* double */
  SN__KEY_TEXT,    /* char * */
  SN__KEY_PATH,    /* char *, made absolute */
  SN__KEY_CHOICE,  /* an enum of the size of int */
  SN__KEY_INTS,    /* sn_config_ints */
  SN__KEY_TEXTS,   /* sn_config_texts */
  SN__KEY_SPAN,    /* sn_config_span */
  SN__KEY_WEIGHTS, /* sn_config_class_weights */
  SN__KEY_LABEL    /* char *, and its number in the double at `offset2` */
} sn__key_type;

typedef struct sn__choice {
  const char *name; /* NULL ends a list */
  int value;
} sn__choice;

typedef struct sn__key {
  const char *name;
  sn__key_type type;
  size_t offset, offset2;
  unsigned kinds;       /* bit k: the key is for kind k of the part; ~0u: for all */
  const char *fallback; /* the default as written in the file; NULL: empty */
  double min, max;      /* of numbers and of the items of lists */
  bool open_min, open_max;
  const sn__choice *choices;
  const char *doc;
} sn__key;

/* A part of the file whose keys are ours: the struct starts with an sn_config_mark. */
typedef struct sn__part {
  const char *title;    /* "input", "train" */
  const char *selector; /* the key that says which kind of part it is ("kind"); NULL: none */
  size_t selector_offset;
  const char *const *kind_names; /* names of the bits of `kinds` */
  const sn__key *keys;
  size_t count;
} sn__part;

extern const sn__part sn__part_input, sn__part_output, sn__part_trunk, sn__part_train;

enum {
  SN__CONFIG_FILE_MAX = 1 << 20,
  SN__CONFIG_NAME_MAX = 64,
  SN__CONFIG_MODULES_MAX = 256, /* inputs, outputs */
  SN__CONFIG_PINS_MAX = 4096,
  SN__CONFIG_LAYERS_MAX = 64,    /* items of a list of widths */
  SN__CONFIG_CLASSES_MAX = 4096, /* items of a list of names or weights */
  SN__CONFIG_ITEMS_MAX = 50000,  /* list items in one file, aliases counted each time */
  SN__CONFIG_BRACKETS_MAX = 4096,
  SN__CONFIG_ANCHORS_MAX = 100 /* libyaml looks each alias up along a list of anchors */
};

/* The kind a part has, as a bit number; 0 when the part has no selector. */
unsigned sn__part_kind(const sn__part *part, const void *object);
const sn__key *sn__part_find(const sn__part *part, const char *name, unsigned kind);
/* Puts the default of each key of the part's kind that was not given. */
sn_status sn__part_defaults(sn_model_config *config, const sn__part *part, void *object);

static inline void *sn__key_at(void *object, const sn__key *key) {
  return (char *)object + key->offset;
}
static inline const void *sn__key_at_const(const void *object, const sn__key *key) {
  return (const char *)object + key->offset;
}

/* ---- reading ------------------------------------------------------------------------------- */

typedef struct sn__reader {
  sn_model_config *config;
  const char *file;       /* printable */
  const char *assignment; /* of --set; NULL: a file is read */
  yaml_document_t *document;
  size_t items_left;
  char where[256];
  char shown[4][72]; /* rotating, for sn__shown() */
  unsigned next_shown;
} sn__reader;

/* "at model.yaml:14:5" or "in --set train.batch=0"; good until the next call. */
const char *sn__where(sn__reader *reader, const yaml_node_t *node);
/* A user's text made fit for a message: printable, quoted, at most 64 bytes. */
const char *sn__shown(sn__reader *reader, const char *text);

/* Reads `node` into the key's field. */
sn_status sn__value_read(sn__reader *reader, const sn__key *key, void *object,
                         const yaml_node_t *node);
/* The scalar's text; refuses lists, maps, nothing, NUL bytes and foreign tags. `what` names it. */
sn_status sn__scalar_text(sn__reader *reader, const char *what, const yaml_node_t *node,
                          const char **out_text);
bool sn__node_is_null(const yaml_node_t *node);

bool sn__parse_int(const char *text, int64_t *out);
bool sn__parse_number(const char *text,
                      double *out); /* finite, "1e-3" and the like; no hex, no nan */

/* "a, b or c". */
void sn__choice_words(const sn__choice *choices, char *out, size_t size);

/* The first kind a key is for, for messages; "" when it is for all. */
void sn__kind_words(const sn__part *part, unsigned kinds, char *out, size_t size);

char *sn__config_strdup(sn_model_config *config, const char *text);
void *sn__config_alloc(sn_model_config *config, size_t count, size_t size);
bool sn__config_name_ok(const char *name);

/* Find by name, or add. */
sn_status sn__config_add_pin(sn_model_config *config, const char *module, sn_model_pin **out_pin);
sn_status sn__config_add_source(sn_model_config *config, sn_model_split *split, const char *name,
                                sn_model_source **out_source);

/* ---- checking ------------------------------------------------------------------------------ */

/* Names of the metrics of a task, NULL at the end. */
const char *const *sn__task_metrics(sn_config_task task);

#endif
