/* SPDX-License-Identifier: Apache-2.0 */
/* One value of the model file: from a YAML node, or from a default's text, into its field. */
#include <ctype.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/nearest.h"
#include "models/config_internal.h"

/* ---- numbers, whatever the program's locale ------------------------------------------------- */

bool sn__parse_int(const char *text, int64_t *out) {
  const char *digits = text + (*text == '-' || *text == '+');
  size_t length = strlen(digits);
  if (length == 0 || length > 18 || strspn(digits, "0123456789") != length) return false;
  int64_t value = 0;
  for (size_t i = 0; i < length; i++) {
    value = 10 * value + (digits[i] - '0');
  }
  *out = *text == '-' ? -value : value;
  return true;
}

bool sn__parse_number(const char *text, double *out) {
  const char *digits = text + (*text == '-' || *text == '+');
  if (!isdigit((unsigned char)*digits) && *digits != '.') return false;
  if (strspn(text, "0123456789.eE+-") != strlen(text)) return false;
  locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (c_locale == (locale_t)0) return false;
  char *end = NULL;
  double value = strtod_l(text, &end, c_locale);
  freelocale(c_locale);
  if (end == text || *end != '\0' || !isfinite(value)) return false;
  *out = value;
  return true;
}

static bool parse_bool(const char *text, bool *out) {
  static const char *const yes[] = {"true", "yes", "on"}, *const no[] = {"false", "no", "off"};
  for (size_t i = 0; i < 3; i++) {
    if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0) {
      *out = strcasecmp(text, yes[i]) == 0;
      return true;
    }
  }
  return false;
}

/* "500 steps", "2 epochs", "1 epoch"; a bare 0 is off. A bare number says no unit: not read. */
static bool parse_span(const char *text, sn_config_span *out) {
  char number[32];
  size_t length = strcspn(text, " ");
  if (length >= sizeof number) return false;
  memcpy(number, text, length);
  number[length] = '\0';
  const char *unit = text + length + strspn(text + length, " ");
  sn_config_span span = {0};
  if (!sn__parse_number(number, &span.count)) return false;
  span.epochs = strcmp(unit, "epochs") == 0 || strcmp(unit, "epoch") == 0;
  bool steps = strcmp(unit, "steps") == 0 || strcmp(unit, "step") == 0;
  if (!span.epochs && !steps && !(*unit == '\0' && span.count == 0)) return false;
  if (steps && span.count != floor(span.count)) return false;
  *out = span;
  return true;
}

/* ---- words for messages ---------------------------------------------------------------------- */

void sn__choice_words(const sn__choice *choices, char *out, size_t size) {
  size_t used = 0;
  out[0] = '\0';
  for (const sn__choice *c = choices; c->name != NULL && used < size; c++) {
    const char *join = c == choices ? "" : c[1].name == NULL ? " or " : ", ";
    used += (size_t)snprintf(out + used, size - used, "%s%s", join, c->name);
  }
}

static bool in_range(const sn__key *key, double value) {
  bool low = key->open_min ? value > key->min : value >= key->min;
  bool high = key->open_max ? value < key->max : value <= key->max;
  return low && high;
}

static void range_words(const sn__key *key, char *out, size_t size) {
  bool has_max = key->max < 1e29;
  if (!has_max)
    snprintf(out, size, "%s %.10g", key->open_min ? "more than" : "at least", key->min);
  else if (key->open_max)
    snprintf(out, size, "from %.10g to less than %.10g", key->min, key->max);
  else if (key->open_min)
    snprintf(out, size, "more than %.10g, at most %.10g", key->min, key->max);
  else
    snprintf(out, size, "from %.10g to %.10g", key->min, key->max);
}

/* ---- scalars --------------------------------------------------------------------------------- */

static const char *node_words(const yaml_node_t *node) {
  switch (node->type) {
  case YAML_SEQUENCE_NODE: return "a list";
  case YAML_MAPPING_NODE: return "a map";
  case YAML_SCALAR_NODE: return sn__node_is_null(node) ? "nothing" : "a single value";
  default: return "nothing";
  }
}

bool sn__node_is_null(const yaml_node_t *node) {
  if (node->type != YAML_SCALAR_NODE || node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
    return node->type == YAML_NO_NODE;
  const char *text = (const char *)node->data.scalar.value;
  return *text == '\0' || strcmp(text, "~") == 0 || strcasecmp(text, "null") == 0;
}

sn_status sn__scalar_text(sn__reader *reader, const char *what, const yaml_node_t *node,
                          const char **out_text) {
  if (node->type != YAML_SCALAR_NODE || sn__node_is_null(node))
    return sn_status_make(SN_CODE_CONFIG, "'%s' is %s %s; give one value", what, node_words(node),
                          sn__where(reader, node));
  const char *text = (const char *)node->data.scalar.value;
  if (strlen(text) != node->data.scalar.length)
    return sn_status_make(SN_CODE_CONFIG, "'%s' holds a NUL byte %s; take it out", what,
                          sn__where(reader, node));
  const char *tag = (const char *)node->tag;
  if (tag != NULL && strncmp(tag, "tag:yaml.org,2002:", 18) != 0)
    return sn_status_make(SN_CODE_CONFIG, "'%s' has the tag %s %s; tags are not used here", what,
                          sn__shown(reader, tag), sn__where(reader, node));
  *out_text = text;
  return SN_OK;
}

static sn_status wrong_type(sn__reader *reader, const sn__key *key, const yaml_node_t *node,
                            const char *text, const char *needs) {
  return sn_status_make(SN_CODE_CONFIG, "'%s' is %s %s; %s is needed", key->name,
                        sn__shown(reader, text), sn__where(reader, node), needs);
}

static sn_status read_choice(sn__reader *reader, const sn__key *key, void *field,
                             const yaml_node_t *node, const char *text) {
  const char *names[32];
  size_t count = 0;
  for (const sn__choice *c = key->choices; c->name != NULL; c++) {
    if (strcmp(text, c->name) == 0) {
      memcpy(field, &c->value, sizeof c->value);
      return SN_OK;
    }
    if (count < 32) names[count++] = c->name;
  }
  const char *near = sn__nearest(text, names, count);
  char words[200];
  sn__choice_words(key->choices, words, sizeof words);
  if (near != NULL)
    return sn_status_make(SN_CODE_CONFIG, "'%s' is %s %s; did you mean '%s'? (%s)", key->name,
                          sn__shown(reader, text), sn__where(reader, node), near, words);
  return sn_status_make(SN_CODE_CONFIG, "'%s' is %s %s; use %s", key->name, sn__shown(reader, text),
                        sn__where(reader, node), words);
}

static sn_status read_int(sn__reader *reader, const sn__key *key, int64_t *field,
                          const yaml_node_t *node, const char *text) {
  int64_t value;
  char words[100], needs[140];
  range_words(key, words, sizeof words);
  snprintf(needs, sizeof needs, "a whole number %s", words);
  if (!sn__parse_int(text, &value) || !in_range(key, (double)value))
    return wrong_type(reader, key, node, text, needs);
  *field = value;
  return SN_OK;
}

static sn_status read_number(sn__reader *reader, const sn__key *key, double *field,
                             const yaml_node_t *node, const char *text) {
  double value;
  char words[100], needs[140];
  range_words(key, words, sizeof words);
  snprintf(needs, sizeof needs, "a number %s", words);
  if (!sn__parse_number(text, &value) || !in_range(key, value))
    return wrong_type(reader, key, node, text, needs);
  *field = value;
  return SN_OK;
}

static sn_status read_span(sn__reader *reader, const sn__key *key, sn_config_span *field,
                           const yaml_node_t *node, const char *text) {
  sn_config_span span;
  if (!parse_span(text, &span) || !in_range(key, span.count))
    return wrong_type(reader, key, node, text, "a time such as '500 steps' or '2 epochs'");
  *field = span;
  return SN_OK;
}

static sn_status read_text(sn__reader *reader, const sn__key *key, char **field,
                           const yaml_node_t *node, const char *text) {
  if (*text == '\0')
    return sn_status_make(SN_CODE_CONFIG, "'%s' is empty %s; give it a value or take it out",
                          key->name, sn__where(reader, node));
  char *copy = NULL;
  if (key->type == SN__KEY_PATH && *text != '/') {
    copy = sn__config_alloc(reader->config, strlen(text) + 2, 1);
    if (copy != NULL) {
      copy[0] = '/';
      memcpy(copy + 1, text, strlen(text) + 1);
    }
  } else {
    copy = sn__config_strdup(reader->config, text);
  }
  if (copy == NULL) return sn_status_out_of_memory();
  *field = copy;
  return SN_OK;
}

static sn_status read_scalar(sn__reader *reader, const sn__key *key, void *object,
                             const yaml_node_t *node, const char *text) {
  void *field = sn__key_at(object, key);
  switch (key->type) {
  case SN__KEY_BOOL:
    if (!parse_bool(text, field)) return wrong_type(reader, key, node, text, "true or false");
    return SN_OK;
  case SN__KEY_INT: return read_int(reader, key, field, node, text);
  case SN__KEY_NUMBER: return read_number(reader, key, field, node, text);
  case SN__KEY_CHOICE: return read_choice(reader, key, field, node, text);
  case SN__KEY_SPAN: return read_span(reader, key, field, node, text);
  case SN__KEY_LABEL: {
    double *number = (double *)(void *)((char *)object + key->offset2);
    SN_TRY(read_text(reader, key, field, node, text));
    if (!sn__parse_number(text, number)) *number = (double)NAN;
    return SN_OK;
  }
  default: return read_text(reader, key, field, node, text);
  }
}

/* ---- lists ----------------------------------------------------------------------------------- */

static const yaml_node_t *node_at(sn__reader *reader, int index) {
  return yaml_document_get_node(reader->document, index);
}

static sn_status count_items(sn__reader *reader, const sn__key *key, const yaml_node_t *node,
                             size_t count, size_t most) {
  if (count > most)
    return sn_status_make(SN_CODE_CONFIG, "'%s' has %zu items %s; at most %zu are read", key->name,
                          count, sn__where(reader, node), most);
  if (count > reader->items_left)
    return sn_status_make(SN_CODE_CONFIG,
                          "more than %d list items up to '%s' %s; shorten the lists",
                          SN__CONFIG_ITEMS_MAX, key->name, sn__where(reader, node));
  reader->items_left -= count;
  return SN_OK;
}

static sn_status need_list(sn__reader *reader, const sn__key *key, const yaml_node_t *node,
                           const char *example) {
  if (node->type == YAML_SEQUENCE_NODE) return SN_OK;
  return sn_status_make(SN_CODE_CONFIG, "'%s' is %s %s; a list such as %s is needed", key->name,
                        node_words(node), sn__where(reader, node), example);
}

static size_t sequence_count(const yaml_node_t *node) {
  return (size_t)(node->data.sequence.items.top - node->data.sequence.items.start);
}

static sn_status read_ints(sn__reader *reader, const sn__key *key, sn_config_ints *field,
                           const yaml_node_t *node) {
  SN_TRY(need_list(reader, key, node, "[64, 32]"));
  size_t count = sequence_count(node);
  SN_TRY(count_items(reader, key, node, count, SN__CONFIG_LAYERS_MAX));
  int64_t *items = sn__config_alloc(reader->config, count, sizeof *items);
  if (items == NULL) return sn_status_out_of_memory();
  for (size_t i = 0; i < count; i++) {
    const yaml_node_t *item = node_at(reader, node->data.sequence.items.start[i]);
    const char *text = "";
    SN_TRY(sn__scalar_text(reader, key->name, item, &text));
    SN_TRY(read_int(reader, key, &items[i], item, text));
  }
  *field = (sn_config_ints){.count = count, .items = items};
  return SN_OK;
}

/* A word of the key's own stands for a list of it. */
static bool is_word(const sn__key *key, const yaml_node_t *node) {
  for (const sn__choice *c = key->choices; c != NULL && c->name != NULL; c++)
    if (node->type == YAML_SCALAR_NODE &&
        strcmp((const char *)node->data.scalar.value, c->name) == 0)
      return true;
  return false;
}

static sn_status read_word(sn__reader *reader, const sn__key *key, sn_config_texts *field,
                           const yaml_node_t *node) {
  char **items = sn__config_alloc(reader->config, 1, sizeof *items);
  const char *text = "";
  if (items == NULL) return sn_status_out_of_memory();
  SN_TRY(sn__scalar_text(reader, key->name, node, &text));
  SN_TRY(read_text(reader, key, &items[0], node, text));
  *field = (sn_config_texts){.count = 1, .items = items};
  return SN_OK;
}

static sn_status read_texts(sn__reader *reader, const sn__key *key, sn_config_texts *field,
                            const yaml_node_t *node) {
  if (is_word(key, node)) return read_word(reader, key, field, node);
  SN_TRY(need_list(reader, key, node, "[low, high]"));
  size_t count = sequence_count(node);
  SN_TRY(count_items(reader, key, node, count, SN__CONFIG_CLASSES_MAX));
  char **items = sn__config_alloc(reader->config, count, sizeof *items);
  if (items == NULL) return sn_status_out_of_memory();
  for (size_t i = 0; i < count; i++) {
    const yaml_node_t *item = node_at(reader, node->data.sequence.items.start[i]);
    const char *text = "";
    SN_TRY(sn__scalar_text(reader, key->name, item, &text));
    SN_TRY(read_text(reader, key, &items[i], item, text));
    for (size_t j = 0; j < i; j++) {
      if (strcmp(items[j], items[i]) == 0)
        return sn_status_make(SN_CODE_CONFIG, "'%s' names %s twice %s; each name once", key->name,
                              sn__shown(reader, text), sn__where(reader, item));
    }
  }
  *field = (sn_config_texts){.count = count, .items = items};
  return SN_OK;
}

static sn_status read_weight_map(sn__reader *reader, const sn__key *key,
                                 sn_config_class_weights *field, const yaml_node_t *node) {
  const yaml_node_pair_t *pairs = node->data.mapping.pairs.start;
  size_t count = (size_t)(node->data.mapping.pairs.top - pairs);
  SN_TRY(count_items(reader, key, node, count, SN__CONFIG_CLASSES_MAX));
  double *items = sn__config_alloc(reader->config, count, sizeof *items);
  char **names = sn__config_alloc(reader->config, count, sizeof *names);
  if (items == NULL || names == NULL) return sn_status_out_of_memory();
  for (size_t i = 0; i < count; i++) {
    const yaml_node_t *name = node_at(reader, pairs[i].key),
                      *value = node_at(reader, pairs[i].value);
    const char *text = "";
    SN_TRY(sn__scalar_text(reader, key->name, name, &text));
    SN_TRY(read_text(reader, key, &names[i], name, text));
    for (size_t j = 0; j < i; j++) {
      if (strcmp(names[j], names[i]) == 0)
        return sn_status_make(SN_CODE_CONFIG, "'%s' names %s twice %s; each class once", key->name,
                              sn__shown(reader, text), sn__where(reader, name));
    }
    SN_TRY(sn__scalar_text(reader, key->name, value, &text));
    SN_TRY(read_number(reader, key, &items[i], value, text));
  }
  *field = (sn_config_class_weights){SN_CONFIG_CLASS_WEIGHTS_MAP, count, items, names};
  return SN_OK;
}

static sn_status read_weights(sn__reader *reader, const sn__key *key,
                              sn_config_class_weights *field, const yaml_node_t *node) {
  if (node->type == YAML_MAPPING_NODE) return read_weight_map(reader, key, field, node);
  if (node->type != YAML_SEQUENCE_NODE) {
    const char *text = "";
    SN_TRY(sn__scalar_text(reader, key->name, node, &text));
    bool balanced = strcmp(text, "balanced") == 0;
    if (!balanced && strcmp(text, "none") != 0)
      return wrong_type(reader, key, node, text, "balanced, a list or a map of weights");
    *field = (sn_config_class_weights){.mode = balanced ? SN_CONFIG_CLASS_WEIGHTS_BALANCED
                                                        : SN_CONFIG_CLASS_WEIGHTS_NONE};
    return SN_OK;
  }
  size_t count = sequence_count(node);
  SN_TRY(count_items(reader, key, node, count, SN__CONFIG_CLASSES_MAX));
  double *items = sn__config_alloc(reader->config, count, sizeof *items);
  if (items == NULL) return sn_status_out_of_memory();
  for (size_t i = 0; i < count; i++) {
    const yaml_node_t *item = node_at(reader, node->data.sequence.items.start[i]);
    const char *text = "";
    SN_TRY(sn__scalar_text(reader, key->name, item, &text));
    SN_TRY(read_number(reader, key, &items[i], item, text));
  }
  *field = (sn_config_class_weights){SN_CONFIG_CLASS_WEIGHTS_LIST, count, items, NULL};
  return SN_OK;
}

sn_status sn__value_read(sn__reader *reader, const sn__key *key, void *object,
                         const yaml_node_t *node) {
  void *field = sn__key_at(object, key);
  switch (key->type) {
  case SN__KEY_INTS: return read_ints(reader, key, field, node);
  case SN__KEY_TEXTS: return read_texts(reader, key, field, node);
  case SN__KEY_WEIGHTS: return read_weights(reader, key, field, node);
  default: break;
  }
  const char *text = "";
  SN_TRY(sn__scalar_text(reader, key->name, node, &text));
  if (node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE && key->type != SN__KEY_TEXT &&
      key->type != SN__KEY_PATH && key->type != SN__KEY_LABEL && key->type != SN__KEY_CHOICE &&
      key->type != SN__KEY_SPAN)
    return sn_status_make(SN_CODE_CONFIG, "'%s' is the text %s %s; take the quotes off", key->name,
                          sn__shown(reader, text), sn__where(reader, node));
  return read_scalar(reader, key, object, node, text);
}

/* ---- defaults -------------------------------------------------------------------------------- */

/* Defaults of lists of widths are written "64, 32". */
static sn_status default_ints(sn_model_config *config, const char *text, sn_config_ints *field) {
  *field = (sn_config_ints){0};
  if (text == NULL) return SN_OK;
  size_t count = 1;
  for (const char *c = text; *c != '\0'; c++) {
    count += *c == ',';
  }
  field->items = sn__config_alloc(config, count, sizeof *field->items);
  if (field->items == NULL) return sn_status_out_of_memory();
  for (const char *at = text; field->count < count; field->count++) {
    char *end;
    field->items[field->count] = strtoll(at, &end, 10);
    at = end + (*end == ',');
  }
  return SN_OK;
}

static sn_status put_default(sn_model_config *config, const sn__key *key, void *object) {
  void *field = sn__key_at(object, key);
  switch (key->type) {
  case SN__KEY_INTS: return default_ints(config, key->fallback, field);
  case SN__KEY_TEXTS: *(sn_config_texts *)field = (sn_config_texts){0}; return SN_OK;
  case SN__KEY_WEIGHTS:
    *(sn_config_class_weights *)field = (sn_config_class_weights){0};
    return SN_OK;
  case SN__KEY_TEXT:
  case SN__KEY_PATH:
  case SN__KEY_LABEL: *(char **)field = NULL; break;
  default: break;
  }
  if (key->type == SN__KEY_LABEL) {
    double none = (double)NAN;
    memcpy((char *)object + key->offset2, &none, sizeof none);
  }
  if (key->fallback == NULL) return SN_OK;
  sn__reader reader = {.config = config, .file = "default"};
  yaml_node_t nowhere = {.type = YAML_NO_NODE};
  return read_scalar(&reader, key, object, &nowhere, key->fallback);
}

sn_status sn__part_defaults(sn_model_config *config, const sn__part *part, void *object) {
  sn_config_mark *mark = object;
  unsigned kind = sn__part_kind(part, object);
  for (size_t i = 0; i < part->count; i++) {
    const sn__key *key = &part->keys[i];
    bool selects = part->selector != NULL && strcmp(key->name, part->selector) == 0;
    if (selects || (mark->given & (UINT64_C(1) << i)) != 0) continue;
    if ((key->kinds & (1u << kind)) == 0) continue;
    SN_TRY(put_default(config, key, object));
  }
  return SN_OK;
}
