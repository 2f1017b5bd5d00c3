/* SPDX-License-Identifier: Apache-2.0 */
/* What a person sees: report lines and progress. With --json, standard output is the object's alone
 * and everything here goes to standard error. */
#ifndef SN_TOOLS_SENNIT_UI_H
#define SN_TOOLS_SENNIT_UI_H

#include <stdio.h>

#include "core/status.h"

typedef struct ui_state {
  FILE *report; /* where lines go */
  bool bar;     /* standard error is a terminal */
  /* the progress under way */
  const char *title, *unit;
  int64_t total, done;
  double began, shown; /* seconds */
  bool active;
} ui_state;

void ui_init(ui_state *ui, bool json);

/* A report line; a bar that is on screen makes room. */
void ui_line(ui_state *ui, const char *format, ...) SN_PRINTF(2, 3);

/* Long work of `total` units (0: not known). On a terminal a bar with rate and time left, a few
 * times a second; elsewhere a plain line now and then. `title` and `unit` ("rows") are borrowed. */
void ui_progress_begin(ui_state *ui, const char *title, int64_t total, const char *unit);
/* `note` (may be NULL) is the news at the end of the line, such as "loss 0.12". */
void ui_progress(ui_state *ui, int64_t done, const char *note);
void ui_progress_end(ui_state *ui);

/* "1.5 GiB", "12.3 ms", "1:05:09": into `out`, which they return. */
enum { UI_WORDS = 32 };
const char *ui_bytes(double bytes, char out[UI_WORDS]);
const char *ui_seconds(double seconds, char out[UI_WORDS]);
const char *ui_clock(double seconds, char out[UI_WORDS]);
/* 1.5e9, "FLOP/s" -> "1.50 GFLOP/s" */
const char *ui_rate(double value, const char *unit, char out[UI_WORDS]);

#endif
