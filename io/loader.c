/* SPDX-License-Identifier: Apache-2.0 */
/* The loader's calls, and who does what next: copying a batch, decoding a cut of a window, setting
 * up a window. Threads and a waiting caller take the same tasks. */
#include <inttypes.h>
#include <string.h>

#include "core/device/thread.h"
#include "io/loader_impl.h"

enum { MOST_SLOTS = 16, LEAST_SLOTS = 4 };

typedef enum task_kind { TASK_NONE = 0, TASK_COPY, TASK_FILL, TASK_SETUP } task_kind;

typedef struct task {
  task_kind kind;
  sn__window *window;
  sn__slot *slot;
  int64_t number; /* fill: of the task; copy: first place in the window */
  int64_t rows;
} task;

/* ---- choosing (under the lock) --------------------------------------------------------------- */

static sn__window *window_at(sn_loader *l, int64_t index) {
  for (int i = 0; i < SN__LOADER_WINDOWS; ++i)
    if (l->windows[i].state != SN__WINDOW_FREE && l->windows[i].index == index)
      return &l->windows[i];
  return NULL;
}

static bool choose_copy(sn_loader *l, task *out) {
  int64_t end = l->floor + l->n_slots;
  for (int64_t b = l->given; b < end && b < l->batches; ++b) {
    sn__slot *slot = &l->slots[b % l->n_slots];
    if (slot->index != b) {
      slot->index = b;
      slot->rows = l->n_rows - b * l->batch < l->batch ? l->n_rows - b * l->batch : l->batch;
      slot->done = 0;
      slot->busy = slot->ready = false;
      sn_status_free(slot->status);
      slot->status = SN_OK;
      for (size_t i = 0; i < l->n_fields; ++i)
        slot->fields[i].elements = 0;
    }
    if (slot->busy || slot->ready) continue;
    int64_t place = b * l->batch + slot->done;
    sn__window *w = window_at(l, sn__plan_find(&l->plan, place));
    if (w == NULL || w->state != SN__WINDOW_READY) return false; /* later ones need later windows */
    int64_t left = w->order0 + w->rows - place, rows = slot->rows - slot->done;
    slot->busy = true;
    *out = (task){.kind = TASK_COPY,
                  .window = w,
                  .slot = slot,
                  .number = place - w->order0,
                  .rows = rows < left ? rows : left};
    return true;
  }
  return false;
}

static bool choose_fill(sn_loader *l, task *out) {
  sn__window *first = NULL;
  for (int i = 0; i < SN__LOADER_WINDOWS; ++i) {
    sn__window *w = &l->windows[i];
    if (w->state == SN__WINDOW_FILLING && w->next_task < w->tasks &&
        (first == NULL || w->index < first->index))
      first = w;
  }
  if (first == NULL) return false;
  *out = (task){.kind = TASK_FILL, .window = first, .number = first->next_task++};
  return true;
}

static bool choose_setup(sn_loader *l, task *out) {
  if (l->next_window == l->plan.windows) return false;
  for (int i = 0; i < SN__LOADER_WINDOWS; ++i) {
    sn__window *w = &l->windows[i];
    if (w->state != SN__WINDOW_FREE) continue;
    w->state = SN__WINDOW_SETUP;
    w->index = l->next_window++;
    *out = (task){.kind = TASK_SETUP, .window = w};
    return true;
  }
  return false;
}

static bool choose(sn_loader *l, task *out) {
  if (l->paused || l->quit || !l->started) return false;
  return choose_copy(l, out) || choose_fill(l, out) || choose_setup(l, out);
}

/* ---- doing ----------------------------------------------------------------------------------- */

/* Keeps the failure of the first task, so that it does not depend on threads. */
static void window_failed(sn__window *w, int64_t number, sn_status status) {
  if (status == SN_OK) return;
  if (w->status == SN_OK || number < w->failed_task) {
    sn_status_free(w->status);
    w->status = status;
    w->failed_task = number;
  } else {
    sn_status_free(status);
  }
}

static void end_setup(sn_loader *l, sn__window *w, sn_status status) {
  w->order0 = l->plan.order0[w->index]; /* also where setting up failed early */
  w->rows = l->plan.order0[w->index + 1] - w->order0;
  int64_t first = l->given * l->batch; /* rows before an epoch's first batch are not wanted */
  w->left = w->order0 + w->rows - (first > w->order0 ? first : w->order0);
  window_failed(w, -1, status);
  w->state = w->status != SN_OK ? SN__WINDOW_READY : SN__WINDOW_FILLING;
}

static void end_copy(sn_loader *l, const task *t, sn_status status) {
  sn__slot *slot = t->slot;
  slot->done += t->rows;
  if (slot->status == SN_OK)
    slot->status = status;
  else
    sn_status_free(status);
  slot->busy = false;
  slot->ready = slot->done == slot->rows;
  t->window->left -= t->rows;
  if (t->window->left == 0 && !(l->pieces.resident && t->window->status == SN_OK)) {
    sn_status_free(t->window->status);
    t->window->status = SN_OK;
    t->window->state = SN__WINDOW_FREE;
  }
}

/* Called with the lock held; released while the work is done. */
static void perform(sn_loader *l, const task *t, sn__reading *reading) {
  ++l->running;
  sn__window *w = t->window;
  bool failed = w->status != SN_OK && t->kind == TASK_COPY;
  sn_status status = failed ? sn_status_copy(w->status) : SN_OK;
  bool skip = failed || (t->kind == TASK_COPY && t->slot->status != SN_OK);
  pthread_mutex_unlock(&l->lock);
  if (t->kind == TASK_SETUP)
    status = sn__window_setup(l, &l->plan, w);
  else if (t->kind == TASK_FILL)
    status = sn__window_fill(l, &l->plan, l->epoch, w, t->number, reading);
  else if (!skip) {
    status = sn__slot_copy(l, t->slot, w, t->number, t->rows);
    if (status == SN_OK && t->slot->done + t->rows == t->slot->rows) sn__slot_finish(l, t->slot);
  }
  pthread_mutex_lock(&l->lock);
  --l->running;
  if (t->kind == TASK_SETUP) {
    end_setup(l, w, status);
  } else if (t->kind == TASK_FILL) {
    window_failed(w, t->number, status);
    if (++w->done_tasks == w->tasks) w->state = SN__WINDOW_READY;
  } else {
    end_copy(l, t, status);
  }
  pthread_cond_broadcast(&l->changed);
}

typedef struct worker_start {
  sn_loader *loader;
  int number;
} worker_start;

static void *worker(void *arg) {
  worker_start start = *(worker_start *)arg;
  sn__free(arg);
  sn_loader *l = start.loader;
  pthread_mutex_lock(&l->lock);
  while (!l->quit) {
    task t;
    if (choose(l, &t))
      perform(l, &t, &l->reading[start.number]);
    else
      pthread_cond_wait(&l->changed, &l->lock);
  }
  pthread_mutex_unlock(&l->lock);
  return NULL;
}

/* ---- creating -------------------------------------------------------------------------------- */

static sn_status make_fields(sn_loader *l, const sn_preparation *p) {
  l->fields = sn__calloc(l->dataset->n_fields, sizeof *l->fields);
  if (l->fields == NULL) return sn_status_out_of_memory();
  l->n_fields = l->dataset->n_fields;
  for (size_t i = 0; i < l->n_fields; ++i) {
    sn__load_field *f = &l->fields[i];
    f->data = &l->dataset->fields[i];
    SN_TRY(sn__preparation_match(p, f->data, &f->prep));
    size_t number = sn_dtype_size(f->data->field.dtype);
    f->element_bytes = number * (f->data->coded || f->data->ids ? 1 : (size_t)f->data->width);
    f->weighted = sn__field_weighted(&f->prep->field);
    if (!f->data->coded) continue;
    SN_TRY(sn__map_keys(f->prep, f->data, &f->map));
    SN_TRY(sn__check_codes(f->prep, f->data, l->dataset->n_files, f->map, l->rows, l->n_rows));
  }
  return SN_OK;
}

/* As many batches ahead as a quarter of the memory holds. */
static sn_status make_slots(sn_loader *l) {
  double bytes = 0;
  for (size_t i = 0; i < l->n_fields; ++i) {
    const sn__load_field *f = &l->fields[i];
    double per_row = f->data->ragged ? (double)f->data->elements / (double)l->dataset->rows : 1;
    bytes += ((double)f->element_bytes + 8) * per_row * (double)l->batch;
  }
  double fit = (double)l->memory / 4 / bytes;
  l->n_slots = fit > MOST_SLOTS ? MOST_SLOTS : fit < LEAST_SLOTS ? LEAST_SLOTS : (int64_t)fit;
  l->slots = sn__calloc((size_t)l->n_slots, sizeof *l->slots);
  if (l->slots == NULL) return sn_status_out_of_memory();
  for (int64_t i = 0; i < l->n_slots; ++i) {
    sn__slot *s = &l->slots[i];
    s->index = -1;
    s->fields = sn__calloc(l->n_fields, sizeof *s->fields);
    s->views = sn__calloc(l->n_fields, sizeof *s->views);
    if (s->fields == NULL || s->views == NULL) return sn_status_out_of_memory();
  }
  return SN_OK;
}

static sn_status make_threads(sn_loader *l, int threads) {
  l->reading = sn__calloc((size_t)threads + 1, sizeof *l->reading);
  l->threads = sn__calloc((size_t)threads + 1, sizeof *l->threads);
  if (l->reading == NULL || l->threads == NULL) return sn_status_out_of_memory();
  l->n_reading = threads + 1;
  size_t cache = l->memory / 4 / (size_t)(threads + 1);
  for (int i = 0; i <= threads; ++i)
    SN_TRY(sn__reading_init(&l->reading[i], cache > 0 ? cache : 1));
  for (int i = 0; i < threads; ++i) {
    worker_start *start = sn__calloc(1, sizeof *start);
    if (start == NULL) return sn_status_out_of_memory();
    *start = (worker_start){l, i};
    sn_status s = sn__thread_create(&l->threads[i], worker, start, "sn-loader");
    if (s != SN_OK) {
      sn__free(start);
      return s;
    }
    ++l->n_threads;
  }
  return SN_OK;
}

static sn_status check_options(const sn_loader_options *o) {
  if (o->batch < 1)
    return sn_status_make(SN_CODE_INVALID, "batch %" PRId64 ": at least 1", o->batch);
  if (o->threads > SN__LOADER_MOST_THREADS)
    return sn_status_make(SN_CODE_INVALID, "%d loader threads: at most %d", o->threads,
                          SN__LOADER_MOST_THREADS);
  return SN_OK;
}

static sn_status create(sn_loader *l, const sn_preparation *p, const int64_t *rows, int64_t n_rows,
                        int threads) {
  int64_t *owned = NULL;
  SN_TRY(sn__rows_all(l->dataset, &rows, &n_rows, &owned));
  l->rows = owned;
  if (owned == NULL) {
    l->rows = sn__calloc((size_t)n_rows, sizeof *l->rows);
    if (l->rows == NULL) return sn_status_out_of_memory();
    memcpy(l->rows, rows, (size_t)n_rows * sizeof *rows);
  }
  l->n_rows = n_rows;
  if (l->batch > n_rows) l->batch = n_rows;
  l->batches = n_rows / l->batch + (n_rows % l->batch != 0);
  SN_TRY(make_fields(l, p));
  SN_TRY(sn__pieces_make(l, &l->pieces));
  SN_TRY(make_slots(l));
  return make_threads(l, threads);
}

sn_status sn_loader_create(const sn_dataset *dataset, const sn_preparation *preparation,
                           const int64_t *rows, int64_t n_rows, const sn_loader_options *options,
                           sn_loader **out_loader) {
  sn_loader_options known, *o = &known;
  SN_TRY(sn_options_read(options, sizeof known, "sn_loader_create", &known));
  SN_TRY(check_options(o));
  sn_loader *l = sn__calloc(1, sizeof *l);
  if (l == NULL) return sn_status_out_of_memory();
  pthread_mutex_init(&l->lock, NULL);
  pthread_cond_init(&l->changed, NULL);
  l->dataset = dataset;
  l->batch = o->batch;
  l->shuffle = o->shuffle;
  l->seed = o->seed;
  l->memory = o->memory > 0 ? o->memory : (size_t)256 << 20;
  if (l->memory < 4096) l->memory = 4096;
  int threads = o->threads == 0 ? 1 : o->threads < 0 ? 0 : o->threads;
  sn_status s = create(l, preparation, rows, n_rows, threads);
  if (s != SN_OK) {
    sn_loader_free(l);
    return s;
  }
  *out_loader = l;
  return SN_OK;
}

void sn_loader_free(sn_loader *l) {
  if (l == NULL) return;
  pthread_mutex_lock(&l->lock);
  l->quit = true;
  pthread_cond_broadcast(&l->changed);
  pthread_mutex_unlock(&l->lock);
  for (int i = 0; i < l->n_threads; ++i)
    pthread_join(l->threads[i], NULL);
  for (int i = 0; l->reading != NULL && i < l->n_reading; ++i)
    sn__reading_clear(&l->reading[i]);
  for (int i = 0; i < SN__LOADER_WINDOWS; ++i)
    sn__window_clear(l, &l->windows[i]);
  for (int64_t i = 0; l->slots != NULL && i < l->n_slots; ++i)
    sn__slot_clear(l, &l->slots[i]);
  for (size_t i = 0; i < l->n_fields; ++i)
    sn__free(l->fields[i].map);
  sn__plan_clear(&l->plan);
  sn__pieces_clear(&l->pieces);
  sn__free(l->slots);
  sn__free(l->fields);
  sn__free(l->rows);
  sn__free(l->reading);
  sn__free(l->threads);
  pthread_cond_destroy(&l->changed);
  pthread_mutex_destroy(&l->lock);
  sn__free(l);
}

/* ---- epochs ---------------------------------------------------------------------------------- */

int64_t sn_loader_batches(const sn_loader *l) {
  return l->batches;
}

/* With nothing running. Decoded rows that hold everything stay; only their order is new. */
static void reset(sn_loader *l, int64_t epoch, int64_t batch, sn__plan *plan) {
  sn__plan_clear(&l->plan);
  l->plan = *plan;
  l->epoch = epoch;
  l->given = batch;
  l->floor = batch;
  for (int64_t i = 0; i < l->n_slots; ++i)
    l->slots[i].index = -1;
  int64_t first = batch < l->batches ? batch * l->batch : l->n_rows;
  l->next_window = first < l->n_rows ? sn__plan_find(&l->plan, first) : l->plan.windows;
  for (int i = 0; i < SN__LOADER_WINDOWS; ++i) {
    sn__window *w = &l->windows[i];
    bool keep = l->pieces.resident && w->state == SN__WINDOW_READY && w->status == SN_OK;
    if (keep) {
      sn__plan_rows(l, &l->plan, 0, w->row_numbers.bytes);
      sn__plan_order(l, &l->plan, epoch, 0, w->order.bytes);
      w->left = l->n_rows - first;
      l->next_window = l->plan.windows;
    } else {
      sn_status_free(w->status);
      w->status = SN_OK;
      w->state = SN__WINDOW_FREE;
    }
  }
}

sn_status sn_loader_start(sn_loader *l, int64_t epoch, int64_t batch) {
  if (epoch < 0 || batch < 0 || batch > l->batches)
    return sn_status_make(SN_CODE_INVALID,
                          "epoch %" PRId64 ", batch %" PRId64 ": an epoch has batches 0..%" PRId64,
                          epoch, batch, l->batches);
  sn__plan plan;
  SN_TRY(sn__plan_make(l, epoch, &plan));
  pthread_mutex_lock(&l->lock);
  l->paused = true;
  while (l->running > 0)
    pthread_cond_wait(&l->changed, &l->lock);
  reset(l, epoch, batch, &plan);
  l->paused = false;
  l->started = true;
  pthread_cond_broadcast(&l->changed);
  pthread_mutex_unlock(&l->lock);
  return SN_OK;
}

sn_status sn_loader_next(sn_loader *l, const sn_batch **out_batch) {
  sn_status status = SN_OK;
  pthread_mutex_lock(&l->lock);
  if (!l->started) {
    status = sn_status_make(SN_CODE_INVALID, "no epoch has been started: call sn_loader_start()");
  } else if (l->given == l->batches) {
    *out_batch = NULL;
  } else {
    int64_t floor = l->given - 1;
    if (floor > l->floor) {
      l->floor = floor;
      pthread_cond_broadcast(&l->changed);
    }
    sn__slot *slot = &l->slots[l->given % l->n_slots];
    while (slot->index != l->given || !slot->ready) {
      task t;
      if (choose(l, &t))
        perform(l, &t, &l->reading[l->n_reading - 1]);
      else
        pthread_cond_wait(&l->changed, &l->lock);
    }
    if (slot->status != SN_OK) {
      status = sn_status_copy(slot->status);
    } else {
      *out_batch = &slot->batch;
      ++l->given;
    }
  }
  pthread_mutex_unlock(&l->lock);
  return status;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static void scan_order(const sn_loader *l, const sn__plan *plan, int64_t epoch, size_t field,
                       int64_t *rows, int64_t *order, int64_t *most, int64_t *longest) {
  const int64_t *lengths = l->fields[field].data->lengths;
  int64_t place = 0, elements = 0;
  *most = *longest = 0;
  for (int64_t w = 0; w < plan->windows; ++w) {
    int64_t n = plan->order0[w + 1] - plan->order0[w];
    sn__plan_rows(l, plan, w, rows);
    sn__plan_order(l, plan, epoch, w, order);
    for (int64_t i = 0; i < n; ++i) {
      int64_t length = lengths != NULL ? lengths[rows[order[i]]] : 1;
      elements += length;
      if (length > *longest) *longest = length;
      if (++place % l->batch == 0 || place == l->n_rows) {
        if (elements > *most) *most = elements;
        elements = 0;
      }
    }
  }
}

sn_status sn_loader_largest(const sn_loader *l, int64_t epoch, size_t field, int64_t *out_elements,
                            int64_t *out_longest) {
  if (field >= l->n_fields || epoch < 0)
    return sn_status_make(SN_CODE_INVALID, "no field %zu or no epoch %" PRId64, field, epoch);
  sn__plan plan;
  SN_TRY(sn__plan_make(l, epoch, &plan));
  int64_t most = 0;
  for (int64_t w = 0; w < plan.windows; ++w)
    if (plan.order0[w + 1] - plan.order0[w] > most) most = plan.order0[w + 1] - plan.order0[w];
  int64_t *rows = sn__calloc((size_t)most * 2, sizeof *rows);
  if (rows != NULL)
    scan_order(l, &plan, epoch, field, rows, rows + most, out_elements, out_longest);
  sn__plan_clear(&plan);
  bool ok = rows != NULL;
  sn__free(rows);
  return ok ? SN_OK : sn_status_out_of_memory();
}
