/* SPDX-License-Identifier: Apache-2.0 */
/* The config as canonical YAML: one row of the table is one line, in the table's order. */
#include <ctype.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "models/config_internal.h"

typedef struct writer {
  char *text;
  size_t length, capacity;
  bool failed;
  unsigned flags;
} writer;

static void put_bytes(writer *w, const char *bytes, size_t count) {
  if (w->failed || count == 0) return;
  size_t need;
  if (!sn__size_add(w->length, count, &need) || !sn__size_add(need, 1, &need) ||
      !sn__grow((void **)&w->text, &w->capacity, need, 1) || w->text == NULL) {
    w->failed = true;
    return;
  }
  memcpy(w->text + w->length, bytes, count);
  w->length += count;
  w->text[w->length] = '\0';
}

static void put(writer *w, const char *text) {
  put_bytes(w, text, text != NULL ? strlen(text) : 0);
}

static void put_int(writer *w, int64_t value) {
  char text[32];
  snprintf(text, sizeof text, "%lld", (long long)value);
  put(w, text);
}

/* The shortest digits that read back to the same number. */
static void put_number(writer *w, double value) {
  char text[40];
  for (int digits = 6; digits <= 17; digits++) {
    double back;
    snprintf(text, sizeof text, "%.*g", digits, value);
    for (char *c = text; *c != '\0'; c++) {
      if (strchr("0123456789eE+-", *c) == NULL) *c = '.'; /* the locale's point */
    }
    if (sn__parse_number(text, &back) && back == value) break;
  }
  put(w, text);
}

/* Plain where no reader could take it for anything but this text. */
static bool is_plain(const char *text) {
  static const char *const words[] = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"};
  size_t length = strlen(text);
  if (length == 0 || (!isalpha((unsigned char)text[0]) && text[0] != '/' && text[0] != '_'))
    return false;
  for (size_t i = 0; i < length; i++) {
    if (!isalnum((unsigned char)text[i]) && strchr("_/.:-", text[i]) == NULL) return false;
  }
  if (text[length - 1] == ':') return false;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strcasecmp(text, words[i]) == 0) return false;
  }
  return true;
}

static void put_text(writer *w, const char *text) {
  if (is_plain(text)) {
    put(w, text);
    return;
  }
  put(w, "\"");
  for (const char *c = text; *c != '\0'; c++) {
    unsigned char byte = (unsigned char)*c;
    char escaped[8];
    if (byte == '"' || byte == '\\')
      snprintf(escaped, sizeof escaped, "\\%c", byte);
    else if (byte < 0x20 || byte == 0x7f)
      snprintf(escaped, sizeof escaped, "\\x%02x", byte);
    else
      snprintf(escaped, sizeof escaped, "%c", byte);
    put(w, escaped);
  }
  put(w, "\"");
}

static void put_span(writer *w, const sn_config_span *span) {
  put_number(w, span->count);
  if (span->count != 0 || span->epochs) put(w, span->epochs ? " epochs" : " steps");
}

static void put_weights(writer *w, const sn_config_class_weights *weights) {
  bool map = weights->mode == SN_CONFIG_CLASS_WEIGHTS_MAP;
  if (weights->mode == SN_CONFIG_CLASS_WEIGHTS_NONE ||
      weights->mode == SN_CONFIG_CLASS_WEIGHTS_BALANCED) {
    put(w, weights->mode == SN_CONFIG_CLASS_WEIGHTS_NONE ? "none" : "balanced");
    return;
  }
  put(w, map ? "{" : "[");
  for (size_t i = 0; i < weights->count; i++) {
    if (i > 0) put(w, ", ");
    if (map) {
      put_text(w, weights->names[i]);
      put(w, ": ");
    }
    put_number(w, weights->items[i]);
  }
  put(w, map ? "}" : "]");
}

static void put_choice(writer *w, const sn__key *key, const void *field) {
  int value;
  memcpy(&value, field, sizeof value);
  for (const sn__choice *c = key->choices; c->name != NULL; c++) {
    if (c->value != value) continue;
    put(w, c->name);
    return;
  }
  put(w, key->fallback != NULL ? key->fallback : key->choices[0].name);
}

static void put_value(writer *w, const sn__key *key, const void *object) {
  const void *field = sn__key_at_const(object, key);
  switch (key->type) {
  case SN__KEY_BOOL: put(w, *(const bool *)field ? "true" : "false"); return;
  case SN__KEY_INT: put_int(w, *(const int64_t *)field); return;
  case SN__KEY_NUMBER: put_number(w, *(const double *)field); return;
  case SN__KEY_CHOICE: put_choice(w, key, field); return;
  case SN__KEY_SPAN: put_span(w, field); return;
  case SN__KEY_WEIGHTS: put_weights(w, field); return;
  case SN__KEY_TEXT:
  case SN__KEY_PATH:
  case SN__KEY_LABEL: put_text(w, *(char *const *)field); return;
  case SN__KEY_INTS:
  case SN__KEY_TEXTS: break;
  }
  const sn_config_ints *ints = field;
  const sn_config_texts *texts = field;
  size_t count = key->type == SN__KEY_INTS ? ints->count : texts->count;
  put(w, "[");
  for (size_t i = 0; i < count; i++) {
    if (i > 0) put(w, ", ");
    if (key->type == SN__KEY_INTS)
      put_int(w, ints->items[i]);
    else
      put_text(w, texts->items[i]);
  }
  put(w, "]");
}

/* ---- parts ---------------------------------------------------------------------------------- */

static bool is_default(writer *w, const sn__key *key, const void *object) {
  writer value = {0}, standard = {0};
  const void *field = sn__key_at_const(object, key);
  bool pointer =
      key->type == SN__KEY_TEXT || key->type == SN__KEY_PATH || key->type == SN__KEY_LABEL;
  if (pointer) return *(char *const *)field == NULL;
  put_value(&value, key, object);
  if (key->type == SN__KEY_INTS || key->type == SN__KEY_TEXTS) {
    put(&standard, "[");
    put(&standard, key->fallback != NULL ? key->fallback : "");
    put(&standard, "]");
  } else {
    put(&standard, key->fallback != NULL ? key->fallback : "none");
  }
  w->failed = w->failed || value.failed || standard.failed;
  bool same = w->failed || strcmp(value.text, standard.text) == 0;
  sn__free(value.text);
  sn__free(standard.text);
  return same;
}

static bool is_written(writer *w, const sn__part *part, const void *object, size_t row) {
  const sn__key *key = &part->keys[row];
  const sn_config_mark *mark = object;
  unsigned kind = sn__part_kind(part, object);
  if ((key->kinds & (1u << kind)) == 0) return false;
  bool pointer =
      key->type == SN__KEY_TEXT || key->type == SN__KEY_PATH || key->type == SN__KEY_LABEL;
  if (pointer && *(char *const *)sn__key_at_const(object, key) == NULL) return false;
  if ((mark->given & (UINT64_C(1) << row)) != 0 || (w->flags & SN_CONFIG_ALL) != 0) return true;
  bool selects = part->selector != NULL && strcmp(key->name, part->selector) == 0;
  return selects || !is_default(w, key, object);
}

static void put_part(writer *w, const sn__part *part, const void *object, const char *indent) {
  for (size_t i = 0; i < part->count; i++) {
    if (!is_written(w, part, object, i)) continue;
    const sn__key *key = &part->keys[i];
    size_t start = w->length;
    put(w, indent);
    put(w, key->name);
    put(w, ": ");
    put_value(w, key, object);
    if ((w->flags & SN_CONFIG_COMMENTS) != 0) {
      size_t width = w->length - start;
      put_bytes(w, "                                        ", width < 38 ? 38 - width : 1);
      put(w, "# ");
      put(w, key->doc);
    }
    put(w, "\n");
  }
}

static void put_named(writer *w, const sn__part *part, const char *name, const void *object) {
  put(w, "  ");
  put_text(w, name);
  put(w, ":\n");
  put_part(w, part, object, "    ");
}

static void put_data(writer *w, const sn_model_config *config) {
  static const char *const splits[] = {"train", "valid", "test"};
  bool any = false;
  for (size_t s = 0; s < SN_CONFIG_SPLIT_COUNT; s++) {
    const sn_model_split *split = &config->data[s];
    if (split->count == 0) continue;
    if (!any) put(w, "data:\n");
    any = true;
    put(w, "  ");
    put(w, splits[s]);
    put(w, ":\n");
    for (size_t i = 0; i < split->count; i++) {
      const sn_model_source *source = &split->sources[i];
      put(w, "    ");
      put_text(w, source->name);
      put(w, source->lengths != NULL ? ": {path: " : ": ");
      put_text(w, source->path);
      if (source->lengths != NULL) {
        put(w, ", lengths: ");
        put_text(w, source->lengths);
        put(w, "}");
      }
      put(w, "\n");
    }
  }
}

/* A part of which nothing is written must not leave "train:" with nothing under it. */
static void put_section(writer *w, const sn__part *part, const void *object) {
  size_t start = w->length;
  put(w, part->title);
  put(w, ":\n");
  size_t head = w->length;
  put_part(w, part, object, "  ");
  if (w->length == head && !w->failed) w->length = start;
}

sn_status sn_model_config_write(const sn_model_config *config, unsigned flags, char **out_text) {
  writer w = {.flags = flags};
  if (config->input_count > 0) put(&w, "inputs:\n");
  for (size_t i = 0; i < config->input_count; i++) {
    put_named(&w, &sn__part_input, config->inputs[i].name, &config->inputs[i]);
  }
  if (config->output_count > 0) put(&w, "outputs:\n");
  for (size_t i = 0; i < config->output_count; i++) {
    put_named(&w, &sn__part_output, config->outputs[i].name, &config->outputs[i]);
  }
  put_section(&w, &sn__part_trunk, &config->trunk);
  put_section(&w, &sn__part_train, &config->train);
  if (config->pin_count > 0) put(&w, "placement:\n");
  for (size_t i = 0; i < config->pin_count; i++) {
    put(&w, "  ");
    put_text(&w, config->pins[i].module);
    put(&w, ": ");
    put_text(&w, config->pins[i].device);
    put(&w, "\n");
  }
  put_data(&w, config);
  if (w.failed) {
    sn__free(w.text);
    return sn_status_out_of_memory();
  }
  w.text[w.length] = '\0'; /* an empty last section was taken back */
  *out_text = w.text;
  return SN_OK;
}
