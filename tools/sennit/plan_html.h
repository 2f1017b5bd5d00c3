/* SPDX-License-Identifier: Apache-2.0 */
/* The page of `sennit plan --html`, in parts. It loads nothing and runs no script: tables, and
 * drawings as inline SVG whose colours follow the reader's light or dark setting. */
#ifndef SN_TOOLS_SENNIT_PLAN_HTML_H
#define SN_TOOLS_SENNIT_PLAN_HTML_H

#include "tools/sennit/plan_report.h"

enum { HTML_COLOURS = 8 }; /* classes d0 to d7; devices past the last begin again */

static inline int html_colour(int device) {
  return device < 0 ? 0 : device % HTML_COLOURS;
}

/* Text with what HTML would read as markup escaped. */
void html_text(FILE *f, const char *text);

/* Modules as boxes in the colour of their device, from the inputs down; what flows between devices
 * is a copy, dashed and with its bytes. (plan_html_graph.c) */
sn_status html_graph(FILE *f, const sn_plan *plan);
/* Queues over time, and memory over time. (plan_html_time.c) */
sn_status html_timeline(FILE *f, const sn_plan *plan);
sn_status html_memory(FILE *f, const sn_plan *plan);

#endif
