/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows come when: pieces, windows and orders, from the seed and the epoch alone. */
#include <string.h>

#include "core/rng.h"
#include "io/loader_impl.h"

enum {
  LEAST_PIECES = 8,  /* in a window: what its batches are mixed from */
  SPLIT_PIECES = 12, /* the same where chunks are cut: neighbours may be of one chunk */
  PLAIN_PIECE = 4096 /* rows of a piece when all fields are in memory */
};

/* ---- pieces ---------------------------------------------------------------------------------- */

static int64_t row_bytes(const sn_loader *l, int64_t row) {
  int64_t bytes = 0;
  for (size_t i = 0; i < l->n_fields; ++i) {
    const sn__load_field *f = &l->fields[i];
    int64_t n = f->data->ragged ? f->data->lengths[row] : 1;
    bytes += n * (int64_t)f->element_bytes + (f->data->ragged ? 8 : 0) + (f->weighted ? 4 : 0);
  }
  return bytes;
}

/* The field whose chunks shape the pieces: the largest packed one, or the largest at all. */
static const sn__field_data *lead_field(const sn_loader *l) {
  const sn__field_data *lead = NULL;
  double most = -1;
  for (size_t i = 0; i < l->n_fields; ++i) {
    const sn__field_data *fd = l->fields[i].data;
    if (fd->coded) continue;
    const sn__h5_column_info *info = sn__h5_column_info_of(fd->sources[0].items);
    double bytes = 0;
    for (size_t k = 0; k < l->dataset->n_files; ++k)
      bytes += (double)fd->sources[k].item_count * (double)fd->sources[k].item_width *
               (double)info->item_bytes;
    if (info->packed) bytes += 0x1p60;
    if (bytes > most) {
      most = bytes;
      lead = fd;
    }
  }
  return lead;
}

/* The band in which a row begins, as a number that differs between files. */
static int64_t band_of(const sn_loader *l, const sn__field_data *lead, int64_t row,
                       size_t *source) {
  if (lead == NULL) return row / PLAIN_PIECE;
  while (*source + 1 < l->dataset->n_files && row >= lead->sources[*source + 1].row0)
    ++*source;
  const sn__source *s = &lead->sources[*source];
  int64_t i = row - s->row0;
  if (s->form == SN__FORM_STREAM) i *= lead->field.window;
  if (s->first != NULL) i = s->first[i];
  return ((int64_t)*source << 48) + i / s->band_items;
}

static sn_status find_pieces(const sn_loader *l, sn__pieces *p) {
  const sn__field_data *lead = lead_field(l);
  size_t capacity = 0, source = 0;
  int64_t before = -1;
  for (int64_t i = 0; i < l->n_rows; ++i) {
    int64_t band = band_of(l, lead, l->rows[i], &source);
    if (i > 0 && band == before) continue;
    before = band;
    if (!sn__grow((void **)&p->starts, &capacity, p->count + 2, sizeof *p->starts))
      return sn_status_out_of_memory();
    p->starts[p->count++] = i;
  }
  p->starts[p->count] = l->n_rows;
  return SN_OK;
}

/* Cuts each piece into `parts`, so that windows are mixed from more chunks than fit whole. */
static sn_status split_pieces(sn__pieces *p, int64_t parts) {
  size_t need;
  if (!sn__size_mul(p->count, (size_t)parts, &need) || !sn__size_add(need, 1, &need))
    return sn_status_out_of_memory();
  int64_t *starts = sn__calloc(need, sizeof *starts);
  if (starts == NULL) return sn_status_out_of_memory();
  size_t count = 0;
  for (size_t i = 0; i < p->count; ++i) {
    int64_t rows = p->starts[i + 1] - p->starts[i];
    int64_t cuts = rows < parts ? rows : parts;
    for (int64_t k = 0; k < cuts; ++k)
      starts[count++] = p->starts[i] + rows / cuts * k + (k < rows % cuts ? k : rows % cuts);
  }
  starts[count] = p->starts[p->count];
  sn__free(p->starts);
  p->starts = starts;
  p->count = count;
  return SN_OK;
}

static sn_status cut_windows(const sn_loader *l, sn__pieces *p, int64_t budget) {
  p->ends = sn__calloc(p->count + 1, sizeof *p->ends);
  if (p->ends == NULL) return sn_status_out_of_memory();
  int64_t bytes = 0;
  p->windows = 0;
  for (size_t i = 0; i < p->count; ++i) {
    int64_t piece = 0;
    for (int64_t r = p->starts[i]; r < p->starts[i + 1]; ++r)
      piece += row_bytes(l, l->rows[r]);
    if (i == 0 || (bytes + piece > budget && !p->resident)) {
      p->ends[p->windows++] = (int64_t)i;
      bytes = 0;
    }
    bytes += piece;
  }
  p->ends[p->windows] = (int64_t)p->count;
  return SN_OK;
}

sn_status sn__pieces_make(const sn_loader *l, sn__pieces *p) {
  SN_TRY(find_pieces(l, p));
  int64_t total = 0, budget = (int64_t)(l->memory / 4);
  for (int64_t i = 0; i < l->n_rows; ++i)
    total += row_bytes(l, l->rows[i]);
  p->resident = total <= budget;
  int64_t windows = p->resident ? 1 : total / budget + 1;
  if (windows > l->n_rows) windows = l->n_rows;
  if ((int64_t)p->count < windows * LEAST_PIECES && !p->resident)
    SN_TRY(split_pieces(p, (windows * SPLIT_PIECES + (int64_t)p->count - 1) / (int64_t)p->count));
  p->windows = windows < (int64_t)p->count ? windows : (int64_t)p->count;
  return l->shuffle ? SN_OK : cut_windows(l, p, budget);
}

void sn__pieces_clear(sn__pieces *p) {
  sn__free(p->starts);
  sn__free(p->ends);
  memset(p, 0, sizeof *p);
}

/* ---- plans ----------------------------------------------------------------------------------- */

enum { KEY_WINDOWS = 0x57, KEY_ORDER = 0x4f };

static uint64_t key_of(int64_t epoch, uint64_t what, int64_t number) {
  return sn__mix64(sn__mix64((uint64_t)epoch) ^ (what << 56)) + (uint64_t)number;
}

/* Each run of as many pieces as there are windows gives one to every window, in random order; every
 * second run in the order of the one before turned round, so that no window gets later rows than
 * another on the whole. */
static void deal(const sn_loader *l, int64_t epoch, int64_t *deck, int64_t *window_of) {
  int64_t windows = l->pieces.windows, count = (int64_t)l->pieces.count;
  for (int64_t run = 0; run * windows < count; ++run) {
    if (run % 2 == 0) sn__rng_permutation(l->seed, key_of(epoch, KEY_WINDOWS, run), windows, deck);
    for (int64_t k = 0; k < windows && run * windows + k < count; ++k)
      window_of[run * windows + k] = run % 2 == 0 ? deck[k] : windows - 1 - deck[k];
  }
}

static sn_status plan_pieces(const sn_loader *l, int64_t epoch, sn__plan *p) {
  int64_t count = (int64_t)l->pieces.count, windows = p->windows;
  if (!l->shuffle) {
    memcpy(p->piece0, l->pieces.ends, (size_t)(windows + 1) * sizeof *p->piece0);
    for (int64_t i = 0; i < count; ++i)
      p->pieces[i] = i;
    return SN_OK;
  }
  int64_t *deck = sn__calloc((size_t)(windows + count), sizeof *deck);
  if (deck == NULL) return sn_status_out_of_memory();
  int64_t *window_of = deck + windows;
  deal(l, epoch, deck, window_of);
  for (int64_t i = 0; i < count; ++i)
    ++p->piece0[window_of[i] + 1];
  for (int64_t w = 0; w < windows; ++w) {
    p->piece0[w + 1] += p->piece0[w];
    deck[w] = p->piece0[w];
  }
  for (int64_t i = 0; i < count; ++i)
    p->pieces[deck[window_of[i]]++] = i;
  sn__free(deck);
  return SN_OK;
}

sn_status sn__plan_make(const sn_loader *l, int64_t epoch, sn__plan *out) {
  sn__plan p = {.windows = l->pieces.windows};
  p.order0 = sn__calloc((size_t)p.windows + 1, sizeof *p.order0);
  p.piece0 = sn__calloc((size_t)p.windows + 1, sizeof *p.piece0);
  p.pieces = sn__calloc(l->pieces.count, sizeof *p.pieces);
  if (p.order0 == NULL || p.piece0 == NULL || p.pieces == NULL) {
    sn__plan_clear(&p);
    return sn_status_out_of_memory();
  }
  sn_status s = plan_pieces(l, epoch, &p);
  if (s != SN_OK) {
    sn__plan_clear(&p);
    return s;
  }
  for (int64_t w = 0; w < p.windows; ++w) {
    p.order0[w + 1] = p.order0[w];
    for (int64_t i = p.piece0[w]; i < p.piece0[w + 1]; ++i)
      p.order0[w + 1] += l->pieces.starts[p.pieces[i] + 1] - l->pieces.starts[p.pieces[i]];
  }
  *out = p;
  return SN_OK;
}

void sn__plan_clear(sn__plan *p) {
  sn__free(p->order0);
  sn__free(p->piece0);
  sn__free(p->pieces);
  memset(p, 0, sizeof *p);
}

void sn__plan_rows(const sn_loader *l, const sn__plan *p, int64_t window, int64_t *rows) {
  int64_t n = 0;
  for (int64_t i = p->piece0[window]; i < p->piece0[window + 1]; ++i) {
    int64_t first = l->pieces.starts[p->pieces[i]], last = l->pieces.starts[p->pieces[i] + 1];
    memcpy(rows + n, l->rows + first, (size_t)(last - first) * sizeof *rows);
    n += last - first;
  }
}

void sn__plan_order(const sn_loader *l, const sn__plan *p, int64_t epoch, int64_t window,
                    int64_t *order) {
  int64_t n = p->order0[window + 1] - p->order0[window];
  if (l->shuffle) {
    sn__rng_permutation(l->seed, key_of(epoch, KEY_ORDER, window), n, order);
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    order[i] = i;
}

int64_t sn__plan_find(const sn__plan *p, int64_t place) {
  int64_t low = 0, high = p->windows;
  while (low + 1 < high) {
    int64_t mid = low + (high - low) / 2;
    if (p->order0[mid] <= place)
      low = mid;
    else
      high = mid;
  }
  return low;
}
