/* SPDX-License-Identifier: Apache-2.0 */
/* --trace: when the nodes of a few steps ran, in the Trace Event Format that Perfetto and
 * chrome://tracing open. Process 1 is what was measured, process 2 what the plan predicts for the
 * very batch, from the same begin; a thread of them is a queue of a device, or the host. Only the
 * steps in the file are watched: all others run as without it. */
#ifndef SN_TOOLS_SENNIT_TRACE_H
#define SN_TOOLS_SENNIT_TRACE_H

#include <stdio.h>

#include "placement/trainer.h"

enum { TRACE_STEPS = 5, TRACE_WARM_UP = 10 };

typedef struct trace_file {
  const char *path; /* NULL: none was asked for */
  FILE *file;
  sn_trainer *trainer;
  int64_t first, seen; /* steps: the first watched, and how many have ended */
  int64_t recorded;
  int64_t origin_ns;
  sn_node_time *times; /* of a prediction */
  bool any;            /* an event has been written */
} trace_file;

/* Of a run of so many steps; the file is written from here on. */
sn_status trace_open(const char *path, sn_trainer *trainer, int64_t steps, trace_file *out);
/* Before and behind each step. */
void trace_step(trace_file *trace);
/* The file's end; IO when it did not get there. Fine for a trace that was never opened. */
sn_status trace_close(trace_file *trace);

#endif
