/* SPDX-License-Identifier: Apache-2.0 */
/* Which datasets belong together, which one is learned, and what the others are. Names and shapes
 * are all there is to go by; what is guessed is said in the file. */
#include "tools/sennit/guess.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"

/* ---- words in names ------------------------------------------------------------------------- */

static const char *const train_words[] = {"train", "training", NULL};
static const char *const valid_words[] = {"valid", "val", "validation", "dev", NULL};
static const char *const test_words[] = {"test", "testing", "eval", NULL};
static const char *const label_words[] = {"label",  "labels",  "target",  "targets",  "y",
                                          "class",  "classes", "outcome", "outcomes", "response",
                                          "output", "outputs", "answer",  NULL};
static const char *const set_words[] = {"set",     "sets",     "pixels",     "points", "point",
                                        "cloud",   "clouds",   "bag",        "bags",   "particles",
                                        "atoms",   "hits",     "jets",       "items",  "elements",
                                        "objects", "pointnet", "pointcloud", NULL};
static const char *const length_words[] = {"length", "lengths", "len", "lens", "seqlen", NULL};
static const char *const id_words[] = {"id", "ids", "index", "idx", "key", "uid", "barcodes", NULL};

static bool in_list(const char *word, const char *const *list) {
  for (; *list != NULL; list++)
    if (strcmp(*list, word) == 0) return true;
  return false;
}

/* The next word of a name in lower case, at letters, digits and changes from small to capital;
 * where it began and ended in `text`. False at the end. */
static bool next_word(const char **text, char word[GUESS_NAME], const char **out_begin) {
  const char *c = *text;
  while (*c != '\0' && !isalnum((unsigned char)*c))
    c++;
  *out_begin = c;
  size_t n = 0;
  for (; isalnum((unsigned char)*c); c++) {
    bool turn = c > *out_begin && isupper((unsigned char)*c) && islower((unsigned char)c[-1]);
    if (turn) break;
    if (n + 1 < GUESS_NAME) word[n++] = (char)tolower((unsigned char)*c);
  }
  word[n] = '\0';
  *text = c;
  return n > 0;
}

static bool has_word(const char *name, const char *const *list) {
  char word[GUESS_NAME];
  const char *begin;
  while (next_word(&name, word, &begin)) {
    for (size_t n = strlen(word); n > 1 && isdigit((unsigned char)word[n - 1]); n--)
      word[n - 1] = '\0'; /* "label2" is a label, too */
    if (in_list(word, list)) return true;
  }
  return false;
}

static const char *leaf(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

/* "X_train_data" is "X_data" of the training part. */
static void read_name(guess_item *item) {
  const char *text = leaf(item->path), *begin;
  char word[GUESS_NAME];
  size_t n = 0;
  while (next_word(&text, word, &begin)) {
    guess_split split = in_list(word, train_words)   ? GUESS_TRAIN
                        : in_list(word, valid_words) ? GUESS_VALID
                        : in_list(word, test_words)  ? GUESS_TEST
                                                     : GUESS_WHOLE;
    if (split != GUESS_WHOLE && item->split == GUESS_WHOLE) {
      item->split = split;
      continue;
    }
    bool joined = n > 0 && begin > item->path && isalnum((unsigned char)begin[-1]);
    if (n > 0 && !joined && n + 1 < GUESS_NAME) item->base[n++] = '_';
    for (const char *c = begin; c < text && n + 1 < GUESS_NAME; c++)
      item->base[n++] = *c;
  }
  item->base[n] = '\0';
}

/* ---- from the inspection --------------------------------------------------------------------- */

static double number_of(const cJSON *o, const char *key, double otherwise) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(o, key);
  return cJSON_IsNumber(item) ? item->valuedouble : otherwise;
}

static const char *text_of(const cJSON *o, const char *key) {
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
  return text != NULL ? text : "";
}

static void read_shape(const cJSON *dataset, guess_item *item) {
  const cJSON *dim;
  cJSON_ArrayForEach(dim, cJSON_GetObjectItemCaseSensitive(dataset, "shape")) {
    if (item->rank < 8) item->dims[item->rank] = (int64_t)dim->valuedouble;
    item->rank++;
  }
}

static void read_numbers(const cJSON *dataset, guess_item *item) {
  const char *type = text_of(dataset, "type"), *kind = text_of(dataset, "kind");
  item->integers = (*type == 'i' || *type == 'u' || strcmp(kind, "number") != 0) && *type != 'f';
  if (strcmp(kind, "ragged") == 0) item->integers = strchr(type, 'f') == NULL;
  item->integral = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(dataset, "integral"));
  item->classes = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(dataset, "classes"));
  item->min = number_of(dataset, "min", NAN);
  item->max = number_of(dataset, "max", NAN);
  item->mean = number_of(dataset, "mean", NAN);
  item->deviation = number_of(dataset, "std", NAN);
  item->bad = (int64_t)(number_of(dataset, "nan", 0) + number_of(dataset, "inf", 0));
}

static void read_dataset(const cJSON *dataset, guess_item *item) {
  const char *kind = text_of(dataset, "kind");
  item->path = text_of(dataset, "path");
  read_shape(dataset, item);
  read_numbers(dataset, item);
  item->rows = item->rank > 0 ? item->dims[0] : 0;
  item->form = strcmp(kind, "number") == 0   ? GUESS_NUMBERS
               : strcmp(kind, "ragged") == 0 ? GUESS_VLEN
                                             : GUESS_WORDS;
  read_name(item);
}

static bool inside(const char *path, const char *group) {
  size_t n = strlen(group);
  return strncmp(path, group, n) == 0 && path[n] == '/';
}

/* A sound group of values and offsets is one item; its type is that of the values. */
static void read_group(const cJSON *json, const cJSON *group, guess_item *item) {
  const cJSON *dataset;
  item->path = text_of(group, "path");
  item->form = GUESS_PACKED;
  cJSON_ArrayForEach(dataset, cJSON_GetObjectItemCaseSensitive(json, "datasets")) {
    const char *path = text_of(dataset, "path");
    if (!inside(path, item->path) || strcmp(leaf(path), "values") != 0) continue;
    read_shape(dataset, item);
    read_numbers(dataset, item);
  }
  item->rows = (int64_t)number_of(group, "rows", 0);
  read_name(item);
}

static bool is_in_group(const cJSON *json, const char *path) {
  const cJSON *group;
  cJSON_ArrayForEach(group, cJSON_GetObjectItemCaseSensitive(json, "ragged")) {
    if (inside(path, text_of(group, "path"))) return true;
  }
  return false;
}

static sn_status read_items(const cJSON *json, guess *g) {
  const cJSON *datasets = cJSON_GetObjectItemCaseSensitive(json, "datasets");
  const cJSON *groups = cJSON_GetObjectItemCaseSensitive(json, "ragged"), *o;
  size_t most = (size_t)(cJSON_GetArraySize(datasets) + cJSON_GetArraySize(groups));
  g->items = sn__calloc(most + 1, sizeof *g->items);
  if (g->items == NULL) return sn_status_out_of_memory();
  cJSON_ArrayForEach(o, groups) {
    if (*text_of(o, "problem") == '\0') read_group(json, o, &g->items[g->count++]);
  }
  cJSON_ArrayForEach(o, datasets) {
    if (*text_of(o, "problem") == '\0' && *text_of(o, "kind") != '\0' &&
        !is_in_group(json, text_of(o, "path")))
      read_dataset(o, &g->items[g->count++]);
  }
  return SN_OK;
}

/* ---- what belongs together ------------------------------------------------------------------- */

const guess_item *guess_twin(const guess *g, const guess_item *item, guess_split split) {
  for (size_t i = 0; i < g->count; i++)
    if (g->items[i].split == split && strcmp(g->items[i].base, item->base) == 0)
      return &g->items[i];
  return NULL;
}

static bool one_column(const guess_item *item) {
  return item->rank == 1 || (item->rank == 2 && item->dims[1] == 1);
}

/* One row of ids without a name of its own but the split's, or alone in its file. */
static void find_stream(guess *g) {
  size_t training = 0;
  guess_item *found = NULL;
  for (size_t i = 0; i < g->count; i++) {
    guess_item *item = &g->items[i];
    bool trains = item->split == GUESS_TRAIN || item->split == GUESS_WHOLE;
    bool ids = item->form == GUESS_NUMBERS && item->rank == 1 && item->integers && item->min >= 0;
    if (!trains || item->rank == 0) continue;
    training++;
    if (ids && item->rows >= 1000 && item->classes > 1) found = item;
  }
  if (training == 1) g->stream = found;
}

/* The row count that most items share; the larger one of two. */
static void choose_rows(guess *g) {
  size_t best = 0;
  for (size_t i = 0; i < g->count; i++)
    g->split = g->split || g->items[i].split == GUESS_TRAIN;
  for (size_t i = 0; i < g->count; i++) {
    const guess_item *item = &g->items[i];
    size_t same = 0;
    if (item->rank == 0 || item->rows < 2 || (g->split && item->split != GUESS_TRAIN)) continue;
    for (size_t j = 0; j < g->count; j++)
      same += g->items[j].rank > 0 && g->items[j].rows == item->rows &&
              (!g->split || g->items[j].split == GUESS_TRAIN);
    if (same < best || (same == best && item->rows <= g->rows)) continue;
    best = same;
    g->rows = item->rows;
  }
}

static bool is_candidate(const guess *g, const guess_item *item) {
  return item->rank > 0 && item->rows == g->rows && (!g->split || item->split == GUESS_TRAIN);
}

/* ---- what each one is ------------------------------------------------------------------------ */

bool guess_is_class(const guess_item *item) {
  if (!one_column(item) || item->form == GUESS_PACKED || item->form == GUESS_VLEN) return false;
  if (item->classes < 2 || item->classes > 1000) return false;
  return item->integers || item->form == GUESS_WORDS || (item->integral && item->classes <= 50);
}

bool guess_is_multilabel(const guess_item *item) {
  return item->form == GUESS_NUMBERS && item->rank == 2 && item->dims[1] > 1 && item->integers &&
         item->min == 0 && item->max == 1;
}

static bool is_ragged(const guess_item *item) {
  return item->form == GUESS_PACKED || item->form == GUESS_VLEN;
}

static bool can_be_output(const guess_item *item) {
  if (is_ragged(item) || item->rank > 2) return false;
  if (item->form == GUESS_WORDS) return guess_is_class(item);
  return item->bad == 0 || !item->integers;
}

bool guess_is_ids(const guess_item *item) {
  int values = item->form == GUESS_PACKED ? item->rank : 1;
  return is_ragged(item) && item->integers && values == 1 && item->min >= 0;
}

enum { FEW = 4 /* channels of a usual image; pixels that windows need */ };

bool guess_is_channels_first(const guess_item *item) {
  return item->form == GUESS_NUMBERS && item->rank == 4 && item->dims[1] <= FEW &&
         item->dims[2] > FEW && item->dims[3] > FEW;
}

bool guess_is_image(const guess_item *item) {
  return item->form == GUESS_NUMBERS && item->rank == 4 && item->dims[1] >= FEW &&
         item->dims[2] >= FEW;
}

bool guess_is_set(const guess *g, const guess_item *item) {
  bool padded = item->form == GUESS_NUMBERS && item->rank == 3;
  if ((!padded && !is_ragged(item)) || guess_is_ids(item)) return false;
  if (has_word(leaf(item->path), set_words)) return true;
  /* Rows of three coordinates are points more often than steps of time. */
  return padded && (has_word(leaf(g->file), set_words) || item->dims[2] == 3);
}

/* NULL when it can be read as an input. */
static const char *unfit(const guess_item *item) {
  if (item->bad > 0) return "holds NaN or inf: clean it, then add it";
  if (item->min == item->max && item->form == GUESS_NUMBERS) return "is the same in every row";
  bool apart = item->form == GUESS_WORDS && item->classes == 0;
  if (apart) return "is different in nearly every row: no category";
  if (item->classes == 1) return "is the same in every row";
  bool id = one_column(item) && item->form == GUESS_NUMBERS && item->integers &&
            has_word(leaf(item->path), id_words) && item->classes == 0;
  return id ? "looks like a number of the row" : NULL;
}

static void choose_outputs(guess *g) {
  guess_item *best = NULL;
  size_t named = 0;
  for (size_t i = 0; i < g->count; i++) {
    guess_item *item = &g->items[i];
    if (!is_candidate(g, item) || !can_be_output(item) || item->min == item->max) continue;
    if (has_word(leaf(item->path), label_words)) {
      item->role = GUESS_OUTPUT;
      named++;
    }
    /* Without a name that says so: classes before numbers, later before earlier. */
    if (!one_column(item)) continue;
    if (best == NULL || guess_is_class(item) || !guess_is_class(best)) best = item;
  }
  if (named == 0 && best != NULL) best->role = GUESS_OUTPUT;
}

static void choose_lengths(guess *g) {
  for (size_t i = 0; i < g->count; i++) {
    guess_item *item = &g->items[i];
    bool whole = is_candidate(g, item) && item->form == GUESS_NUMBERS && one_column(item) &&
                 item->integers && item->min >= 0 && has_word(leaf(item->path), length_words);
    for (size_t j = 0; whole && j < g->count; j++) {
      guess_item *padded = &g->items[j];
      if (!is_candidate(g, padded) || padded->form != GUESS_NUMBERS || padded->rank != 3) continue;
      if (item->max > (double)padded->dims[1] || padded->lengths != NULL) continue;
      padded->lengths = item;
      item->role = GUESS_LENGTHS;
    }
  }
}

/* Letters, digits, '_' and '-'; no two alike. */
static void choose_name(guess *g, guess_item *item) {
  char plain[GUESS_NAME];
  size_t n = 0;
  const char *from = *item->base != '\0' ? item->base : "data";
  for (; *from != '\0' && n + 8 < sizeof plain; from++)
    plain[n++] = isalnum((unsigned char)*from) ? *from : '_';
  plain[n] = '\0';
  snprintf(item->name, sizeof item->name, "%s", plain);
  for (int number = 1; number < 1000; number++) {
    bool taken = strcmp(item->name, "trunk") == 0;
    for (size_t i = 0; i < g->count; i++)
      taken = taken || (&g->items[i] != item && strcmp(g->items[i].name, item->name) == 0);
    if (!taken) return;
    snprintf(item->name, sizeof item->name, "%.*s_%d", (int)sizeof plain - 8, plain, number);
  }
}

static sn_status choose_inputs(guess *g) {
  size_t inputs = 0, outputs = 0;
  for (size_t i = 0; i < g->count; i++) {
    guess_item *item = &g->items[i];
    if (is_candidate(g, item) && item->role == GUESS_UNUSED) {
      item->why = unfit(item);
      item->role = item->why == NULL && inputs < 64 ? GUESS_INPUT : GUESS_UNUSED;
    }
    inputs += item->role == GUESS_INPUT;
    outputs += item->role == GUESS_OUTPUT;
    if (item->role == GUESS_INPUT || item->role == GUESS_OUTPUT) choose_name(g, item);
  }
  if (outputs == 0)
    return sn_status_make(SN_CODE_DATA,
                          "%s: nothing in it looks like a label or a target (one number, word or "
                          "class a row); write outputs: {NAME: {path: /..., task: ...}} by hand",
                          g->file);
  if (inputs == 0)
    return sn_status_make(SN_CODE_DATA,
                          "%s: no dataset of %lld rows is left to predict from; see sennit inspect",
                          g->file, (long long)g->rows);
  return SN_OK;
}

sn_status guess_make(const char *file, const cJSON *json, guess *out) {
  *out = (guess){.file = file};
  sn_status status = read_items(json, out);
  if (status != SN_OK) return status;
  find_stream(out);
  if (out->stream != NULL) return SN_OK;
  choose_rows(out);
  if (out->rows == 0)
    return sn_status_make(SN_CODE_DATA,
                          "%s: no dataset has one row for each example; see sennit inspect", file);
  choose_lengths(out);
  choose_outputs(out);
  return choose_inputs(out);
}

void guess_free(guess *g) {
  sn__free(g->items);
  *g = (guess){.file = NULL};
}
