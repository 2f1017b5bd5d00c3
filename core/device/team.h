/* SPDX-License-Identifier: Apache-2.0 */
/* The thread team of a CPU device: its worker plus helpers, sharing out numbered tasks.
 *
 * Which thread runs a task never changes a result: tasks write disjoint outputs and their cut does
 * not depend on the number of threads. Waiting is a bounded spin, then sleep: a thread that spins
 * while its partner is descheduled costs a hundredfold on a loaded machine. */
#ifndef SN_CORE_DEVICE_TEAM_H
#define SN_CORE_DEVICE_TEAM_H

#include "core/status.h"

typedef struct sn__team sn__team;

#define SN__TEAM_MOST_THREADS 1024

/* `worker` is 0..threads-1, for per-thread scratch. */
typedef void (*sn__task_fn)(void *arg, int64_t index, int worker);

SN_BEGIN_DECLS
/* `threads` counts the calling thread; 1 makes no helper. Helpers have all signals blocked. */
SN_API SN_MUST_USE sn_status sn__team_create(int threads, sn__team **out_team);
SN_API void sn__team_free(sn__team *team);
SN_API int sn__team_threads(const sn__team *team); /* 1 for NULL */

/* Runs fn(arg, i, worker) for every i in [0, count), returns when all are done. Call it from one
 * thread at a time, never from within a task. A NULL team runs everything on the caller. */
SN_API void sn__team_run(sn__team *team, int64_t count, sn__task_fn fn, void *arg);
SN_END_DECLS

#endif
