/* SPDX-License-Identifier: Apache-2.0 */
/* Windows: rows decoded, normalised and numbered as batches hold them. */
#include <math.h>
#include <string.h>

#include "io/loader_impl.h"

/* ---- memory ---------------------------------------------------------------------------------- */

sn_status sn__room_need(sn__room *room, size_t need, size_t keep) {
  if (need <= room->size && room->bytes != NULL) return SN_OK;
  size_t size = keep > 0 && need < room->size * 2 ? room->size * 2 : need;
  void *bytes = sn__alloc_aligned(size > 0 ? size : 64, 64);
  if (bytes == NULL) return sn_status_out_of_memory();
  if (keep > 0) memcpy(bytes, room->bytes, keep);
  sn__free(room->bytes);
  room->bytes = bytes;
  room->size = size > 0 ? size : 64;
  return SN_OK;
}

void sn__room_clear(sn__room *room) {
  sn__free(room->bytes);
  memset(room, 0, sizeof *room);
}

void sn__window_clear(const sn_loader *l, sn__window *w) {
  sn__room_clear(&w->row_numbers);
  sn__room_clear(&w->order);
  for (size_t i = 0; w->fields != NULL && i < l->n_fields; ++i) {
    sn__window_field *f = &w->fields[i];
    sn__room_clear(&f->data);
    sn__room_clear(&f->weights);
    sn__room_clear(&f->offsets);
    sn__free(f->cuts.items);
  }
  sn__free(w->fields);
  sn_status_free(w->status);
  memset(w, 0, sizeof *w);
}

/* ---- setting up ------------------------------------------------------------------------------ */

static bool weighs_elements(const sn__load_field *f) {
  return f->weighted && f->data->ragged;
}

static sn_status setup_field(const sn_loader *l, const sn__load_field *f, sn__window *w,
                             sn__window_field *wf) {
  const int64_t *rows = w->row_numbers.bytes;
  int64_t elements = w->rows;
  if (f->data->ragged) {
    SN_TRY(sn__room_need(&wf->offsets, (size_t)(w->rows + 1) * sizeof(int64_t), 0));
    int64_t *offsets = wf->offsets.bytes;
    offsets[0] = 0;
    for (int64_t i = 0; i < w->rows; ++i)
      offsets[i + 1] = offsets[i] + f->data->lengths[rows[i]];
    elements = offsets[w->rows];
  }
  size_t bytes;
  if (!sn__size_mul((size_t)elements, f->element_bytes, &bytes)) return sn_status_out_of_memory();
  SN_TRY(sn__room_need(&wf->data, bytes, 0));
  if (f->weighted)
    SN_TRY(sn__room_need(&wf->weights, (size_t)(weighs_elements(f) ? elements : w->rows) * 4, 0));
  wf->task0 = w->tasks;
  wf->cuts.count = 0;
  if (!f->data->coded)
    SN_TRY(sn__field_cut(f->data, l->dataset->n_files, rows, w->rows, &wf->cuts));
  w->tasks += f->data->coded ? 1 : (int64_t)wf->cuts.count;
  return SN_OK;
}

sn_status sn__window_setup(const sn_loader *l, const sn__plan *plan, sn__window *w) {
  w->order0 = plan->order0[w->index];
  w->rows = plan->order0[w->index + 1] - w->order0;
  w->next_task = w->done_tasks = 0;
  w->tasks = 1; /* the order: drawing it takes as long as decoding some chunks */
  if (w->fields == NULL) w->fields = sn__calloc(l->n_fields, sizeof *w->fields);
  if (w->fields == NULL) return sn_status_out_of_memory();
  SN_TRY(sn__room_need(&w->row_numbers, (size_t)w->rows * sizeof(int64_t), 0));
  SN_TRY(sn__room_need(&w->order, (size_t)w->rows * sizeof(int64_t), 0));
  sn__plan_rows(l, plan, w->index, w->row_numbers.bytes);
  for (size_t i = 0; i < l->n_fields; ++i)
    SN_TRY(setup_field(l, &l->fields[i], w, &w->fields[i]));
  return SN_OK;
}

/* ---- filling --------------------------------------------------------------------------------- */

static void put_id(sn_dtype dtype, void *out, int64_t i, int64_t id) {
  if (dtype == SN_I32)
    ((int32_t *)out)[i] = (int32_t)id;
  else
    ((int64_t *)out)[i] = id;
}

static sn_status fill_codes(const sn__load_field *f, sn__window *w, sn__window_field *wf) {
  const int64_t *rows = w->row_numbers.bytes;
  float *weights = f->weighted ? wf->weights.bytes : NULL;
  for (int64_t i = 0; i < w->rows; ++i) {
    int32_t code = f->data->codes[rows[i]];
    int64_t id = code >= 0 ? f->map[code] : 0;
    put_id(f->data->field.dtype, wf->data.bytes, i, id);
    if (weights == NULL) continue;
    weights[i] = code < 0 ? 0 : f->prep->class_weights != NULL ? f->prep->class_weights[id] : 1;
  }
  return SN_OK;
}

static sn_status fill_ids(const sn_loader *l, const sn__load_field *f, sn__window *w,
                          sn__window_field *wf, const sn__cut *cut, sn__reading *reading) {
  int64_t *ids;
  const int64_t *rows = w->row_numbers.bytes;
  SN_TRY(sn__reading_need(reading, 2, (size_t)cut->elements * sizeof *ids, (void **)&ids));
  SN_TRY(sn__field_read(f->data, cut, rows, reading, SN_I64, ids));
  float *weights = f->weighted ? wf->weights.bytes : NULL;
  const sn__table *table = &f->prep->table;
  for (int64_t i = 0; i < cut->elements; ++i) {
    int64_t id = sn__table_id(table, ids[i]);
    if (id < 0) {
      int64_t row, step;
      sn__cut_locate(f->data, cut, rows, i, &row, &step);
      return sn__unknown_id(f->data, l->dataset->n_files, row, step, ids[i]);
    }
    put_id(f->data->field.dtype, wf->data.bytes, cut->to + i, id);
    if (weights != NULL)
      weights[cut->to + i] = f->prep->class_weights != NULL ? f->prep->class_weights[id] : 1;
  }
  return SN_OK;
}

/* In place when the numbers are floats already. Always in double: the same bits everywhere. */
static void normalise(sn_dtype dtype, const void *in, int64_t rows, int64_t width,
                      const double *mean, const double *scale, float *out) {
  for (int64_t i = 0; i < rows; ++i, out += width) {
    if (dtype == SN_F32) {
      const float *x = (const float *)in + i * width;
      for (int64_t j = 0; j < width; ++j)
        out[j] = (float)(((double)x[j] - mean[j]) * scale[j]);
    } else {
      const double *x = (const double *)in + i * width;
      for (int64_t j = 0; j < width; ++j)
        out[j] = (float)((x[j] - mean[j]) * scale[j]);
    }
  }
}

/* Weight 0 and numbers that a NaN or a stand-in cannot reach. */
static void drop_missing(const sn__load_field *f, sn_dtype dtype, void *values, int64_t rows,
                         float *weights) {
  int64_t width = f->data->width;
  double missing = dtype == SN_F32 ? (double)(float)f->prep->missing : f->prep->missing;
  for (int64_t i = 0; i < rows; ++i) {
    bool is = false;
    for (int64_t j = i * width; j < (i + 1) * width; ++j)
      is |= sn__number_missing(
          dtype == SN_F32 ? (double)((float *)values)[j] : ((double *)values)[j], missing);
    weights[i] = is ? 0 : 1;
    for (int64_t j = 0; is && j < width; ++j) {
      double rest = f->prep->mean != NULL ? f->prep->mean[j] : 0;
      if (dtype == SN_F32)
        ((float *)values)[i * width + j] = (float)rest;
      else
        ((double *)values)[i * width + j] = rest;
    }
  }
}

static sn_status fill_numbers(const sn__load_field *f, sn__window *w, sn__window_field *wf,
                              const sn__cut *cut, sn__reading *reading) {
  const sn__prep_field *pf = f->prep;
  sn_dtype dtype = sn__read_dtype(f->data, &f->data->sources[cut->source], pf->mean != NULL);
  float *out = (float *)(void *)((char *)wf->data.bytes + (size_t)cut->to * f->element_bytes);
  void *in = out;
  if (dtype != SN_F32)
    SN_TRY(sn__reading_need(reading, 2,
                            (size_t)(cut->elements * f->data->width) * sn_dtype_size(dtype), &in));
  SN_TRY(sn__field_read(f->data, cut, w->row_numbers.bytes, reading, dtype, in));
  float *weights = f->weighted ? (float *)wf->weights.bytes + cut->to : NULL;
  if (weights != NULL) drop_missing(f, dtype, in, cut->elements, weights);
  if (pf->mean != NULL)
    normalise(dtype, in, cut->elements, f->data->width, pf->mean, pf->scale, out);
  for (int64_t i = 0; weights != NULL && i < cut->elements; ++i)
    if (weights[i] == 0) memset(out + i * f->data->width, 0, (size_t)f->data->width * sizeof *out);
  return SN_OK;
}

sn_status sn__window_fill(const sn_loader *l, const sn__plan *plan, int64_t epoch, sn__window *w,
                          int64_t task, sn__reading *reading) {
  if (task == 0) {
    sn__plan_order(l, plan, epoch, w->index, w->order.bytes);
    return SN_OK;
  }
  size_t i = l->n_fields - 1;
  while (w->fields[i].task0 > task)
    --i;
  const sn__load_field *f = &l->fields[i];
  sn__window_field *wf = &w->fields[i];
  if (f->data->coded) return fill_codes(f, w, wf);
  /* A field without elements has no tasks and shares its first number with the next one. */
  const sn__cut *cut = &wf->cuts.items[task - wf->task0];
  if (f->data->ids) return fill_ids(l, f, w, wf, cut, reading);
  return fill_numbers(f, w, wf, cut, reading);
}
