/* SPDX-License-Identifier: Apache-2.0 */
/* How a loader works.
 *
 * The rows lie in pieces: runs of rows that are stored in one chunk of the field that costs most to
 * decode (or in one band, where nothing is packed). An epoch deals the pieces out to windows; a
 * window is decoded as a whole, in parallel, each chunk once, and its rows are drawn in random
 * order. One window holds everything when the data is small; it then stays from epoch to epoch.
 * Otherwise two windows are in memory: batches are drawn from one while the other is filled.
 *
 *     plan      epoch -> pieces of each window            loader_plan.c
 *     window    rows, order, decoded fields               loader_window.c
 *     batch     rows copied out of one window or several  loader_batch.c
 *     loader    who does what next; threads               loader.c
 *
 * All that a batch holds follows from (rows, options, epoch, index): threads only decide when. */
#ifndef SN_IO_LOADER_IMPL_H
#define SN_IO_LOADER_IMPL_H

#include <pthread.h>

#include "io/preparation_impl.h"

/* Memory that grows, aligned for vectors. */
typedef struct sn__room {
  void *bytes;
  size_t size;
} sn__room;

/* At least `need` bytes; the first `keep` are kept. */
SN_MUST_USE sn_status sn__room_need(sn__room *room, size_t need, size_t keep);
void sn__room_clear(sn__room *room);

typedef struct sn__load_field {
  const sn__field_data *data;
  const sn__prep_field *prep;
  int32_t *map;         /* coded: from the dataset's keys to classes */
  size_t element_bytes; /* of a row, or an element of a ragged field, in a batch */
  bool weighted;
} sn__load_field;

/* ---- plan ------------------------------------------------------------------------------------ */

typedef struct sn__plan {
  int64_t windows;
  int64_t *order0; /* [windows + 1]: place in the epoch of each window's first row */
  int64_t *piece0; /* [windows + 1], into pieces */
  int64_t *pieces; /* by window, ascending */
} sn__plan;

typedef struct sn__pieces {
  int64_t *starts; /* [count + 1]: positions in the loader's rows */
  size_t count;
  int64_t windows; /* of an epoch */
  int64_t *ends;   /* unshuffled: [windows + 1], the first piece of each window */
  bool resident;
} sn__pieces;

/* ---- windows --------------------------------------------------------------------------------- */

typedef enum sn__window_state {
  SN__WINDOW_FREE = 0,
  SN__WINDOW_SETUP,
  SN__WINDOW_FILLING,
  SN__WINDOW_READY
} sn__window_state;

typedef struct sn__window_field {
  sn__room data, weights, offsets;
  sn__cuts cuts;
  int64_t task0; /* of its first cut */
} sn__window_field;

typedef struct sn__window {
  sn__window_state state;
  int64_t index, order0, rows;
  sn__room row_numbers, order; /* ascending; place in the window's order -> row in it */
  sn__window_field *fields;
  int64_t tasks, next_task, done_tasks;
  int64_t left; /* rows that no batch has taken */
  sn_status status;
  int64_t failed_task;
} sn__window;

/* ---- batches --------------------------------------------------------------------------------- */

typedef struct sn__slot_field {
  sn__room data, weights, offsets;
  int64_t elements;
} sn__slot_field;

typedef struct sn__slot {
  sn_batch batch;
  sn_batch_field *views;
  sn__slot_field *fields;
  sn__room row_numbers;
  int64_t index, rows, done;
  bool busy, ready;
  sn_status status;
} sn__slot;

/* ---- loader ---------------------------------------------------------------------------------- */

enum { SN__LOADER_WINDOWS = 2, SN__LOADER_MOST_THREADS = 64 };

struct sn_loader {
  const sn_dataset *dataset;
  sn__load_field *fields;
  size_t n_fields;
  int64_t *rows;
  int64_t n_rows;
  int64_t batch, batches;
  bool shuffle;
  uint64_t seed;
  size_t memory;
  sn__pieces pieces;

  int n_threads;
  pthread_t *threads;
  sn__reading *reading; /* [n_reading]: the last is the caller's */
  int n_reading;

  pthread_mutex_t lock; /* all below, but for what a task in hand owns */
  pthread_cond_t changed;
  bool quit, paused, started;
  int running;
  int64_t epoch;
  sn__plan plan;
  int64_t next_window;
  sn__window windows[SN__LOADER_WINDOWS];
  sn__slot *slots;
  int64_t n_slots;
  int64_t given; /* the next batch to hand out */
  int64_t floor; /* batches before this one may be written over */
};

SN_MUST_USE sn_status sn__pieces_make(const sn_loader *loader, sn__pieces *out);
void sn__pieces_clear(sn__pieces *pieces);
SN_MUST_USE sn_status sn__plan_make(const sn_loader *loader, int64_t epoch, sn__plan *out);
void sn__plan_clear(sn__plan *plan);
void sn__plan_rows(const sn_loader *loader, const sn__plan *plan, int64_t window,
                   int64_t *rows); /* of a window, ascending */
/* In which the window's rows are drawn. */
void sn__plan_order(const sn_loader *loader, const sn__plan *plan, int64_t epoch, int64_t window,
                    int64_t *order);
int64_t sn__plan_find(const sn__plan *plan, int64_t place); /* the window of a place in the epoch */

/* `window->index` is set; state is SETUP. */
SN_MUST_USE sn_status sn__window_setup(const sn_loader *loader, const sn__plan *plan,
                                       sn__window *window);
/* Task 0 draws the order of the rows; each other one decodes a cut of a field. */
SN_MUST_USE sn_status sn__window_fill(const sn_loader *loader, const sn__plan *plan, int64_t epoch,
                                      sn__window *window, int64_t task, sn__reading *reading);
void sn__window_clear(const sn_loader *loader, sn__window *window);

SN_MUST_USE sn_status sn__slot_copy(const sn_loader *loader, sn__slot *slot,
                                    const sn__window *window, int64_t first, int64_t rows);
void sn__slot_finish(const sn_loader *loader, sn__slot *slot);
void sn__slot_clear(const sn_loader *loader, sn__slot *slot);

#endif
