/* SPDX-License-Identifier: Apache-2.0 */
/* Fitting: means and deviations, tables of classes and ids, class weights. Sums run over cuts in
 * their order, so that any number of threads gives the same bits. */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/nearest.h"
#include "io/preparation_impl.h"

typedef struct fit {
  const sn_dataset *dataset;
  const sn__field_data *fd;
  sn__prep_field *pf;
  const int64_t *rows;
  int64_t n_rows;
  sn__cuts cuts;
} fit;

/* ---- means and deviations -------------------------------------------------------------------- */

enum { ROUND = 64, ROUND_NUMBERS = 1 << 22 };

typedef struct moments {
  fit *fit;
  size_t first, round; /* the first cut of this round; cuts of a round */
  double *means;       /* [round][width] */
  double *squares;
  int64_t counts[ROUND];
} moments;

static sn_status not_finite(const fit *f, const sn__cut *cut, int64_t at, double value) {
  int64_t row, step;
  char where[600];
  sn__cut_locate(f->fd, cut, f->rows, at / f->fd->width, &row, &step);
  sn__field_where(f->fd, f->dataset->n_files, row, step, where, sizeof where);
  return sn_status_make(SN_CODE_DATA, "%s, column %" PRId64 ": %s: replace it or take the row out",
                        where, at % f->fd->width, value != value ? "NaN" : "infinite");
}

/* Rows whose target is missing do not count: they are closed up. Elements left come back. */
static int64_t drop_missing(const fit *f, double *values, int64_t count) {
  int64_t width = f->fd->width, kept = 0;
  if (f->fd->field.missing == NULL) return count;
  for (int64_t i = 0; i < count; ++i) {
    bool missing = false;
    for (int64_t j = 0; j < width; ++j)
      missing |= sn__number_missing(values[i * width + j], f->fd->missing);
    if (missing) continue;
    memmove(values + kept * width, values + i * width, (size_t)width * sizeof *values);
    ++kept;
  }
  return kept;
}

static sn_status moments_of_cut(void *arg, int64_t index, sn__reading *reading) {
  moments *m = arg;
  const fit *f = m->fit;
  const sn__cut *cut = &f->cuts.items[m->first + (size_t)index];
  int64_t width = f->fd->width, n = cut->elements;
  double *x, *mean = m->means + index * width, *square = m->squares + index * width;
  SN_TRY(sn__reading_need(reading, 2, (size_t)(n * width) * sizeof *x, (void **)&x));
  SN_TRY(sn__field_read(f->fd, cut, f->rows, reading, SN_F64, x));
  int64_t whole = n;
  n = drop_missing(f, x, n);
  int64_t bad = sn__first_nonfinite(SN_F64, x, n * width);
  if (bad < n * width && n == whole) return not_finite(f, cut, bad, x[bad]);
  if (bad < n * width) {
    SN_TRY(sn__field_read(f->fd, cut, f->rows, reading, SN_F64, x)); /* for the row's number */
    for (bad = 0; bad < whole * width; ++bad)
      if (!isfinite(x[bad]) && !sn__number_missing(x[bad], f->fd->missing)) break;
    return not_finite(f, cut, bad, x[bad]);
  }
  m->counts[index] = n;
  for (int64_t j = 0; j < width; ++j)
    mean[j] = square[j] = 0;
  if (n == 0) return SN_OK;
  /* Counted from the first row, so that a constant has exactly itself as mean and no deviation. */
  for (int64_t i = 1; i < n; ++i)
    for (int64_t j = 0; j < width; ++j)
      mean[j] += x[i * width + j] - x[j];
  for (int64_t j = 0; j < width; ++j)
    mean[j] = x[j] + mean[j] / (double)n;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < width; ++j) {
      double d = x[i * width + j] - mean[j];
      square[j] += d * d;
    }
  return SN_OK;
}

/* Chan, Golub and LeVeque's update of mean and sum of squares. */
static void merge(const moments *m, size_t cuts, int64_t width, double *mean, double *square,
                  int64_t *count) {
  for (size_t c = 0; c < cuts; ++c) {
    int64_t n = m->counts[c];
    if (n == 0) continue;
    double a = (double)*count, b = (double)n;
    const double *mc = m->means + (int64_t)c * width, *sc = m->squares + (int64_t)c * width;
    for (int64_t j = 0; j < width; ++j) {
      double d = mc[j] - mean[j];
      if (*count == 0) d = 0, mean[j] = mc[j];
      mean[j] += d * (b / (a + b));
      square[j] += sc[j] + d * d * (a * b / (a + b));
    }
    *count += n;
  }
}

static sn_status fit_rounds(fit *f, moments *m, int64_t *out_count) {
  int64_t width = f->fd->width;
  for (m->first = 0; m->first < f->cuts.count; m->first += m->round) {
    size_t left = f->cuts.count - m->first, n = left < m->round ? left : m->round;
    SN_TRY(sn__in_parts((int64_t)n, moments_of_cut, m));
    merge(m, n, width, f->pf->mean, f->pf->deviation, out_count);
  }
  return SN_OK;
}

/* The moments of a channel, over all pixels, at each of its pixels. */
static void join_pixels(sn__prep_field *pf, int64_t width, int64_t count) {
  const int64_t channels = pf->facts.channels, pixels = width / channels;
  for (int64_t c = 0; c < channels; ++c) {
    double mean = 0, square = 0;
    for (int64_t i = 0; i < pixels; ++i)
      mean += pf->mean[i * channels + c] / (double)pixels;
    for (int64_t i = 0; i < pixels; ++i) {
      double d = pf->mean[i * channels + c] - mean;
      square += pf->deviation[i * channels + c] + (double)count * (d * d);
    }
    for (int64_t i = 0; i < pixels; ++i) {
      pf->mean[i * channels + c] = mean;
      pf->deviation[i * channels + c] = square;
    }
  }
}

static sn_status fit_moments(fit *f) {
  int64_t width = f->fd->width, count = 0;
  sn__prep_field *pf = f->pf;
  size_t round = width < ROUND_NUMBERS / ROUND ? ROUND : 1 + ROUND_NUMBERS / (size_t)width, numbers;
  if (round > f->cuts.count) round = f->cuts.count;
  moments m = {.fit = f, .round = round};
  if (!sn__size_mul(round + 1, (size_t)width, &numbers)) return sn_status_out_of_memory();
  pf->mean = sn__calloc((size_t)width, sizeof *pf->mean);
  pf->deviation = sn__calloc((size_t)width, sizeof *pf->deviation);
  m.means = sn__calloc(numbers, sizeof *m.means);
  m.squares = sn__calloc(numbers, sizeof *m.squares);
  sn_status s = SN_OK;
  if (pf->mean == NULL || pf->deviation == NULL || m.means == NULL || m.squares == NULL)
    s = sn_status_out_of_memory();
  else
    s = fit_rounds(f, &m, &count);
  sn__free(m.means);
  sn__free(m.squares);
  SN_TRY(s);
  if (count == 0)
    return sn_status_make(
        SN_CODE_DATA,
        "%s: %s: the training rows hold nothing to fit the normalisation on: leave it "
        "out, or give normalize: none",
        sn__h5_file_path(f->fd->sources[0].file), f->fd->field.path);
  if (f->fd->field.kind == SN_FIELD_IMAGE) {
    join_pixels(pf, width, count);
    count *= width / pf->facts.channels;
  }
  for (int64_t j = 0; j < width; ++j) {
    double d = sqrt(pf->deviation[j] / (double)count);
    pf->deviation[j] = d > 1e-300 ? d : 0;
    if (!isfinite(d) || !isfinite(pf->mean[j]))
      return sn_status_make(SN_CODE_DATA,
                            "%s: %s: column %" PRId64 ": its numbers are too large to be squared: "
                            "scale them down",
                            sn__h5_file_path(f->fd->sources[0].file), f->fd->field.path, j);
  }
  return sn__prep_field_scale(pf);
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Takes keys that occur (counts > 0) into the table, in order. */
static sn_status table_of(sn__table *t, const sn__keys *keys, const int64_t *counts) {
  t->keys = sn__calloc((size_t)keys->count + 1, sizeof *t->keys);
  t->rows = sn__calloc((size_t)keys->count + 1, sizeof *t->rows);
  if (t->keys == NULL || t->rows == NULL) return sn_status_out_of_memory();
  sn__table all = {.keys = keys->items, .count = keys->count};
  sn_status s = sn__table_finish(&all);
  for (int64_t i = 0; s == SN_OK && i < keys->count; ++i) {
    int32_t k = all.sorted[i];
    if (counts[k] == 0) continue;
    char *name = sn__strdup(keys->items[k].name);
    if (name == NULL) {
      s = sn_status_out_of_memory();
      break;
    }
    t->rows[t->count] = counts[k];
    t->keys[t->count++] = (sn__key){keys->items[k].text, keys->items[k].number, name};
  }
  sn__free(all.sorted);
  sn__free(all.direct);
  SN_TRY(s);
  return sn__table_finish(t);
}

/* The classes that a model file names. Over numbers, names that are none stand for 0, 1, ... */
static sn_status table_given(const sn_field *f, sn__table *t, const sn__keys *keys) {
  bool text = keys->count == 0 || keys->items[0].text, numbers = true;
  int64_t whole;
  for (size_t i = 0; i < f->n_classes; ++i)
    numbers &= sn__parse_whole(f->classes[i], &whole);
  t->keys = sn__calloc(f->n_classes, sizeof *t->keys);
  t->rows = sn__calloc(f->n_classes, sizeof *t->rows);
  if (t->keys == NULL || t->rows == NULL) return sn_status_out_of_memory();
  for (size_t i = 0; i < f->n_classes; ++i) {
    sn__key k = {text, (int64_t)i, sn__strdup(f->classes[i])};
    if (k.name == NULL) return sn_status_out_of_memory();
    if (text) k.number = 0;
    if (!text && numbers && sn__parse_whole(f->classes[i], &whole)) k.number = whole;
    t->keys[t->count++] = k;
  }
  return sn_status_context(sn__table_finish(t), "labels of %s", f->path);
}

static sn_status fit_codes(fit *f) {
  const sn__field_data *fd = f->fd;
  sn__table *t = &f->pf->table;
  int64_t *counts = sn__calloc((size_t)fd->keys.count + 1, sizeof *counts);
  if (counts == NULL) return sn_status_out_of_memory();
  for (int64_t i = 0; i < f->n_rows; ++i)
    if (fd->codes[f->rows[i]] >= 0) ++counts[fd->codes[f->rows[i]]];
  sn_status s;
  if (fd->field.n_classes > 0) {
    s = table_given(&fd->field, t, &fd->keys);
    for (int64_t i = 0; s == SN_OK && i < fd->keys.count; ++i) {
      const sn__key *k = &fd->keys.items[i];
      int64_t at = sn__table_find(t, k->text, k->number, k->name);
      if (at >= 0) t->rows[at] += counts[i];
    }
  } else {
    s = table_of(t, &fd->keys, counts);
  }
  sn__free(counts);
  if (s == SN_OK && t->count == 0)
    s = sn_status_make(
        SN_CODE_DATA,
        "%s: %s: every label of the training rows is missing: leave the output out, or "
        "train on rows that have it",
        sn__h5_file_path(fd->sources[0].file), fd->field.path);
  return s;
}

/* ---- ids ------------------------------------------------------------------------------------- */

enum { SMALL_IDS = 65536 };

typedef struct id_count {
  const fit *fit;
  const sn__field_data *fd;
  pthread_mutex_t lock;
  sn__keys keys; /* shared */
  int64_t *counts;
  size_t capacity;
  bool counted; /* elements of this pass count for class weights */
} id_count;

static sn_status add_ids(id_count *c, int64_t id, int64_t n) {
  int64_t index;
  SN_TRY(sn__keys_add(&c->keys, false, id, NULL, 0, &index));
  size_t had = c->capacity;
  if (!sn__grow((void **)&c->counts, &c->capacity, (size_t)c->keys.count, sizeof *c->counts))
    return sn_status_out_of_memory();
  memset(c->counts + had, 0, (c->capacity - had) * sizeof *c->counts);
  if (c->counted) c->counts[index] += n;
  return SN_OK;
}

static int by_number(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static sn_status ids_of_cut(void *arg, int64_t index, sn__reading *reading) {
  id_count *c = arg;
  const sn__cut *cut = &c->fit->cuts.items[index];
  int64_t n = cut->elements, *ids, *small, others = 0;
  SN_TRY(sn__reading_need(reading, 2, (size_t)(n + SMALL_IDS) * sizeof *ids, (void **)&small));
  ids = small + SMALL_IDS;
  SN_TRY(sn__field_read(c->fd, cut, c->fit->rows, reading, SN_I64, ids));
  memset(small, 0, SMALL_IDS * sizeof *small);
  for (int64_t i = 0; i < n; ++i)
    if (ids[i] >= 0 && ids[i] < SMALL_IDS)
      ++small[ids[i]];
    else
      ids[others++] = ids[i];
  qsort(ids, (size_t)others, sizeof *ids, by_number);
  sn_status s = SN_OK;
  pthread_mutex_lock(&c->lock);
  for (int64_t i = 0; s == SN_OK && i < SMALL_IDS; ++i)
    if (small[i] > 0) s = add_ids(c, i, small[i]);
  for (int64_t i = 0, next; s == SN_OK && i < others; i = next) {
    for (next = i; next < others && ids[next] == ids[i];)
      ++next;
    s = add_ids(c, ids[i], next - i);
  }
  pthread_mutex_unlock(&c->lock);
  return s;
}

/* A stream and its next elements see the same ids, so that they have the same table. */
static sn_status count_ids(fit *f, id_count *c) {
  sn__field_data twin = *f->fd;
  int passes = f->fd->field.kind == SN_FIELD_STREAM ? 2 : 1;
  for (int i = 0; i < passes; ++i) {
    twin.field.role = i == 0 ? SN_FIELD_INPUT : SN_FIELD_NEXT;
    c->counted = twin.field.role == f->fd->field.role;
    f->cuts.count = 0;
    SN_TRY(sn__field_cut(&twin, f->dataset->n_files, f->rows, f->n_rows, &f->cuts));
    c->fd = &twin;
    sn_status s = sn__in_parts((int64_t)f->cuts.count, ids_of_cut, c);
    c->fd = f->fd;
    SN_TRY(s);
  }
  return SN_OK;
}

static sn_status fit_ids(fit *f) {
  id_count c = {.fit = f};
  pthread_mutex_init(&c.lock, NULL);
  sn_status s = count_ids(f, &c);
  int64_t *ones = NULL;
  if (s == SN_OK && c.keys.count == 0)
    s = sn_status_make(SN_CODE_DATA, "%s: %s: the training rows hold no ids",
                       sn__h5_file_path(f->fd->sources[0].file), f->fd->field.path);
  if (s == SN_OK) { /* an id seen only by the other pass is in the table too */
    ones = sn__calloc((size_t)c.keys.count, sizeof *ones);
    if (ones == NULL) s = sn_status_out_of_memory();
  }
  for (int64_t i = 0; ones != NULL && i < c.keys.count; ++i)
    ones[i] = 1;
  if (ones != NULL) s = table_of(&f->pf->table, &c.keys, ones);
  for (int64_t k = 0; ones != NULL && s == SN_OK && k < f->pf->table.count; ++k)
    f->pf->table.rows[k] =
        c.counts[sn__keys_find(&c.keys, false, f->pf->table.keys[k].number, NULL, 0)];
  sn__free(ones);
  sn__free(c.counts);
  sn__keys_clear(&c.keys);
  pthread_mutex_destroy(&c.lock);
  return s;
}

/* ---- class weights --------------------------------------------------------------------------- */

static sn_status unknown_class(const sn__prep_field *pf, const char *name) {
  const sn__table *t = &pf->table;
  const char **names = sn__calloc((size_t)t->count + 1, sizeof *names);
  if (names == NULL) return sn_status_out_of_memory();
  for (int64_t k = 0; k < t->count; ++k)
    names[k] = t->keys[k].name;
  const char *near = sn__nearest(name, names, (size_t)t->count);
  sn_status s =
      sn_status_make(SN_CODE_CONFIG, "class_weights: %s has no class '%s'%s%s%s", pf->field.path,
                     name, near != NULL ? "; did you mean '" : "; use the labels in it",
                     near != NULL ? near : "", near != NULL ? "'?" : "");
  sn__free(names);
  return s;
}

static sn_status fit_weights(sn__prep_field *pf) {
  const sn_field *f = &pf->field;
  const sn__table *t = &pf->table;
  if (!f->balanced && f->n_class_weights == 0) return SN_OK;
  pf->class_weights = sn__calloc((size_t)t->count, sizeof *pf->class_weights);
  if (pf->class_weights == NULL) return sn_status_out_of_memory();
  int64_t rows = 0;
  for (int64_t k = 0; k < t->count; ++k) {
    pf->class_weights[k] = 1;
    rows += t->rows[k];
  }
  for (int64_t k = 0; f->balanced && k < t->count; ++k)
    if (t->rows[k] > 0)
      pf->class_weights[k] = (float)((double)rows / ((double)t->count * (double)t->rows[k]));
  if (f->balanced) return SN_OK;
  if (f->class_weight_names == NULL && (int64_t)f->n_class_weights != t->count)
    return sn_status_make(SN_CODE_CONFIG,
                          "class_weights: %s has %" PRId64 " classes, %zu weights are given: give "
                          "one for each",
                          f->path, t->count, f->n_class_weights);
  for (size_t i = 0; i < f->n_class_weights; ++i) {
    int64_t k = (int64_t)i, whole = 0;
    if (f->class_weight_names != NULL) {
      const char *name = f->class_weight_names[i];
      for (k = 0; k < t->count && strcmp(t->keys[k].name, name) != 0;)
        ++k;
      if (k == t->count)
        k = sn__parse_whole(name, &whole) ? sn__table_find(t, false, whole, NULL) : -1;
      if (k < 0) return unknown_class(pf, name);
    }
    pf->class_weights[k] = (float)f->class_weights[i];
  }
  for (int64_t k = 0; k < t->count; ++k)
    if (pf->class_weights[k] > 0) return SN_OK;
  return sn_status_make(SN_CODE_CONFIG,
                        "class_weights: every class of %s weighs 0; give one more, or take the "
                        "output out",
                        f->path);
}

/* ---- all fields ------------------------------------------------------------------------------ */

static sn_status fit_field(sn_preparation *p, fit *f) {
  const sn__field_data *fd = f->fd;
  sn__prep_field *pf = f->pf;
  SN_TRY(sn__field_copy(&p->arena, &fd->field, &pf->field));
  pf->missing = fd->missing;
  pf->missing_number = fd->missing_number;
  pf->facts = (sn_field_facts){.features = fd->coded || fd->ids ? 0 : fd->width,
                               .ragged = fd->ragged,
                               .elements = fd->elements,
                               .longest = fd->longest,
                               .empty = fd->empty,
                               .height = fd->image[0],
                               .width = fd->image[1],
                               .channels = fd->image[2]};
  if (fd->coded) SN_TRY(fit_codes(f));
  if (fd->ids) SN_TRY(fit_ids(f));
  if (fd->field.normalize) {
    f->cuts.count = 0;
    SN_TRY(sn__field_cut(fd, f->dataset->n_files, f->rows, f->n_rows, &f->cuts));
    SN_TRY(fit_moments(f));
  }
  pf->facts.classes = pf->table.count;
  return fit_weights(pf);
}

sn_status sn_preparation_fit(const sn_dataset *d, const int64_t *rows, int64_t n_rows,
                             sn_preparation **out_preparation) {
  int64_t *owned = NULL;
  SN_TRY(sn__rows_all(d, &rows, &n_rows, &owned));
  sn_preparation *p = sn__calloc(1, sizeof *p);
  if (p != NULL) p->fields = sn__calloc(d->n_fields, sizeof *p->fields);
  if (p == NULL || p->fields == NULL) {
    sn_preparation_free(p);
    sn__free(owned);
    return sn_status_out_of_memory();
  }
  sn_status s = SN_OK;
  fit f = {.dataset = d, .rows = rows, .n_rows = n_rows};
  for (size_t i = 0; s == SN_OK && i < d->n_fields; ++i) {
    p->n_fields = i + 1;
    f.fd = &d->fields[i];
    f.pf = &p->fields[i];
    s = fit_field(p, &f);
  }
  sn__free(f.cuts.items);
  sn__free(owned);
  if (s != SN_OK) {
    sn_preparation_free(p);
    return s;
  }
  *out_preparation = p;
  return SN_OK;
}
