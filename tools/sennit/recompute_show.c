/* SPDX-License-Identifier: Apache-2.0 */
/* What is recomputed, said. */
#include <string.h>

#include "tools/sennit/task.h"

static double ms(int64_t ns) {
  return 1e-6 * (double)ns;
}

static sn_placement_recomputed total(const sn_placement *placement) {
  sn_placement_recomputed sum = {0};
  for (size_t i = 0; i < sn_placement_recomputed_count(placement); i++) {
    sum.bytes += sn_placement_recomputed_at(placement, i).bytes;
    sum.ns += sn_placement_recomputed_at(placement, i).ns;
  }
  return sum;
}

void recompute_json(json_report *r, cJSON *into, const sn_placement *placement) {
  size_t n = sn_placement_recomputed_count(placement);
  if (n == 0) return;
  cJSON *o = json_object(r, into, "recompute");
  json_text(r, o, "cause", sn_placement_recompute_cause(placement));
  json_int(r, o, "bytes", (int64_t)total(placement).bytes);
  json_number(r, o, "ms", ms(total(placement).ns));
  cJSON *list = json_list(r, o, "modules");
  for (size_t i = 0; i < n; i++) {
    sn_placement_recomputed at = sn_placement_recomputed_at(placement, i);
    cJSON *item = json_object(r, list, NULL);
    json_text(r, item, "modules", at.modules);
    json_int(r, item, "bytes", (int64_t)at.bytes);
    json_number(r, item, "ms", ms(at.ns));
  }
}

void recompute_show(ui_state *ui, const sn_placement *placement) {
  size_t n = sn_placement_recomputed_count(placement);
  if (n == 0) return;
  int width = (int)strlen("recomputed");
  for (size_t i = 0; i < n; i++) {
    int length = (int)strlen(sn_placement_recomputed_at(placement, i).modules);
    if (length > width) width = length < 44 ? length : 44;
  }
  char bytes[UI_WORDS];
  ui_line(ui, "%s", "");
  ui_line(ui, "%-*s  %-10s %10s", width, "recomputed", "not kept", "time");
  for (size_t i = 0; i < n; i++) {
    sn_placement_recomputed at = sn_placement_recomputed_at(placement, i);
    ui_line(ui, "%-*s  %-10s %7.3f ms", width, at.modules, ui_bytes((double)at.bytes, bytes),
            ms(at.ns));
  }
  ui_line(ui, "recomputing keeps %s less for the backward pass and takes %.3f ms more a step: %s",
          ui_bytes((double)total(placement).bytes, bytes), ms(total(placement).ns),
          sn_placement_recompute_cause(placement));
}
