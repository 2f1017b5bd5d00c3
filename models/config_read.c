/* SPDX-License-Identifier: Apache-2.0 */
/* From YAML to the config: the walk over the parts of the file, and --set, which takes one step of
 * the same walk. Nothing recurses: the file's shape is ours and three levels deep. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/nearest.h"
#include "models/config_internal.h"

static const char *const root_keys[] = {"inputs", "outputs", "trunk", "train", "placement", "data"};
enum { ROOT_INPUTS, ROOT_OUTPUTS, ROOT_TRUNK, ROOT_TRAIN, ROOT_PLACEMENT, ROOT_DATA, ROOT_COUNT };
static const char *const split_keys[] = {"train", "valid", "test"};

const char *sn__where(sn__reader *reader, const yaml_node_t *node) {
  if (reader->assignment != NULL)
    snprintf(reader->where, sizeof reader->where, "in --set %.180s", reader->assignment);
  else
    snprintf(reader->where, sizeof reader->where, "at %.200s:%zu:%zu", reader->file,
             node->start_mark.line + 1, node->start_mark.column + 1);
  return reader->where;
}

const char *sn__shown(sn__reader *reader, const char *text) {
  char *out = reader->shown[reader->next_shown++ % 4];
  size_t used = 0;
  out[used++] = '\'';
  for (size_t i = 0; text[i] != '\0' && used < 65; i++) {
    unsigned char c = (unsigned char)text[i];
    out[used++] = c < 0x20 || c == 0x7f ? '?' : (char)c;
  }
  if (used == 65) { /* cut, not inside a UTF-8 character */
    while (used > 1 && ((unsigned char)out[used - 1] & 0xc0) == 0x80) {
      used--;
    }
    if (used > 1 && ((unsigned char)out[used - 1] & 0x80) != 0) used--;
    memcpy(out + used, "...", 3);
    used += 3;
  }
  out[used++] = '\'';
  out[used] = '\0';
  return out;
}

static const yaml_node_t *node_at(sn__reader *reader, int index) {
  return yaml_document_get_node(reader->document, index);
}

static sn_status unknown(sn__reader *reader, const char *what, const char *in, const char *name,
                         const yaml_node_t *node, const char *const *known, size_t count) {
  const char *shown = sn__shown(reader, name), *where = sn__where(reader, node);
  const char *near = sn__nearest(name, known, count);
  if (near != NULL)
    return sn_status_make(SN_CODE_CONFIG, "unknown %s %s in %s %s; did you mean '%s'?", what, shown,
                          in, where, near);
  char words[600];
  size_t used = 0;
  words[0] = '\0';
  for (size_t i = 0; i < count && used < sizeof words - 80; i++) {
    bool repeated = known[i] == NULL;
    for (size_t j = 0; j < i && !repeated; j++) {
      repeated = known[j] != NULL && strcmp(known[i], known[j]) == 0;
    }
    if (!repeated)
      used += (size_t)snprintf(words + used, sizeof words - used, "%s%s", used > 0 ? ", " : "",
                               known[i]);
  }
  return sn_status_make(SN_CODE_CONFIG, "unknown %s %s in %s %s; known: %s", what, shown, in, where,
                        used > 0 ? words : "none");
}

static sn_status twice(sn__reader *reader, const char *name, const yaml_node_t *node) {
  return sn_status_make(SN_CODE_CONFIG, "'%s' is given twice, again %s; keep one", name,
                        sn__where(reader, node));
}

/* An empty part ("placement:" with all its lines commented out) is an empty map. */
static sn_status need_map(sn__reader *reader, const char *name, const yaml_node_t *node,
                          size_t *out_count) {
  *out_count = 0;
  if (sn__node_is_null(node)) return SN_OK;
  if (node->type != YAML_MAPPING_NODE)
    return sn_status_make(SN_CODE_CONFIG, "'%s' is %s %s; a map of 'key: value' is needed", name,
                          node->type == YAML_SEQUENCE_NODE ? "a list" : "a single value",
                          sn__where(reader, node));
  *out_count = (size_t)(node->data.mapping.pairs.top - node->data.mapping.pairs.start);
  return SN_OK;
}

/* ---- parts with keys of ours ---------------------------------------------------------------- */

static void part_words(const sn__part *part, const char *name, char *out, size_t size) {
  if (name == NULL)
    snprintf(out, size, "%s", part->title);
  else
    snprintf(out, size, "%s '%s'", part->title, name);
}

void sn__kind_words(const sn__part *part, unsigned kinds, char *out, size_t size) {
  size_t used = 0;
  out[0] = '\0';
  for (unsigned k = 0; part->kind_names != NULL && part->kind_names[k] != NULL && used < size;
       k++) {
    if ((kinds & (1u << k)) == 0 || part->kind_names[k][0] == '\0') continue;
    used += (size_t)snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "",
                             part->kind_names[k]);
  }
}

static sn_status read_key(sn__reader *reader, const sn__part *part, const char *name, void *object,
                          const char *key_name, const yaml_node_t *key_node,
                          const yaml_node_t *value, uint64_t *seen) {
  unsigned kind = sn__part_kind(part, object);
  char words[120];
  part_words(part, name, words, sizeof words);
  const sn__key *key = sn__part_find(part, key_name, kind);
  if (key == NULL) {
    const char *known[64];
    for (size_t i = 0; i < part->count; i++) {
      known[i] = (part->keys[i].kinds & (1u << kind)) != 0 ? part->keys[i].name : NULL;
    }
    return unknown(reader, "key", words, key_name, key_node, known, part->count);
  }
  if ((key->kinds & (1u << kind)) == 0) {
    char kinds[120];
    sn__kind_words(part, key->kinds, kinds, sizeof kinds);
    return sn_status_make(SN_CODE_CONFIG, "key '%s' in %s %s is for %s %s, not %s; take it out",
                          key_name, words, sn__where(reader, key_node), part->selector, kinds,
                          part->kind_names[kind]);
  }
  uint64_t bit = UINT64_C(1) << (key - part->keys);
  if ((*seen & bit) != 0) return twice(reader, key_name, key_node);
  *seen |= bit;
  SN_TRY(sn__value_read(reader, key, object, value));
  ((sn_config_mark *)object)->given |= bit;
  return SN_OK;
}

/* The key that says what kind of part this is comes first, wherever it stands. */
static sn_status read_selector(sn__reader *reader, const sn__part *part, const char *name,
                               void *object, const yaml_node_t *node, size_t count) {
  if (part->selector == NULL) return SN_OK;
  for (size_t i = 0; i < count; i++) {
    const yaml_node_pair_t *pair = &node->data.mapping.pairs.start[i];
    const yaml_node_t *key = node_at(reader, pair->key);
    if (key->type != YAML_SCALAR_NODE ||
        strcmp((const char *)key->data.scalar.value, part->selector) != 0)
      continue;
    uint64_t seen = 0;
    SN_TRY(read_key(reader, part, name, object, part->selector, key, node_at(reader, pair->value),
                    &seen));
    return sn__part_defaults(reader->config, part, object);
  }
  if (sn__part_kind(part, object) != 0) return SN_OK; /* it has a default */
  char words[120], choices[200];
  part_words(part, name, words, sizeof words);
  sn__choice_words(sn__part_find(part, part->selector, 0)->choices, choices, sizeof choices);
  return sn_status_make(SN_CODE_CONFIG, "%s %s has no '%s'; add one: %s", words,
                        sn__where(reader, node), part->selector, choices);
}

static sn_status read_part(sn__reader *reader, const sn__part *part, const char *name, void *object,
                           const yaml_node_t *node) {
  size_t count;
  SN_TRY(need_map(reader, name != NULL ? name : part->title, node, &count));
  sn_config_mark *mark = object;
  mark->line = (int)node->start_mark.line + 1;
  mark->column = (int)node->start_mark.column + 1;
  SN_TRY(read_selector(reader, part, name, object, node, count));
  uint64_t seen = 0;
  for (size_t i = 0; i < count; i++) {
    const yaml_node_pair_t *pair = &node->data.mapping.pairs.start[i];
    const yaml_node_t *key = node_at(reader, pair->key);
    const char *text;
    SN_TRY(sn__scalar_text(reader, "key", key, &text));
    SN_TRY(read_key(reader, part, name, object, text, key, node_at(reader, pair->value), &seen));
  }
  return SN_OK;
}

/* ---- parts with names of the user's --------------------------------------------------------- */

static sn_status read_modules(sn__reader *reader, bool outputs, const yaml_node_t *node) {
  sn_model_config *config = reader->config;
  size_t count;
  SN_TRY(need_map(reader, outputs ? "outputs" : "inputs", node, &count));
  for (size_t i = 0; i < count; i++) {
    const yaml_node_pair_t *pair = &node->data.mapping.pairs.start[i];
    const yaml_node_t *key = node_at(reader, pair->key);
    const char *name;
    SN_TRY(sn__scalar_text(reader, outputs ? "output" : "input", key, &name));
    sn_model_input *input = NULL;
    sn_model_output *output = NULL;
    sn_status status = outputs
                           ? sn_model_config_add_output(config, name, SN_CONFIG_TASK_NONE, &output)
                           : sn_model_config_add_input(config, name, SN_CONFIG_KIND_NONE, &input);
    if (status != SN_OK) return sn_status_context(status, "%s", sn__where(reader, key) + 3);
    const yaml_node_t *value = node_at(reader, pair->value);
    if (outputs)
      SN_TRY(read_part(reader, &sn__part_output, output->name, output, value));
    else
      SN_TRY(read_part(reader, &sn__part_input, input->name, input, value));
  }
  return SN_OK;
}

static sn_status read_copy(sn__reader *reader, const char *what, const yaml_node_t *node,
                           char **out) {
  const char *text;
  SN_TRY(sn__scalar_text(reader, what, node, &text));
  if (*text == '\0')
    return sn_status_make(SN_CODE_CONFIG, "'%s' is empty %s; give it a value or take it out", what,
                          sn__where(reader, node));
  *out = sn__config_strdup(reader->config, text);
  return *out != NULL ? SN_OK : sn_status_out_of_memory();
}

static sn_status read_pin(sn__reader *reader, const char *module, const yaml_node_t *key,
                          const yaml_node_t *value) {
  sn_model_config *config = reader->config;
  size_t before = config->pin_count;
  if (*module == '\0' || strlen(module) > (size_t)4 * SN__CONFIG_NAME_MAX)
    return sn_status_make(SN_CODE_CONFIG, "module %s in placement %s is no usable name",
                          sn__shown(reader, module), sn__where(reader, key));
  if (before >= SN__CONFIG_PINS_MAX)
    return sn_status_make(SN_CODE_CONFIG, "more than %d pins in placement %s; use patterns",
                          SN__CONFIG_PINS_MAX, sn__where(reader, key));
  sn_model_pin *pin;
  SN_TRY(sn__config_add_pin(config, module, &pin));
  if (config->pin_count == before && reader->assignment == NULL) return twice(reader, module, key);
  pin->line = (int)key->start_mark.line + 1;
  pin->column = (int)key->start_mark.column + 1;
  return read_copy(reader, module, value, &pin->device);
}

static sn_status read_placement(sn__reader *reader, const yaml_node_t *node) {
  size_t count;
  SN_TRY(need_map(reader, "placement", node, &count));
  for (size_t i = 0; i < count; i++) {
    const yaml_node_pair_t *pair = &node->data.mapping.pairs.start[i];
    const yaml_node_t *key = node_at(reader, pair->key);
    const char *module;
    SN_TRY(sn__scalar_text(reader, "module", key, &module));
    SN_TRY(read_pin(reader, module, key, node_at(reader, pair->value)));
  }
  return SN_OK;
}

static const sn__key source_keys[] = {
    {.name = "path", .type = SN__KEY_PATH, .offset = offsetof(sn_model_source, path)},
    {.name = "lengths", .type = SN__KEY_PATH, .offset = offsetof(sn_model_source, lengths)},
};

static sn_status read_source(sn__reader *reader, sn_config_split split, const char *name,
                             const yaml_node_t *key, const yaml_node_t *value) {
  sn_model_split *into = &reader->config->data[split];
  size_t before = into->count;
  if (!sn__config_name_ok(name) || before >= (size_t)2 * SN__CONFIG_MODULES_MAX)
    return sn_status_make(SN_CODE_CONFIG, "%s in data.%s %s is not the name of an input or output",
                          sn__shown(reader, name), split_keys[split], sn__where(reader, key));
  sn_model_source *source;
  SN_TRY(sn__config_add_source(reader->config, into, name, &source));
  if (into->count == before && reader->assignment == NULL) return twice(reader, name, key);
  source->line = (int)key->start_mark.line + 1;
  source->column = (int)key->start_mark.column + 1;
  if (value->type != YAML_MAPPING_NODE)
    return sn__value_read(reader, &source_keys[0], source, value);
  size_t count = (size_t)(value->data.mapping.pairs.top - value->data.mapping.pairs.start);
  unsigned seen = 0;
  for (size_t i = 0; i < count; i++) {
    const yaml_node_pair_t *pair = &value->data.mapping.pairs.start[i];
    const char *text, *known[] = {"path", "lengths"};
    const yaml_node_t *inner = node_at(reader, pair->key);
    SN_TRY(sn__scalar_text(reader, name, inner, &text));
    unsigned which = strcmp(text, "path") == 0 ? 0 : strcmp(text, "lengths") == 0 ? 1 : 2;
    if (which == 2) return unknown(reader, "key", name, text, inner, known, 2);
    if ((seen & (1u << which)) != 0) return twice(reader, text, inner);
    seen |= 1u << which;
    SN_TRY(sn__value_read(reader, &source_keys[which], source, node_at(reader, pair->value)));
  }
  if ((seen & 1u) != 0 || source->path != NULL) return SN_OK;
  return sn_status_make(SN_CODE_CONFIG, "'%s' in data.%s %s has no 'path'; add one", name,
                        split_keys[split], sn__where(reader, value));
}

static size_t split_of(const char *name) {
  size_t split = 0;
  while (split < SN_CONFIG_SPLIT_COUNT && strcmp(name, split_keys[split]) != 0) {
    split++;
  }
  return split;
}

static sn_status read_data(sn__reader *reader, const yaml_node_t *node) {
  size_t count;
  unsigned seen = 0;
  SN_TRY(need_map(reader, "data", node, &count));
  for (size_t i = 0; i < count; i++) {
    const yaml_node_pair_t *pair = &node->data.mapping.pairs.start[i];
    const yaml_node_t *key = node_at(reader, pair->key), *value = node_at(reader, pair->value);
    const char *text;
    SN_TRY(sn__scalar_text(reader, "split", key, &text));
    size_t split = split_of(text), inner;
    if (split == SN_CONFIG_SPLIT_COUNT)
      return unknown(reader, "split", "data", text, key, split_keys, SN_CONFIG_SPLIT_COUNT);
    if ((seen & (1u << split)) != 0) return twice(reader, text, key);
    seen |= 1u << split;
    SN_TRY(need_map(reader, text, value, &inner));
    for (size_t j = 0; j < inner; j++) {
      const yaml_node_pair_t *source = &value->data.mapping.pairs.start[j];
      const yaml_node_t *name = node_at(reader, source->key);
      const char *name_text;
      SN_TRY(sn__scalar_text(reader, "name", name, &name_text));
      SN_TRY(read_source(reader, (sn_config_split)split, name_text, name,
                         node_at(reader, source->value)));
    }
  }
  return SN_OK;
}

/* ---- the file ------------------------------------------------------------------------------- */

static size_t root_of(const char *name) {
  size_t i = 0;
  while (i < ROOT_COUNT && strcmp(name, root_keys[i]) != 0) {
    i++;
  }
  return i;
}

static sn_status read_root(sn__reader *reader, const yaml_node_t *root) {
  size_t count;
  unsigned seen = 0;
  SN_TRY(need_map(reader, "the model file", root, &count));
  for (size_t i = 0; i < count; i++) {
    const yaml_node_pair_t *pair = &root->data.mapping.pairs.start[i];
    const yaml_node_t *key = node_at(reader, pair->key), *value = node_at(reader, pair->value);
    const char *text;
    SN_TRY(sn__scalar_text(reader, "key", key, &text));
    size_t which = root_of(text);
    if (which == ROOT_COUNT)
      return unknown(reader, "key", "the model file", text, key, root_keys, ROOT_COUNT);
    if ((seen & (1u << which)) != 0) return twice(reader, text, key);
    seen |= 1u << which;
    switch (which) {
    case ROOT_INPUTS:
    case ROOT_OUTPUTS: SN_TRY(read_modules(reader, which == ROOT_OUTPUTS, value)); break;
    case ROOT_TRUNK:
      SN_TRY(read_part(reader, &sn__part_trunk, NULL, &reader->config->trunk, value));
      break;
    case ROOT_TRAIN:
      SN_TRY(read_part(reader, &sn__part_train, NULL, &reader->config->train, value));
      break;
    case ROOT_PLACEMENT: SN_TRY(read_placement(reader, value)); break;
    default: SN_TRY(read_data(reader, value)); break;
    }
  }
  return SN_OK;
}

static sn_status yaml_mistake(sn__reader *reader, const yaml_parser_t *parser) {
  if (parser->error == YAML_MEMORY_ERROR) return sn_status_out_of_memory();
  const char *problem = parser->problem != NULL ? parser->problem : "not YAML";
  if (reader->assignment != NULL)
    return sn_status_make(SN_CODE_CONFIG, "the value in --set %.180s is no YAML (%s); quote it",
                          reader->assignment, problem);
  if (parser->error == YAML_READER_ERROR)
    return sn_status_make(SN_CODE_CONFIG, "%s at byte %zu of %s; save it as plain UTF-8 text",
                          problem, parser->problem_offset, reader->file);
  return sn_status_make(
      SN_CODE_CONFIG, "no YAML at %s:%zu:%zu (%s); look at that line and the one above",
      reader->file, parser->problem_mark.line + 1, parser->problem_mark.column + 1, problem);
}

/* What libyaml takes quadratic time for: open brackets, and anchors when looked up. */
static sn_status check_cost(const sn__reader *reader, const char *text, size_t size) {
  size_t anchors = 0, brackets = 0;
  for (size_t i = 0; i + 1 < size; i++) {
    bool starts = i == 0 || strchr(" \t\r\n[{,:-?", text[i - 1]) != NULL;
    anchors += text[i] == '&' && starts;
    brackets += text[i] == '[' || text[i] == '{';
  }
  if (anchors > SN__CONFIG_ANCHORS_MAX)
    return sn_status_make(SN_CODE_CONFIG, "more than %d anchors ('&name') in %s; write values out",
                          SN__CONFIG_ANCHORS_MAX, reader->file);
  if (brackets > SN__CONFIG_BRACKETS_MAX)
    return sn_status_make(SN_CODE_CONFIG, "more than %d brackets in %s; write one key a line",
                          SN__CONFIG_BRACKETS_MAX, reader->file);
  return SN_OK;
}

/* Loads the one document of `text` and hands its root to `use`. */
static sn_status with_document(sn__reader *reader, const char *text, size_t size,
                               sn_status (*use)(sn__reader *, const yaml_node_t *)) {
  SN_TRY(check_cost(reader, text, size));
  yaml_parser_t parser;
  yaml_document_t document, more;
  if (yaml_parser_initialize(&parser) == 0) return sn_status_out_of_memory();
  yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
  yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
  if (yaml_parser_load(&parser, &document) == 0) {
    sn_status status = yaml_mistake(reader, &parser);
    yaml_parser_delete(&parser);
    return status;
  }
  reader->document = &document;
  reader->items_left = SN__CONFIG_ITEMS_MAX;
  const yaml_node_t *root = yaml_document_get_root_node(&document);
  sn_status status = SN_OK;
  if (root == NULL && reader->assignment != NULL)
    status =
        sn_status_make(SN_CODE_CONFIG, "--set %.180s gives no value; write --set train.batch=32",
                       reader->assignment);
  else if (root == NULL || (sn__node_is_null(root) && reader->assignment == NULL))
    status =
        sn_status_make(SN_CODE_CONFIG, "%s is empty; give it inputs and outputs", reader->file);
  else
    status = use(reader, root);
  if (status == SN_OK && yaml_parser_load(&parser, &more) == 0) {
    status = yaml_mistake(reader, &parser);
  } else if (status == SN_OK) {
    if (yaml_document_get_root_node(&more) != NULL)
      status = sn_status_make(SN_CODE_CONFIG, "%s holds a second document ('---'); keep one",
                              reader->file);
    yaml_document_delete(&more);
  }
  yaml_document_delete(&document);
  yaml_parser_delete(&parser);
  reader->document = NULL;
  return status;
}

sn_status sn_model_config_read(const char *text, size_t size, const char *name,
                               sn_model_config **out_config) {
  sn_model_config *config = NULL;
  SN_TRY(sn_model_config_create(&config));
  sn_status status = SN_OK;
  sn__reader reader = {.config = config, .file = name};
  config->file = sn__config_strdup(config, name);
  if (config->file == NULL)
    status = sn_status_out_of_memory();
  else if (size > SN__CONFIG_FILE_MAX)
    status = sn_status_make(SN_CODE_CONFIG, "%s is larger than %d bytes; is it a model file?", name,
                            SN__CONFIG_FILE_MAX);
  else
    status = with_document(&reader, text, size, read_root);
  if (status != SN_OK) {
    sn_model_config_free(config);
    return status;
  }
  *out_config = config;
  return SN_OK;
}

static sn_status cannot_read(const char *path, const char *why) {
  return sn_status_make(SN_CODE_CONFIG, "cannot read model file %.400s: %s; check the path", path,
                        why);
}

/* Opens without waiting, so that a pipe or a device in the file's place does not hang us. */
static sn_status read_whole(const char *path, char **out_text, size_t *out_size) {
  int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return cannot_read(path, strerror(errno));
  struct stat info;
  char *text = NULL;
  size_t size = 0;
  sn_status status = SN_OK;
  if (fstat(file, &info) != 0)
    status = cannot_read(path, strerror(errno));
  else if (!S_ISREG(info.st_mode))
    status = cannot_read(path, S_ISDIR(info.st_mode) ? "it is a folder" : "it is no regular file");
  else if (info.st_size > SN__CONFIG_FILE_MAX)
    status = sn_status_make(SN_CODE_CONFIG, "%.400s is larger than %d bytes; is it a model file?",
                            path, SN__CONFIG_FILE_MAX);
  else if ((text = sn__alloc((size_t)info.st_size + 1)) == NULL)
    status = sn_status_out_of_memory();
  while (status == SN_OK && size < (size_t)info.st_size) {
    ssize_t got = read(file, text + size, (size_t)info.st_size - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) status = cannot_read(path, strerror(errno));
    if (got <= 0) break;
    size += (size_t)got;
  }
  close(file);
  if (status != SN_OK) {
    sn__free(text);
    return status;
  }
  *out_text = text;
  *out_size = size;
  return SN_OK;
}

sn_status sn_model_config_load(const char *path, sn_model_config **out_config) {
  char *text = NULL;
  size_t size = 0;
  SN_TRY(read_whole(path, &text, &size));
  sn_status status = sn_model_config_read(text, size, path, out_config);
  sn__free(text);
  return status;
}

/* ---- --set ---------------------------------------------------------------------------------- */

typedef struct set_target {
  sn__reader base; /* first, so that with_document() can hand it back */
  char *words[3];
  size_t count;
} set_target;

static sn_status set_needs(set_target *target, const char *form) {
  return sn_status_make(SN_CODE_CONFIG, "--set %.180s names no key; write %s",
                        target->base.assignment, form);
}

static sn_status set_module(set_target *target, bool outputs, const yaml_node_t *value) {
  sn_model_config *config = target->base.config;
  if (target->count != 3)
    return set_needs(target, outputs ? "outputs.NAME.KEY=value" : "inputs.NAME.KEY=value");
  size_t count = outputs ? config->output_count : config->input_count, at = 0;
  const char *names[SN__CONFIG_MODULES_MAX];
  for (size_t i = 0; i < count; i++) {
    names[i] = outputs ? config->outputs[i].name : config->inputs[i].name;
  }
  while (at < count && strcmp(names[at], target->words[1]) != 0) {
    at++;
  }
  if (at == count)
    return unknown(&target->base, outputs ? "output" : "input", outputs ? "outputs" : "inputs",
                   target->words[1], value, names, count);
  const sn__part *part = outputs ? &sn__part_output : &sn__part_input;
  void *object = outputs ? (void *)&config->outputs[at] : (void *)&config->inputs[at];
  uint64_t seen = 0;
  SN_TRY(read_key(&target->base, part, names[at], object, target->words[2], value, value, &seen));
  return sn__part_defaults(config, part, object); /* another kind has other defaults */
}

static sn_status set_value(sn__reader *reader, const yaml_node_t *value) {
  set_target *target = (set_target *)(void *)reader;
  sn_model_config *config = reader->config;
  char **words = target->words;
  uint64_t seen = 0;
  switch (root_of(words[0])) {
  case ROOT_INPUTS: return set_module(target, false, value);
  case ROOT_OUTPUTS: return set_module(target, true, value);
  case ROOT_TRUNK:
    if (target->count != 2) return set_needs(target, "trunk.KEY=value");
    return read_key(reader, &sn__part_trunk, NULL, &config->trunk, words[1], value, value, &seen);
  case ROOT_TRAIN:
    if (target->count != 2) return set_needs(target, "train.KEY=value");
    SN_TRY(read_key(reader, &sn__part_train, NULL, &config->train, words[1], value, value, &seen));
    return sn__part_defaults(config, &sn__part_train, &config->train);
  case ROOT_PLACEMENT:
    if (target->count < 2) return set_needs(target, "placement.MODULE=DEVICE");
    if (target->count == 3) words[2][-1] = '.'; /* a module's name may hold one */
    return read_pin(reader, words[1], value, value);
  case ROOT_DATA: {
    if (target->count != 3) return set_needs(target, "data.SPLIT.NAME=DATASET");
    size_t split = split_of(words[1]);
    if (split == SN_CONFIG_SPLIT_COUNT)
      return unknown(reader, "split", "data", words[1], value, split_keys, SN_CONFIG_SPLIT_COUNT);
    return read_source(reader, (sn_config_split)split, words[2], value, value);
  }
  default: return unknown(reader, "key", "the model file", words[0], value, root_keys, ROOT_COUNT);
  }
}

sn_status sn_model_config_set(sn_model_config *config, const char *assignment) {
  const char *equals = strchr(assignment, '=');
  if (equals == NULL || equals == assignment)
    return sn_status_make(SN_CODE_CONFIG,
                          "--set %.180s has no key and value; write --set train.batch=32",
                          assignment);
  char *path = sn__strndup(assignment, (size_t)(equals - assignment));
  if (path == NULL) return sn_status_out_of_memory();
  /* The assignment in messages: one line. */
  char *shown = sn__strdup(assignment);
  sn_status status = shown == NULL ? sn_status_out_of_memory() : SN_OK;
  for (char *c = shown; shown != NULL && *c != '\0'; c++) {
    if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
  }
  set_target target = {.base = {.config = config, .file = "--set", .assignment = shown}};
  for (char *at = path; at != NULL && target.count < 3;) {
    target.words[target.count++] = at;
    at = target.count < 3 ? strchr(at, '.') : NULL;
    if (at != NULL) *at++ = '\0';
  }
  if (status == SN_OK && strlen(equals + 1) > SN__CONFIG_FILE_MAX)
    status = sn_status_make(SN_CODE_CONFIG, "the value of --set %.100s is too long", path);
  if (status == SN_OK)
    status = with_document(&target.base, equals + 1, strlen(equals + 1), set_value);
  sn__free(shown);
  sn__free(path);
  return status;
}
