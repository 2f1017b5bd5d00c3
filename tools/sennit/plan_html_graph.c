/* SPDX-License-Identifier: Apache-2.0 */
/* The modules as a drawing: each stands below all whose values it reads in the forward pass. */
#include <string.h>

#include "core/alloc.h"
#include "tools/sennit/plan_html.h"

enum { BOX_W = 168, BOX_H = 44, GAP_X = 26, GAP_Y = 54, MARGIN = 14, SWEEPS = 8 };

typedef struct box {
  const char *path;
  int device;
  int64_t busy_ns;
  size_t layer;
  double x; /* of its middle */
} box;

/* Values of one module that another reads. */
typedef struct flow {
  size_t from, to;
  uint64_t forward, backward; /* bytes */
  bool seen;                  /* in the forward pass: it makes layers */
} flow;

typedef struct drawing {
  const sn_plan *plan;
  box *boxes;
  size_t n_boxes;
  flow *flows;
  size_t n_flows, cap_flows;
  size_t *box_of_node; /* [placed]; n_boxes: none */
  size_t *producer;    /* [values] placed node + 1 */
  size_t n_values, n_layers;
} drawing;

static void drawing_free(drawing *d) {
  sn__free(d->boxes);
  sn__free(d->flows);
  sn__free(d->box_of_node);
  sn__free(d->producer);
}

/* ---- what there is ----------------------------------------------------------------------------
 */

static size_t find_box(const drawing *d, const char *module) {
  size_t i = 0;
  while (i < d->n_boxes && strcmp(d->boxes[i].path, module) != 0)
    i++;
  return i;
}

static sn_status find_boxes(drawing *d, const sn_placement *placement) {
  size_t n = sn_placement_module_count(placement);
  d->boxes = sn__calloc(n + 1, sizeof *d->boxes);
  if (d->boxes == NULL) return sn_status_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    const sn_placement_module *m = sn_placement_module_at(placement, i);
    if (*m->path == '\0') continue;
    d->boxes[d->n_boxes++] = (box){.path = m->path, .device = m->device, .busy_ns = m->busy_ns};
  }
  return SN_OK;
}

static sn_status find_producers(drawing *d) {
  size_t n = sn_plan_placed_count(d->plan);
  d->n_values = 1;
  for (size_t i = 0; i < n; i++) {
    sn_plan_placed p = sn_plan_placed_at(d->plan, i);
    for (size_t o = 0; o < p.n_outputs; o++)
      if (p.outputs[o] >= d->n_values) d->n_values = (size_t)p.outputs[o] + 1;
  }
  d->producer = sn__calloc(d->n_values, sizeof *d->producer);
  d->box_of_node = sn__calloc(n + 1, sizeof *d->box_of_node);
  if (d->producer == NULL || d->box_of_node == NULL) return sn_status_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    sn_plan_placed p = sn_plan_placed_at(d->plan, i);
    d->box_of_node[i] = find_box(d, p.module);
    for (size_t o = 0; o < p.n_outputs; o++)
      d->producer[p.outputs[o]] = i + 1;
  }
  return SN_OK;
}

static sn_status add_flow(drawing *d, size_t from, size_t to, bool forward, uint64_t bytes) {
  size_t i = 0;
  while (i < d->n_flows && (d->flows[i].from != from || d->flows[i].to != to))
    i++;
  if (i == d->n_flows) {
    if (!sn__grow((void **)&d->flows, &d->cap_flows, d->n_flows + 1, sizeof *d->flows))
      return sn_status_out_of_memory();
    d->flows[d->n_flows++] = (flow){.from = from, .to = to};
  }
  if (forward) d->flows[i].forward += bytes;
  if (!forward) d->flows[i].backward += bytes;
  d->flows[i].seen |= forward;
  return SN_OK;
}

/* Behind copies: who made the value in the first place. */
static size_t maker(const drawing *d, uint32_t value) {
  size_t at = value < d->n_values ? d->producer[value] : 0;
  while (at != 0) {
    sn_plan_placed p = sn_plan_placed_at(d->plan, at - 1);
    if (!p.copy) break;
    at = p.inputs[0] < d->n_values ? d->producer[p.inputs[0]] : 0;
  }
  return at;
}

/* A gradient goes the other way of the value that it belongs to, so backward bytes are noted on the
 * forward flow. */
static sn_status find_flows(drawing *d) {
  for (size_t i = 0; i < sn_plan_placed_count(d->plan); i++) {
    sn_plan_placed p = sn_plan_placed_at(d->plan, i);
    size_t to = d->box_of_node[i];
    bool forward = strcmp(p.phase, "forward") == 0;
    if (p.copy || to == d->n_boxes || strcmp(p.phase, "update") == 0) continue;
    for (size_t k = 0; k < p.n_inputs; k++) {
      size_t at = p.inputs[k] == 0 ? 0 : maker(d, p.inputs[k]);
      if (at == 0) continue;
      size_t from = d->box_of_node[at - 1];
      bool made_forward = strcmp(sn_plan_placed_at(d->plan, at - 1).phase, "forward") == 0;
      if (from == d->n_boxes || from == to || (!forward && made_forward)) continue;
      uint64_t bytes = sn_plan_value_bytes(d->plan, p.inputs[k]);
      SN_TRY(forward ? add_flow(d, from, to, true, bytes) : add_flow(d, to, from, false, bytes));
    }
  }
  return SN_OK;
}

/* ---- where it goes ----------------------------------------------------------------------------
 */

static void make_layers(drawing *d) {
  bool moved = true;
  for (size_t round = 0; moved && round <= d->n_boxes; round++) {
    moved = false;
    for (size_t i = 0; i < d->n_flows; i++) {
      const flow *w = &d->flows[i];
      if (!w->seen || d->boxes[w->to].layer > d->boxes[w->from].layer) continue;
      if (d->boxes[w->from].layer + 1 > d->n_boxes) continue;
      d->boxes[w->to].layer = d->boxes[w->from].layer + 1;
      moved = true;
    }
  }
  /* A branch that is short stands where it is read. */
  for (size_t b = d->n_boxes; b-- > 0;) {
    size_t least = SIZE_MAX;
    bool read = false;
    for (size_t i = 0; i < d->n_flows; i++) {
      const flow *w = &d->flows[i];
      if (!w->seen) continue;
      if (w->to == b) read = true;
      if (w->from == b && d->boxes[w->to].layer < least) least = d->boxes[w->to].layer;
    }
    if (!read && least != SIZE_MAX && least > 0) d->boxes[b].layer = least - 1;
  }
  for (size_t b = 0; b < d->n_boxes; b++)
    if (d->boxes[b].layer + 1 > d->n_layers) d->n_layers = d->boxes[b].layer + 1;
}

/* The middle of what a box is joined to, in layers before it (or behind it). */
static double wish(const drawing *d, size_t b, bool down) {
  double sum = 0, n = 0;
  for (size_t i = 0; i < d->n_flows; i++) {
    const flow *w = &d->flows[i];
    if (!w->seen || (down ? w->to : w->from) != b) continue;
    sum += d->boxes[down ? w->from : w->to].x;
    n++;
  }
  return n > 0 ? sum / n : d->boxes[b].x;
}

/* Boxes of a layer in the order of their wishes, side by side around the wishes' middle. */
static void settle_layer(drawing *d, size_t layer, bool down, size_t *order) {
  size_t n = 0;
  double middle = 0;
  for (size_t b = 0; b < d->n_boxes; b++)
    if (d->boxes[b].layer == layer) {
      d->boxes[b].x = wish(d, b, down);
      middle += d->boxes[b].x;
      order[n++] = b;
    }
  if (n == 0) return;
  for (size_t i = 1; i < n; i++)
    for (size_t k = i; k > 0 && d->boxes[order[k]].x < d->boxes[order[k - 1]].x; k--) {
      size_t t = order[k];
      order[k] = order[k - 1];
      order[k - 1] = t;
    }
  double pitch = BOX_W + GAP_X, left = middle / (double)n - pitch * (double)(n - 1) / 2;
  for (size_t i = 0; i < n; i++)
    d->boxes[order[i]].x = left + pitch * (double)i;
}

static sn_status settle(drawing *d, double *out_width) {
  size_t *order = sn__calloc(d->n_boxes + 1, sizeof *order);
  if (order == NULL) return sn_status_out_of_memory();
  for (size_t b = 0; b < d->n_boxes; b++)
    d->boxes[b].x = (double)b;
  for (int sweep = 0; sweep < SWEEPS; sweep++) {
    for (size_t l = 0; l < d->n_layers; l++)
      settle_layer(d, sweep % 2 == 0 ? l : d->n_layers - 1 - l, sweep % 2 == 0, order);
  }
  sn__free(order);
  double left = 0, right = 0;
  for (size_t b = 0; b < d->n_boxes; b++) {
    if (b == 0 || d->boxes[b].x < left) left = d->boxes[b].x;
    if (b == 0 || d->boxes[b].x > right) right = d->boxes[b].x;
  }
  for (size_t b = 0; b < d->n_boxes; b++)
    d->boxes[b].x += MARGIN + BOX_W / 2.0 - left;
  *out_width = right - left + BOX_W + 2 * MARGIN;
  return SN_OK;
}

/* ---- drawing ----------------------------------------------------------------------------------
 */

static double top_of(const box *b) {
  return MARGIN + (double)b->layer * (BOX_H + GAP_Y);
}

static void put_flow(FILE *f, const drawing *d, const flow *w) {
  const box *from = &d->boxes[w->from], *to = &d->boxes[w->to];
  double y1 = top_of(from) + BOX_H, y2 = top_of(to), half = (y2 - y1) / 2;
  fprintf(f, "<path class=\"%s\" d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\"/>",
          from->device != to->device ? "c" : "e", from->x, y1, from->x, y1 + half, to->x, y2 - half,
          to->x, y2);
}

static void put_flow_words(FILE *f, const drawing *d, const flow *w) {
  const box *from = &d->boxes[w->from], *to = &d->boxes[w->to];
  if (from->device == to->device) return;
  char down[UI_WORDS], up[UI_WORDS];
  double y = (top_of(from) + BOX_H + top_of(to)) / 2;
  fprintf(f, "<text class=\"cl\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">&#8595; %s",
          (from->x + to->x) / 2, y + 4, ui_bytes((double)w->forward, down));
  if (w->backward > 0) fprintf(f, " &#8593; %s", ui_bytes((double)w->backward, up));
  fputs("</text>", f);
}

/* A path too long for its box keeps its end, which tells modules apart. */
static void put_box(FILE *f, const drawing *d, const box *b) {
  enum { FIT = 23 };
  size_t length = strlen(b->path);
  const char *tail = length > FIT ? b->path + length - (FIT - 1) : b->path;
  double x = b->x - BOX_W / 2.0, y = top_of(b);
  fprintf(f,
          "<g><title>%s on %s</title><rect class=\"o%d\" rx=\"6\" x=\"%.1f\" y=\"%.1f\" "
          "width=\"%d\" height=\"%d\"/>",
          b->path, sn_plan_device_at(d->plan, (size_t)b->device).name, html_colour(b->device), x, y,
          BOX_W, BOX_H);
  fprintf(f, "<text class=\"t\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">%s", b->x, y + 18,
          length > FIT ? "&#8230;" : "");
  html_text(f, tail);
  fprintf(f, "</text><text class=\"s\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">", b->x,
          y + 35);
  html_text(f, sn_plan_device_at(d->plan, (size_t)b->device).name);
  fprintf(f, ", %.3f ms</text></g>\n", 1e-6 * (double)b->busy_ns);
}

static void draw(FILE *f, const drawing *d, double width) {
  double height = 2 * MARGIN + (double)d->n_layers * (BOX_H + GAP_Y) - GAP_Y;
  fprintf(f,
          "<div class=\"box\"><svg role=\"img\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f "
          "%.0f\" style=\"display:block;margin:0 auto\">\n",
          width, height, width, height);
  for (size_t i = 0; i < d->n_flows; i++)
    if (d->flows[i].seen) put_flow(f, d, &d->flows[i]);
  for (size_t b = 0; b < d->n_boxes; b++)
    put_box(f, d, &d->boxes[b]);
  for (size_t i = 0; i < d->n_flows; i++)
    if (d->flows[i].seen) put_flow_words(f, d, &d->flows[i]);
  fputs("</svg></div>\n<p class=\"soft\">Time is forward, backward and update. Dashed: from one "
        "device to another, with the bytes that go down (values) and up (gradients) in a step."
        "</p>\n",
        f);
}

sn_status html_graph(FILE *f, const sn_placement *placement, const sn_plan *plan) {
  drawing d = {.plan = plan};
  double width = 0;
  sn_status status = find_boxes(&d, placement);
  if (status == SN_OK) status = find_producers(&d);
  if (status == SN_OK) status = find_flows(&d);
  if (status == SN_OK) make_layers(&d);
  if (status == SN_OK) status = settle(&d, &width);
  if (status == SN_OK) draw(f, &d, width);
  drawing_free(&d);
  return status;
}
