/* SPDX-License-Identifier: Apache-2.0 */
/* Reading rows of a field: cut at the bands of what is stored, so that a chunk is decoded once, and
 * in parallel. */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/device/team.h"
#include "core/device/thread.h"
#include "io/dataset_impl.h"

#define CUT_BYTES   ((int64_t)1 << 18) /* at least, where rows allow */
#define CUT_DECODED ((int64_t)1 << 16) /* the same of packed bytes: work for a third of a ms */
#define CUT_NUMBERS ((int64_t)1 << 21) /* at most, where items allow */

/* ---- one thread's own ------------------------------------------------------------------------ */

sn_status sn__reading_init(sn__reading *r, size_t cache_bytes) {
  memset(r, 0, sizeof *r);
  return sn__h5_reader_create(cache_bytes, &r->reader);
}

void sn__reading_clear(sn__reading *r) {
  sn__h5_reader_free(r->reader);
  for (size_t i = 0; i < sizeof r->scratch / sizeof *r->scratch; ++i)
    sn__free(r->scratch[i]);
  sn__free(r->runs);
  memset(r, 0, sizeof *r);
}

sn_status sn__reading_need(sn__reading *r, int which, size_t size, void **out) {
  if (size > r->scratch_size[which] || r->scratch[which] == NULL) {
    sn__free(r->scratch[which]); /* what it held is not needed any more */
    r->scratch_size[which] = 0;
    r->scratch[which] = sn__alloc_aligned(size > 0 ? size : 1, 64);
    if (r->scratch[which] == NULL) return sn_status_out_of_memory();
    r->scratch_size[which] = size;
  }
  *out = r->scratch[which];
  return SN_OK;
}

/* ---- items ----------------------------------------------------------------------------------- */

static void item_range(const sn__field_data *fd, const sn__source *s, int64_t row, int64_t *out_at,
                       int64_t *out_count) {
  int64_t i = row - s->row0;
  switch (s->form) {
  case SN__FORM_TABLE:
  case SN__FORM_PADDED:
    *out_at = i;
    *out_count = 1;
    break;
  case SN__FORM_OFFSETS:
  case SN__FORM_VLEN:
    *out_at = s->first[i];
    *out_count = s->first[i + 1] - s->first[i];
    break;
  default: /* SN__FORM_STREAM */
    *out_at = i * fd->field.window + (fd->field.role == SN_FIELD_NEXT);
    *out_count = fd->field.window;
    break;
  }
}

/* ---- cuts ------------------------------------------------------------------------------------ */

typedef struct cutter {
  sn__cut cut;
  int64_t band, cost;
  bool open;
} cutter;

static sn_status close_cut(cutter *c, sn__cuts *cuts) {
  if (!c->open) return SN_OK;
  c->open = false;
  if (!sn__grow((void **)&cuts->items, &cuts->capacity, cuts->count + 1, sizeof *cuts->items))
    return sn_status_out_of_memory();
  cuts->items[cuts->count++] = c->cut;
  c->cut.to += c->cut.elements;
  return SN_OK;
}

/* Before `take` more items of `band`: the cut that they go on, or a new one that begins with row
 * number `place` after `skip` of its items. True in `out_fresh` when the cut has none of the band
 * yet. */
static sn_status cut_for(cutter *c, const sn__source *s, int32_t source, int64_t band, int64_t take,
                         int64_t place, int64_t skip, sn__cuts *cuts, bool *out_fresh) {
  int64_t enough = sn__h5_column_info_of(s->items)->packed ? CUT_DECODED : CUT_BYTES;
  *out_fresh = !c->open || band != c->band;
  if (c->open && (c->cut.source != source || (*out_fresh && c->cost >= enough) ||
                  (c->cut.items + take) * s->item_width > CUT_NUMBERS))
    SN_TRY(close_cut(c, cuts));
  if (!c->open) {
    c->cut = (sn__cut){.row0 = place, .skip = skip, .to = c->cut.to, .source = source};
    c->open = true;
    c->cost = 0;
    *out_fresh = true;
  }
  c->band = band;
  return SN_OK;
}

/* What was cut for goes in. */
static void cut_take(cutter *c, const sn__source *s, bool fresh, int64_t items, int64_t elements,
                     int64_t row1) {
  const sn__h5_column_info *info = sn__h5_column_info_of(s->items);
  int64_t item_bytes = s->item_width * (int64_t)info->item_bytes;
  c->cost += info->packed ? (fresh ? s->band_items * item_bytes : 0) : items * item_bytes;
  c->cut.row1 = row1;
  c->cut.items += items;
  c->cut.elements += elements;
}

/* One row's items, at the end of the cut or of new ones. */
static sn_status cut_row(const sn__field_data *fd, const sn__source *s, int32_t source,
                         int64_t place, int64_t row, cutter *c, sn__cuts *cuts) {
  int64_t at, left, done = 0;
  item_range(fd, s, row, &at, &left);
  while (left > 0) {
    int64_t band = at / s->band_items, take = (band + 1) * s->band_items - at;
    int64_t most = CUT_NUMBERS / s->item_width;
    if (take > left) take = left;
    if (take > most) take = most > 0 ? most : 1;
    bool fresh;
    SN_TRY(cut_for(c, s, source, band, take, place, done, cuts, &fresh));
    cut_take(c, s, fresh, take, s->form == SN__FORM_PADDED ? fd->lengths[row] : take, place + 1);
    at += take;
    left -= take;
    done += take;
  }
  return SN_OK;
}

/* Rows of a table, one item each, as many as lie in the band of the first: as cut_row() would, one
 * by one. */
static sn_status cut_table(const sn__source *s, int32_t source, const int64_t *rows, int64_t n_rows,
                           int64_t place, cutter *c, sn__cuts *cuts, int64_t *out_next) {
  int64_t band = (rows[place] - s->row0) / s->band_items;
  int64_t end =
      s->row0 + (s->rows < (band + 1) * s->band_items ? s->rows : (band + 1) * s->band_items);
  int64_t stop = place + 1, most = CUT_NUMBERS / s->item_width;
  while (stop < n_rows && rows[stop] < end)
    ++stop;
  while (place < stop) {
    bool fresh;
    SN_TRY(cut_for(c, s, source, band, 1, place, 0, cuts, &fresh));
    int64_t take = most - c->cut.items;
    if (take > stop - place) take = stop - place;
    if (take < 1) take = 1;
    place += take;
    cut_take(c, s, fresh, take, take, place);
  }
  *out_next = stop;
  return SN_OK;
}

sn_status sn__field_cut(const sn__field_data *fd, size_t n_sources, const int64_t *rows,
                        int64_t n_rows, sn__cuts *cuts) {
  cutter c = {0};
  size_t k = 0;
  for (int64_t i = 0; i < n_rows;) {
    while (k + 1 < n_sources && rows[i] >= fd->sources[k + 1].row0)
      ++k;
    const sn__source *s = &fd->sources[k];
    if (s->form == SN__FORM_TABLE) {
      SN_TRY(cut_table(s, (int32_t)k, rows, n_rows, i, &c, cuts, &i));
    } else {
      SN_TRY(cut_row(fd, s, (int32_t)k, i, rows[i], &c, cuts));
      ++i;
    }
  }
  return close_cut(&c, cuts);
}

void sn__cut_locate(const sn__field_data *fd, const sn__cut *cut, const int64_t *rows,
                    int64_t element, int64_t *out_row, int64_t *out_step) {
  const sn__source *s = &fd->sources[cut->source];
  int64_t skip = cut->skip, i = cut->row0;
  for (; i < cut->row1; ++i) {
    int64_t at = 0, n = 0;
    item_range(fd, s, rows[i], &at, &n);
    if (s->form == SN__FORM_PADDED) n = fd->lengths[rows[i]];
    n -= skip;
    if (element < n) break;
    element -= n;
    skip = 0;
  }
  *out_row = rows[i < cut->row1 ? i : cut->row1 - 1];
  *out_step = fd->ragged ? element + skip : -1;
}

/* ---- reading a cut --------------------------------------------------------------------------- */

/* Runs (pairs of first item and count) that lie in one band, one after another at `out`. */
static sn_status read_runs(const sn__source *s, sn__reading *r, size_t runs, sn_dtype dtype,
                           char *out) {
  const sn__h5_column_info *info = sn__h5_column_info_of(s->items);
  const int64_t *run = r->runs;
  size_t item = (size_t)s->item_width * sn_dtype_size(dtype);
  int64_t band = run[0] / s->band_items, first, last, covered = 0;
  sn__h5_column_band(s->items, band, &first, &last);
  if (runs == 1 && run[0] == first && run[1] == last - first) {
    for (int64_t p = 0; p < info->parts; ++p)
      SN_TRY(sn__h5_column_read_part(s->items, r->reader, band, p, dtype, out));
    return SN_OK;
  }
  for (size_t i = 0; i < runs; ++i)
    covered += run[2 * i + 1];
  int64_t span = run[2 * runs - 2] + run[2 * runs - 1] - run[0];
  if (!info->packed && runs > 1 && covered * 2 >= span) { /* one read costs less than many */
    void *all = NULL;
    SN_TRY(sn__reading_need(r, 0, (size_t)span * item, &all));
    SN_TRY(sn__h5_column_read(s->items, r->reader, run[0], span, dtype, all));
    for (size_t i = 0; i < runs; ++i) {
      size_t size = (size_t)run[2 * i + 1] * item;
      memcpy(out, (char *)all + (size_t)(run[2 * i] - run[0]) * item, size);
      out += size;
    }
    return SN_OK;
  }
  for (size_t i = 0; i < runs; ++i) {
    SN_TRY(sn__h5_column_read(s->items, r->reader, run[2 * i], run[2 * i + 1], dtype, out));
    out += (size_t)run[2 * i + 1] * item;
  }
  return SN_OK;
}

/* Rows of a table that follow each other: band by band. */
static sn_status read_table(const sn__source *s, int64_t at, int64_t left, sn__reading *r,
                            sn_dtype dtype, char *out) {
  if (!sn__grow((void **)&r->runs, &r->runs_capacity, 2, sizeof *r->runs))
    return sn_status_out_of_memory();
  while (left > 0) {
    int64_t take = (at / s->band_items + 1) * s->band_items - at;
    if (take > left) take = left;
    r->runs[0] = at;
    r->runs[1] = take;
    SN_TRY(read_runs(s, r, 1, dtype, out));
    out += (size_t)(take * s->item_width) * sn_dtype_size(dtype);
    at += take;
    left -= take;
  }
  return SN_OK;
}

static sn_status read_items(const sn__field_data *fd, const sn__cut *cut, const int64_t *rows,
                            sn__reading *r, sn_dtype dtype, char *out) {
  const sn__source *s = &fd->sources[cut->source];
  if (s->form == SN__FORM_TABLE && rows[cut->row1 - 1] - rows[cut->row0] == cut->items - 1)
    return read_table(s, rows[cut->row0] - s->row0, cut->items, r, dtype, out);
  size_t item = (size_t)s->item_width * sn_dtype_size(dtype), runs = 0;
  int64_t left = cut->items, in_runs = 0, band = -1;
  for (int64_t i = cut->row0; i < cut->row1 && left > 0; ++i) {
    int64_t at = 0, n = 0;
    item_range(fd, s, rows[i], &at, &n);
    if (i == cut->row0) {
      at += cut->skip;
      n -= cut->skip;
    }
    while (n > 0 && left > 0) {
      int64_t take = (at / s->band_items + 1) * s->band_items - at;
      if (take > n) take = n;
      if (take > left) take = left;
      if (runs > 0 && at / s->band_items != band) {
        SN_TRY(read_runs(s, r, runs, dtype, out));
        out += (size_t)in_runs * item;
        runs = 0;
        in_runs = 0;
      }
      band = at / s->band_items;
      if (runs > 0 && r->runs[2 * runs - 2] + r->runs[2 * runs - 1] == at) {
        r->runs[2 * runs - 1] += take;
      } else {
        if (!sn__grow((void **)&r->runs, &r->runs_capacity, 2 * runs + 2, sizeof *r->runs))
          return sn_status_out_of_memory();
        r->runs[2 * runs] = at;
        r->runs[2 * runs + 1] = take;
        ++runs;
      }
      in_runs += take;
      at += take;
      n -= take;
      left -= take;
    }
  }
  return runs > 0 ? read_runs(s, r, runs, dtype, out) : SN_OK;
}

sn_status sn__field_read(const sn__field_data *fd, const sn__cut *cut, const int64_t *rows,
                         sn__reading *r, sn_dtype dtype, void *out) {
  const sn__source *s = &fd->sources[cut->source];
  int64_t steps = s->item_width / fd->width;
  if (s->form != SN__FORM_PADDED || cut->elements == cut->items * steps)
    return read_items(fd, cut, rows, r, dtype, out);
  void *padded = NULL;
  size_t number = sn_dtype_size(dtype), item = (size_t)s->item_width * number;
  SN_TRY(sn__reading_need(r, 1, (size_t)cut->items * item, &padded));
  SN_TRY(read_items(fd, cut, rows, r, dtype, padded));
  if (padded == NULL) return sn_status_out_of_memory();
  char *to = out;
  for (int64_t i = cut->row0; i < cut->row1; ++i) {
    size_t size = (size_t)(fd->lengths[rows[i]] * fd->width) * number;
    memcpy(to, (char *)padded + (size_t)(i - cut->row0) * item, size);
    to += size;
  }
  return SN_OK;
}

/* ---- words and numbers ----------------------------------------------------------------------- */

void sn__field_where(const sn__field_data *fd, size_t n_sources, int64_t row, int64_t step,
                     char *buffer, size_t size) {
  size_t k = 0;
  while (k + 1 < n_sources && row >= fd->sources[k + 1].row0)
    ++k;
  const sn__source *s = &fd->sources[k];
  int n = snprintf(buffer, size, "%s: dataset %s: row %" PRId64, sn__h5_file_path(s->file),
                   fd->field.path, row - s->row0);
  if (step >= 0 && n > 0 && (size_t)n < size)
    snprintf(buffer + n, size - (size_t)n, ", element %" PRId64, step);
}

int64_t sn__first_nonfinite(sn_dtype dtype, const void *values, int64_t count) {
  enum { BLOCK = 1024 };
  for (int64_t i = 0; i < count; i += BLOCK) {
    int64_t end = i + BLOCK < count ? i + BLOCK : count;
    int bad = 0; /* no branch within a block: it vectorises */
    if (dtype == SN_F32)
      for (int64_t j = i; j < end; ++j)
        bad |= !(fabsf(((const float *)values)[j]) <= 3.402823466e38f);
    else
      for (int64_t j = i; j < end; ++j)
        bad |= !(fabs(((const double *)values)[j]) <= 1.7976931348623157e308);
    for (int64_t j = i; bad && j < end; ++j) {
      double v = dtype == SN_F32 ? (double)((const float *)values)[j] : ((const double *)values)[j];
      if (!isfinite(v)) return j;
    }
  }
  return count;
}

/* ---- parts ----------------------------------------------------------------------------------- */

enum { MOST_PART_THREADS = 8 };

typedef struct parts {
  sn__part_fn fn;
  void *arg;
  sn__reading reading[MOST_PART_THREADS];
  pthread_mutex_t lock;
  _Atomic int64_t failed; /* lowest index so far */
  sn_status status;
} parts;

static void run_part(void *arg, int64_t index, int worker) {
  parts *p = arg;
  if (atomic_load(&p->failed) < index) return;
  sn_status s = p->fn(p->arg, index, &p->reading[worker]);
  if (s == SN_OK) return;
  pthread_mutex_lock(&p->lock);
  if (index < atomic_load(&p->failed)) {
    atomic_store(&p->failed, index);
    sn_status_free(p->status);
    p->status = s;
  } else {
    sn_status_free(s);
  }
  pthread_mutex_unlock(&p->lock);
}

sn_status sn__in_parts(int64_t count, sn__part_fn fn, void *arg) {
  int threads = sn__cpu_count();
  if (threads > MOST_PART_THREADS) threads = MOST_PART_THREADS;
  if (threads > count) threads = count > 0 ? (int)count : 1;
  parts *p = sn__calloc(1, sizeof *p);
  if (p == NULL) return sn_status_out_of_memory();
  p->fn = fn;
  p->arg = arg;
  p->failed = INT64_MAX;
  pthread_mutex_init(&p->lock, NULL);
  sn_status s = SN_OK;
  sn__team *team = NULL;
  for (int i = 0; s == SN_OK && i < threads; ++i)
    s = sn__reading_init(&p->reading[i], 0);
  if (s == SN_OK && threads > 1) s = sn__team_create(threads, &team);
  if (s == SN_OK) {
    sn__team_run(team, count, run_part, p);
    s = p->status;
  }
  sn__team_free(team);
  for (int i = 0; i < threads; ++i)
    sn__reading_clear(&p->reading[i]);
  pthread_mutex_destroy(&p->lock);
  sn__free(p);
  return s;
}
