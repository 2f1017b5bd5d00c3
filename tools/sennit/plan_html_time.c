/* SPDX-License-Identifier: Apache-2.0 */
/* Rows over time: each queue of each device, and the bytes in use on each. */
#include <string.h>

#include "core/alloc.h"
#include "tools/sennit/plan_html.h"

enum { WIDTH = 10000 /* of a row's drawing, stretched to the page */, HIGH = 100 };

static double ms(int64_t ns) {
  return 1e-6 * (double)ns;
}

static double x_of(int64_t ns, int64_t whole) {
  return whole > 0 ? (double)WIDTH * (double)ns / (double)whole : 0;
}

static void put_axis(FILE *f, int64_t whole) {
  fputs("<em></em><div class=\"axis\">", f);
  for (int i = 0; i <= 4; i++)
    fprintf(f, "<span>%.3g%s</span>", ms(whole) * i / 4, i == 4 ? " ms" : "");
  fputs("</div>", f);
}

static int64_t end_of(const sn_plan *plan) {
  int64_t end = 0;
  for (size_t i = 0; i < sn_plan_node_count(plan); i++)
    if (sn_plan_node_at(plan, i).finish_ns > end) end = sn_plan_node_at(plan, i).finish_ns;
  return end;
}

/* ---- queues ---------------------------------------------------------------------------------- */

static void put_node(FILE *f, const sn_plan_node *n, int64_t whole) {
  double from = x_of(n->start_ns, whole), wide = x_of(n->finish_ns, whole) - from;
  const char *phase = strcmp(n->phase, "backward") == 0 ? " bw"
                      : strcmp(n->phase, "update") == 0 ? " up"
                                                        : "";
  /* A hair of ground between neighbours, as long as the node is wide enough to spare it. */
  fprintf(f, "<rect class=\"d%d%s\" x=\"%.1f\" width=\"%.1f\" y=\"0\" height=\"%d\"><title>",
          html_colour(n->device), phase, from,
          wide > 12  ? wide - 4
          : wide > 3 ? wide
                     : 3,
          HIGH);
  html_text(f, n->name);
  fprintf(f, ": %s, %s, %.3f ms from %.3f ms</title></rect>", n->op, n->phase,
          ms(n->finish_ns - n->start_ns), ms(n->start_ns));
}

static void put_queue(FILE *f, const sn_plan *plan, size_t device, bool copies, int64_t whole) {
  size_t any = 0;
  int64_t busy = 0;
  for (size_t i = 0; i < sn_plan_node_count(plan); i++) {
    sn_plan_node n = sn_plan_node_at(plan, i);
    if ((size_t)n.device != device || n.copy != copies) continue;
    any++;
    busy += n.finish_ns - n.start_ns;
  }
  if (any == 0 && copies) return;
  fputs("<span>", f);
  html_text(f, sn_plan_device_at(plan, device).name);
  if (copies)
    fputs(" copies", f);
  else
    fprintf(f, " %.0f %% busy", whole > 0 ? 100 * (double)busy / (double)whole : 0.0);
  fprintf(f, "</span><svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" role=\"img\">", WIDTH,
          HIGH);
  for (size_t i = 0; i < sn_plan_node_count(plan); i++) {
    sn_plan_node n = sn_plan_node_at(plan, i);
    if ((size_t)n.device == device && n.copy == copies) put_node(f, &n, whole);
  }
  fputs("</svg>\n", f);
}

sn_status html_timeline(FILE *f, const sn_plan *plan) {
  int64_t whole = end_of(plan);
  fputs("<div class=\"box\"><div class=\"q\">\n", f);
  for (size_t d = 0; d < sn_plan_device_count(plan); d++) {
    put_queue(f, plan, d, false, whole);
    put_queue(f, plan, d, true, whole);
  }
  put_axis(f, whole);
  fputs("</div></div>\n<p class=\"soft\">Full colour is forward, lighter backward, lightest the "
        "update. Point at a bar for its name.</p>\n",
        f);
  return SN_OK;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void put_steps(FILE *f, const sn_plan_memory_point *points, size_t n, int64_t whole,
                      int64_t most, int device) {
  fprintf(f, "<path class=\"d%d bw\" d=\"M0 %d", html_colour(device), HIGH);
  double high = HIGH;
  for (size_t i = 0; i < n; i++) {
    double x = x_of(points[i].ns, whole);
    fprintf(f, "L%.1f %.2f", x, high);
    high = HIGH - (most > 0 ? 0.95 * HIGH * (double)points[i].bytes / (double)most : 0);
    fprintf(f, "L%.1f %.2f", x, high);
  }
  fprintf(f, "L%d %.2fL%d %dZ\"/>", WIDTH, high, WIDTH, HIGH);
}

sn_status html_memory(FILE *f, const sn_plan *plan) {
  int64_t whole = end_of(plan), most = 1;
  size_t devices = sn_plan_device_count(plan), any = 0;
  for (size_t d = 0; d < devices; d++) {
    int64_t bytes = (int64_t)sn_plan_device_at(plan, d).arena_bytes;
    if (bytes > most) most = bytes;
    any += sn_plan_memory_over(plan, d, NULL);
  }
  if (any == 0) {
    fputs("<p class=\"soft\">Not planned yet: the largest batch is not known.</p>\n", f);
    return SN_OK;
  }
  fputs("<div class=\"box\"><div class=\"q\">\n", f);
  for (size_t d = 0; d < devices; d++) {
    sn_plan_device device = sn_plan_device_at(plan, d);
    char arena[UI_WORDS], variables[UI_WORDS];
    sn_plan_memory_point *points =
        sn__calloc(sn_plan_memory_over(plan, d, NULL) + 1, sizeof *points);
    if (points == NULL) return sn_status_out_of_memory();
    size_t n = sn_plan_memory_over(plan, d, points);
    fputs("<span>", f);
    html_text(f, device.name);
    fprintf(f,
            "</span><svg class=\"mem\" viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" "
            "role=\"img\"><title>%s: at most %s in use, beside %s of variables</title>",
            WIDTH, HIGH, device.name, ui_bytes((double)device.arena_bytes, arena),
            ui_bytes((double)device.variable_bytes, variables));
    put_steps(f, points, n, whole, most, (int)d);
    fputs("</svg>\n", f);
    fprintf(f,
            "<em></em><p class=\"soft\" style=\"margin:0 0 8px\">at most %s, beside %s of "
            "variables</p>\n",
            arena, variables);
    sn__free(points);
  }
  put_axis(f, whole);
  fputs("</div></div>\n<p class=\"soft\">One scale for all devices; the height is what the largest "
        "batch has in use at that moment.</p>\n",
        f);
  return SN_OK;
}
