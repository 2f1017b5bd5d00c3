/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: rows copied out of windows. */
#include <string.h>

#include "io/loader_impl.h"

/* ---- copying --------------------------------------------------------------------------------- */

static void copy_rows(size_t bytes, const char *from, const int64_t *order, int64_t rows,
                      char *to) {
  if (bytes == 4) {
    for (int64_t i = 0; i < rows; ++i)
      memcpy(to + i * 4, from + order[i] * 4, 4);
    return;
  }
  for (int64_t i = 0; i < rows; ++i)
    memcpy(to + (size_t)i * bytes, from + (size_t)order[i] * bytes, bytes);
}

static sn_status copy_dense(const sn__load_field *f, const sn__window_field *wf, sn__slot *slot,
                            sn__slot_field *sf, const int64_t *order, int64_t rows) {
  size_t bytes = f->element_bytes;
  SN_TRY(sn__room_need(&sf->data, (size_t)slot->rows * bytes, (size_t)slot->done * bytes));
  copy_rows(bytes, wf->data.bytes, order, rows,
            (char *)sf->data.bytes + (size_t)slot->done * bytes);
  if (f->weighted) {
    SN_TRY(sn__room_need(&sf->weights, (size_t)slot->rows * 4, (size_t)slot->done * 4));
    copy_rows(4, wf->weights.bytes, order, rows, (char *)sf->weights.bytes + slot->done * 4);
  }
  sf->elements += rows;
  return SN_OK;
}

static sn_status copy_ragged(const sn__load_field *f, const sn__window_field *wf, sn__slot *slot,
                             sn__slot_field *sf, const int64_t *order, int64_t rows) {
  const int64_t *from = wf->offsets.bytes;
  size_t bytes = f->element_bytes;
  SN_TRY(sn__room_need(&sf->offsets, (size_t)(slot->rows + 1) * sizeof(int64_t),
                       (size_t)(slot->done + 1) * sizeof(int64_t) * (slot->done > 0)));
  int64_t *offsets = sf->offsets.bytes, total = sf->elements;
  offsets[0] = 0;
  for (int64_t i = 0; i < rows; ++i) {
    total += from[order[i] + 1] - from[order[i]];
    offsets[slot->done + i + 1] = total;
  }
  SN_TRY(sn__room_need(&sf->data, (size_t)total * bytes, (size_t)sf->elements * bytes));
  if (f->weighted) SN_TRY(sn__room_need(&sf->weights, (size_t)total * 4, (size_t)sf->elements * 4));
  for (int64_t i = 0; i < rows; ++i) {
    size_t n = (size_t)(from[order[i] + 1] - from[order[i]]);
    size_t at = (size_t)from[order[i]], to = (size_t)offsets[slot->done + i];
    memcpy((char *)sf->data.bytes + to * bytes, (const char *)wf->data.bytes + at * bytes,
           n * bytes);
    if (f->weighted)
      memcpy((float *)sf->weights.bytes + to, (const float *)wf->weights.bytes + at, n * 4);
  }
  sf->elements = total;
  return SN_OK;
}

sn_status sn__slot_copy(const sn_loader *l, sn__slot *slot, const sn__window *w, int64_t first,
                        int64_t rows) {
  const int64_t *order = (const int64_t *)w->order.bytes + first, *numbers = w->row_numbers.bytes;
  SN_TRY(sn__room_need(&slot->row_numbers, (size_t)slot->rows * sizeof(int64_t),
                       (size_t)slot->done * sizeof(int64_t)));
  int64_t *out = (int64_t *)slot->row_numbers.bytes + slot->done;
  for (int64_t i = 0; i < rows; ++i)
    out[i] = numbers[order[i]];
  for (size_t i = 0; i < l->n_fields; ++i) {
    const sn__load_field *f = &l->fields[i];
    SN_TRY((f->data->ragged ? copy_ragged : copy_dense)(f, &w->fields[i], slot, &slot->fields[i],
                                                        order, rows));
  }
  return SN_OK;
}

/* ---- views ----------------------------------------------------------------------------------- */

void sn__slot_finish(const sn_loader *l, sn__slot *slot) {
  for (size_t i = 0; i < l->n_fields; ++i) {
    const sn__slot_field *sf = &slot->fields[i];
    bool ragged = l->fields[i].data->ragged;
    slot->views[i] = (sn_batch_field){.data = sf->data.bytes,
                                      .offsets = ragged ? sf->offsets.bytes : NULL,
                                      .elements = sf->elements,
                                      .weights = l->fields[i].weighted ? sf->weights.bytes : NULL};
  }
  slot->batch = (sn_batch){.rows = slot->rows,
                           .row_numbers = slot->row_numbers.bytes,
                           .index = slot->index,
                           .fields = slot->views};
}

void sn__slot_clear(const sn_loader *l, sn__slot *slot) {
  for (size_t i = 0; slot->fields != NULL && i < l->n_fields; ++i) {
    sn__room_clear(&slot->fields[i].data);
    sn__room_clear(&slot->fields[i].weights);
    sn__room_clear(&slot->fields[i].offsets);
  }
  sn__free(slot->fields);
  sn__free(slot->views);
  sn__room_clear(&slot->row_numbers);
  sn_status_free(slot->status);
  memset(slot, 0, sizeof *slot);
}
