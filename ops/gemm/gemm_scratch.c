/* SPDX-License-Identifier: Apache-2.0 */
/* Scratch of products: each thread that calls sn__gemm() keeps its own, for itself and the team it
 * leads, so getting it takes no lock and a product fails before it has written anything. */
#include <pthread.h>
#include "core/alloc.h"
#include "ops/gemm/gemm_impl.h"

typedef struct scratch {
  float *shared, *threads;
  size_t shared_bytes;
  int thread_count;
} scratch;

static _Thread_local scratch mine;
static pthread_key_t at_exit;
static pthread_once_t at_exit_once = PTHREAD_ONCE_INIT;
static bool at_exit_works;

static void release(void *arg) {
  scratch *s = arg;
  sn__free(s->shared);
  sn__free(s->threads);
  *s = (scratch){0};
}

static void make_key(void) {
  at_exit_works = pthread_key_create(&at_exit, release) == 0;
}

/* Without the promise to free it again, nothing is allocated. */
static bool freed_at_exit(void) {
  pthread_once(&at_exit_once, make_key);
  return at_exit_works && pthread_setspecific(at_exit, &mine) == 0;
}

float *sn__gemm_scratch_shared(size_t bytes) {
  if (mine.shared_bytes >= bytes) return mine.shared;
  if (!freed_at_exit()) return NULL;
  sn__free(mine.shared);
  mine.shared = sn__alloc_aligned(bytes, 64);
  mine.shared_bytes = mine.shared == NULL ? 0 : bytes;
  return mine.shared;
}

float *sn__gemm_scratch_threads(int threads) {
  if (mine.thread_count >= threads) return mine.threads;
  if (!freed_at_exit()) return NULL;
  sn__free(mine.threads);
  mine.threads = sn__alloc_aligned((size_t)threads * SN__GEMM_SCRATCH_THREAD, 64);
  mine.thread_count = mine.threads == NULL ? 0 : threads;
  return mine.threads;
}

void sn__gemm_release(void) {
  release(&mine);
}
