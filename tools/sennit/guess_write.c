/* SPDX-License-Identifier: Apache-2.0 */
/* The guess as a model file, each line with what it stands on. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "tools/sennit/guess.h"

typedef struct text {
  char *bytes;
  size_t size, capacity;
  bool failed;
} text;

SN_PRINTF(2, 3) static void say(text *t, const char *format, ...) {
  char line[2048];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (n < 0 || t->failed) return;
  size_t length = (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
  if (!sn__grow((void **)&t->bytes, &t->capacity, t->size + length + 1, 1)) {
    t->failed = true;
    return;
  }
  memcpy(t->bytes + t->size, line, length + 1);
  t->size += length;
}

/* Paths of strangers: quoted, so that nothing in them is YAML's. */
static const char *quoted(const char *path, char *buffer, size_t size) {
  size_t n = 0;
  buffer[n++] = '"';
  for (; *path != '\0' && n + 8 < size; path++) {
    unsigned char c = (unsigned char)*path;
    if (c == '"' || c == '\\') buffer[n++] = '\\';
    if (c < 0x20 || c == 0x7f) {
      n += (size_t)snprintf(buffer + n, size - n, "\\x%02x", c);
      continue;
    }
    buffer[n++] = (char)c;
  }
  buffer[n++] = '"';
  buffer[n] = '\0';
  return buffer;
}

static bool plain(const char *path) {
  for (; *path != '\0'; path++)
    if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./", *path) == NULL)
      return false;
  return true;
}

static const char *path_of(const char *path, char *buffer, size_t size) {
  return plain(path) ? path : quoted(path, buffer, size);
}

static int64_t features(const guess_item *item) {
  int64_t f = 1;
  for (int d = 1; d < item->rank && d < 8; d++)
    f *= item->dims[d];
  return f;
}

static void say_shape(text *t, const guess_item *item) {
  if (item->form == GUESS_VLEN) {
    say(t, "%lld rows of any length", (long long)item->rows);
    return;
  }
  if (item->form == GUESS_PACKED) say(t, "%lld rows, values ", (long long)item->rows);
  for (int d = 0; d < item->rank && d < 8; d++)
    say(t, "%s%lld", d > 0 ? " x " : "", (long long)item->dims[d]);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

static bool is_category(const guess_item *item) {
  if (item->form == GUESS_WORDS) return true;
  return item->form == GUESS_NUMBERS && item->rank == 1 && item->integers && item->classes > 1 &&
         item->classes <= 32 && item->max - item->min < 64;
}

static bool has_steps(const guess_item *item) {
  return item->form == GUESS_PACKED || item->form == GUESS_VLEN ||
         (item->form == GUESS_NUMBERS && item->rank == 3);
}

/* What the guess stands on, and what else it could be. */
static const char *remark(const guess *g, const guess_item *item) {
  if (has_steps(item) && guess_is_ids(item))
    return "; whole numbers, taken as ids: without embedding they are numbers";
  if (has_steps(item) && guess_is_set(g, item))
    return "; if the order means something: kind: sequence, encoder: lstm, units: 64";
  if (has_steps(item)) return "; if the order means nothing: kind: set";
  if (is_category(item) && item->form == GUESS_NUMBERS)
    return "; few different numbers: where their size counts, kind: dense";
  if (guess_is_image(item)) return "; taken as height, width and channels";
  if (guess_is_channels_first(item))
    return "; flattened: with the channels last it could be kind: image";
  return item->rank > 2 ? "; flattened" : "";
}

static void say_steps(text *t, const guess *g, const guess_item *item) {
  char buffer[1200];
  if (guess_is_ids(item)) {
    say(t, "embedding: 32, encoder: gru, units: 64}\n");
    return;
  }
  if (item->lengths != NULL)
    say(t, "lengths: %s, ", path_of(item->lengths->path, buffer, sizeof buffer));
  if (guess_is_set(g, item))
    say(t, "encoder: deepsets, phi: [64, 64], pool: mean, rho: [64]}\n");
  else
    say(t, "encoder: lstm, units: 64, bidirectional: true, pool: mean}\n");
}

static void say_input(text *t, const guess *g, const guess_item *item) {
  char buffer[1200];
  const char *path = path_of(item->path, buffer, sizeof buffer);
  say(t, "  # ");
  say_shape(t, item);
  say(t, "%s\n  %s: ", remark(g, item), item->name);
  if (has_steps(item)) {
    say(t, "{kind: %s, path: %s, ", guess_is_set(g, item) ? "set" : "sequence", path);
    say_steps(t, g, item);
  } else if (is_category(item)) {
    say(t, "{kind: category, path: %s}\n", path);
  } else if (guess_is_image(item)) {
    say(t, "{kind: image, path: %s, encoder: conv, filters: [32, 64], max_pool: [2], pool: %s}\n",
        path, item->dims[1] * item->dims[2] <= 1024 ? "flatten" : "mean");
  } else {
    say(t, "{kind: dense, path: %s, hidden: [%d]}\n", path, features(item) >= 512 ? 128 : 64);
  }
}

/* ---- outputs --------------------------------------------------------------------------------- */

static bool heavy_tail(const guess_item *item) {
  double far = fmax(item->max - item->mean, item->mean - item->min);
  return item->deviation > 0 && far > 15 * item->deviation;
}

static void say_output(text *t, const guess_item *item) {
  char buffer[1200];
  const char *path = path_of(item->path, buffer, sizeof buffer);
  say(t, "  # ");
  say_shape(t, item);
  if (guess_is_class(item)) {
    say(t, "; %lld classes\n  %s: {path: %s, task: classification}\n", (long long)item->classes,
        item->name, path);
    return;
  }
  if (guess_is_multilabel(item)) {
    say(t, ", each 0 or 1\n  %s: {path: %s, task: multilabel}\n", item->name, path);
    return;
  }
  say(t, ", %.6g to %.6g%s\n", item->min, item->max,
      heavy_tail(item) ? "; a few values lie far out, which Huber's loss bears" : "");
  say(t, "  %s: {path: %s, task: regression%s%s}\n", item->name, path,
      heavy_tail(item) ? ", loss: huber" : "", item->bad > 0 ? ", missing: nan" : "");
}

/* ---- the rest -------------------------------------------------------------------------------- */

static bool used(const guess_item *item) {
  return item->role == GUESS_INPUT || item->role == GUESS_OUTPUT;
}

/* A part of the file is a split when it has everything that is read. */
static bool whole_split(const guess *g, guess_split split) {
  for (size_t i = 0; i < g->count; i++)
    if (used(&g->items[i]) && guess_twin(g, &g->items[i], split) == NULL) return false;
  return g->split;
}

static void say_split(text *t, const guess *g, guess_split split, const char *word) {
  bool first = true;
  if (!whole_split(g, split)) return;
  say(t, "  %s: {", word);
  for (size_t i = 0; i < g->count; i++) {
    char buffer[1200];
    if (!used(&g->items[i])) continue;
    const char *path = guess_twin(g, &g->items[i], split)->path;
    say(t, "%s%s: %s", first ? "" : ", ", g->items[i].name, path_of(path, buffer, sizeof buffer));
    first = false;
  }
  say(t, "}\n");
}

static void say_train(text *t, const guess *g, bool valid) {
  int64_t batch = g->rows >= 2000 ? 64 : g->rows >= 400 ? 32 : g->rows >= 64 ? 16 : 8;
  int64_t epochs = 3000 * batch / g->rows;
  if (epochs < 10) epochs = 10;
  if (epochs > 200) epochs = 200;
  say(t,
      "trunk:\n  hidden: [128]  # over all branches together\n"
      "train:\n  optimizer: adam\n  learning_rate: 0.001\n  schedule: cosine\n  batch: %lld\n"
      "  epochs: %lld\n",
      (long long)batch, (long long)epochs);
  if (!valid)
    say(t, "  valid_fraction: 0.2  # of the rows, set aside to pick the best checkpoint\n");
}

static void say_rows(text *t, const guess *g) {
  say(t, "inputs:\n");
  for (size_t i = 0; i < g->count; i++)
    if (g->items[i].role == GUESS_INPUT) say_input(t, g, &g->items[i]);
  for (size_t i = 0; i < g->count; i++)
    if (g->items[i].why != NULL) say(t, "  # not read: %s %s\n", g->items[i].path, g->items[i].why);
  say(t, "outputs:\n");
  for (size_t i = 0; i < g->count; i++)
    if (g->items[i].role == GUESS_OUTPUT) say_output(t, &g->items[i]);
  bool valid = whole_split(g, GUESS_VALID), test = whole_split(g, GUESS_TEST);
  say_train(t, g, valid);
  if (!valid && !test) return;
  say(t, "data:\n");
  say_split(t, g, GUESS_VALID, "valid");
  say_split(t, g, GUESS_TEST, "test");
}

static const guess_item *stream_of(const guess *g, guess_split split) {
  const guess_item *item = guess_twin(g, g->stream, split);
  return g->stream->split == GUESS_TRAIN ? item : NULL;
}

static void say_stream(text *t, const guess *g) {
  char buffer[1200];
  const guess_item *valid = stream_of(g, GUESS_VALID), *test = stream_of(g, GUESS_TEST);
  say(t,
      "# One long row of %lld ids of %lld kinds: each window of it is an example, and the next id\n"
      "# is what is learned.\n",
      (long long)g->stream->rows, (long long)g->stream->classes);
  say(t,
      "inputs:\n  ids: {kind: stream, path: %s, window: 64, next: true, embedding: 32, encoder: "
      "lstm, units: 128}\noutputs:\n  next: {task: classification}\n"
      "train:\n  optimizer: adam\n  learning_rate: 0.002\n  batch: 32\n  epochs: 5\n",
      path_of(g->stream->path, buffer, sizeof buffer));
  if (valid == NULL) say(t, "  valid_fraction: 0.1  # the last windows\n");
  if (valid == NULL && test == NULL) return;
  say(t, "data:\n");
  if (valid != NULL) say(t, "  valid: {ids: %s}\n", path_of(valid->path, buffer, sizeof buffer));
  if (test != NULL) say(t, "  test: {ids: %s}\n", path_of(test->path, buffer, sizeof buffer));
}

sn_status guess_write(const guess *g, char **out_text) {
  text t = {.bytes = NULL};
  say(&t, "# Guessed by sennit init from names, shapes and types in the data: read it, and change "
          "what is wrong.\n# A misspelt key is an error that names the nearest known one.\n");
  if (g->stream != NULL)
    say_stream(&t, g);
  else
    say_rows(&t, g);
  if (t.failed) {
    sn__free(t.bytes);
    return sn_status_out_of_memory();
  }
  *out_text = t.bytes;
  return SN_OK;
}
