/* SPDX-License-Identifier: Apache-2.0 */
#include "core/device/lane.h"

#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/device/thread.h"

typedef struct batch {
  const sn__command *commands;
  int n;
} batch;

struct sn__lane {
  sn__device *device;
  sn__lane_options options;
  char name[24];
  pthread_t thread;
  sn__spin spin;
  uint64_t random; /* state of the test delays; 0: none */

  pthread_mutex_t lock; /* for all down to `stop` */
  batch *batches;       /* [first, end) are waiting */
  size_t first, end, capacity;
  uint64_t submitted; /* batches so far */
  bool started, stop;

  _Atomic uint32_t posted; /* bumped, under the lock, when there is news for the worker */
  _Atomic uint32_t sleeping;
  sn__timeline *ended; /* batches so far */
};

/* ---- the worker ---------------------------------------------------------------------------- */

/* Test mode: every other command starts late, by up to 0.2 ms. */
static void delay(sn__lane *lane) {
  if (lane->random == 0) return;
  uint64_t r = lane->random; /* xorshift64 */
  r ^= r << 13;
  r ^= r >> 7;
  r ^= r << 17;
  lane->random = r;
  if ((r & 1) == 0) return;
  struct timespec nap = {0, (long)((r >> 8) % 200000)};
  nanosleep(&nap, NULL);
}

static sn_status check_buffers(const sn__command *c) {
  for (int i = 0; i < c->n_buffers; i++)
    SN_TRY(sn__buffer_check(c->buffers[i]));
  return SN_OK;
}

static sn_status run_command(sn__lane *lane, const sn__command *c) {
  SN_TRY(sn__timepoints_wait(c->waits, c->n_waits, SN__FOREVER));
  delay(lane);
  const char *label = c->label != NULL ? c->label : "a command";
  const char *device = lane->device->desc.name;
  if (sn__device_injected(lane->device, SN__INJECT_COMMAND)) {
    return sn_status_make(SN_CODE_DEVICE, "%s on %s: injected failure", label, device);
  }
  if (c->run == NULL || lane->options.pretend) return SN_OK;
  sn_status status = c->run(c->arg, &lane->options.launch);
  if (status == SN_OK && lane->device->options.test_seed != 0) status = check_buffers(c);
  return sn_status_context(status, "%s on %s", label, device);
}

/* After the batch's last signal nothing of it may be touched: its owner may be gone. */
static void run_batch(sn__lane *lane, batch b) {
  sn_status failure = SN_OK;
  for (int i = 0; i < b.n; i++) {
    const sn__command *c = &b.commands[i];
    if (failure == SN_OK) failure = run_command(lane, c);
    const sn__timepoint *signals = c->signals;
    for (int s = 0, n = c->n_signals; s < n; s++) {
      sn__timepoint point = signals[s];
      if (failure == SN_OK) {
        sn__timeline_signal(point.timeline, point.value);
      } else {
        sn__timeline_fail(point.timeline, sn_status_copy(failure));
      }
    }
  }
  sn_status_free(failure);
}

static void sleep_until_posted(sn__lane *lane, uint32_t seen) {
  if (sn__spin_while(&lane->spin, &lane->posted, seen)) return;
  atomic_store(&lane->sleeping, 1);
  while (atomic_load(&lane->posted) == seen)
    sn__word_sleep(&lane->posted, seen, UINT64_MAX);
  atomic_store(&lane->sleeping, 0);
}

static void *lane_main(void *arg) {
  sn__lane *lane = arg;
  for (uint64_t ended = 0;;) {
    pthread_mutex_lock(&lane->lock);
    bool any = lane->first < lane->end;
    batch b = any ? lane->batches[lane->first++] : (batch){0};
    bool stop = lane->stop;
    uint32_t seen = atomic_load(&lane->posted);
    pthread_mutex_unlock(&lane->lock);
    if (any) {
      run_batch(lane, b);
      sn__timeline_signal(lane->ended, ++ended);
    } else if (stop) {
      return NULL;
    } else {
      sleep_until_posted(lane, seen);
    }
  }
}

/* ---- its owner's side ---------------------------------------------------------------------- */

/* Under the lock, or before anybody else knows the lane. */
static sn_status start(sn__lane *lane) {
  if (lane->started) return SN_OK;
  SN_TRY(sn__thread_create(&lane->thread, lane_main, lane, lane->name));
  lane->started = true;
  return SN_OK;
}

/* Under the lock. */
static sn_status push(sn__lane *lane, batch b) {
  if (lane->first == lane->end) lane->first = lane->end = 0;
  if (lane->end == lane->capacity && lane->first > 0) {
    memmove(lane->batches, lane->batches + lane->first,
            (lane->end - lane->first) * sizeof *lane->batches);
    lane->end -= lane->first;
    lane->first = 0;
  }
  if (!sn__grow((void **)&lane->batches, &lane->capacity, lane->end + 1, sizeof *lane->batches)) {
    return sn_status_out_of_memory();
  }
  SN_TRY(start(lane));
  lane->batches[lane->end++] = b;
  lane->submitted++;
  atomic_fetch_add(&lane->posted, 1);
  return SN_OK;
}

static void wake(sn__lane *lane) {
  if (atomic_load(&lane->sleeping) != 0) sn__word_wake_all(&lane->posted);
}

sn_status sn__lane_submit(sn__lane *lane, const sn__command *commands, int n_commands) {
  pthread_mutex_lock(&lane->lock);
  sn_status status = push(lane, (batch){commands, n_commands});
  pthread_mutex_unlock(&lane->lock);
  if (status == SN_OK) wake(lane);
  return status;
}

void sn__lane_drain(sn__lane *lane) {
  pthread_mutex_lock(&lane->lock);
  uint64_t submitted = lane->submitted;
  pthread_mutex_unlock(&lane->lock);
  sn_status_free(sn__timeline_wait(lane->ended, submitted, SN__FOREVER)); /* never fails */
}

sn_status sn__lane_create(sn__device *device, const sn__lane_options *options,
                          sn__lane **out_lane) {
  sn__lane *lane = sn__calloc(1, sizeof *lane);
  if (lane == NULL) return sn_status_out_of_memory();
  lane->device = device;
  lane->options = *options;
  memcpy(lane->name, options->name, strnlen(options->name, sizeof lane->name - 1));
  if (device->options.test_seed != 0) {
    uint64_t mix = device->options.test_seed;
    for (const char *c = lane->name; *c != '\0'; c++)
      mix = (mix ^ (uint64_t)*c) * 0x100000001b3u;
    lane->random = mix | 1; /* xorshift must not start from 0 */
  }
  pthread_mutex_init(&lane->lock, NULL);
  sn_status status = sn__timeline_create(0, &lane->ended);
  if (status == SN_OK && !options->lazy) status = start(lane);
  if (status != SN_OK) {
    sn__lane_free(lane);
    return status;
  }
  *out_lane = lane;
  return SN_OK;
}

void sn__lane_free(sn__lane *lane) {
  if (lane == NULL) return;
  if (lane->started) {
    pthread_mutex_lock(&lane->lock);
    lane->stop = true;
    atomic_fetch_add(&lane->posted, 1);
    pthread_mutex_unlock(&lane->lock);
    wake(lane);
    pthread_join(lane->thread, NULL);
  }
  sn__timeline_free(lane->ended);
  pthread_mutex_destroy(&lane->lock);
  sn__free(lane->batches);
  sn__free(lane);
}
