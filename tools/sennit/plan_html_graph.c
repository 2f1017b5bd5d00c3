/* SPDX-License-Identifier: Apache-2.0 */
/* The modules as a drawing: each stands below all whose values it reads in the forward pass. */
#include <string.h>

#include "core/alloc.h"
#include "tools/sennit/plan_html.h"

enum { BOX_W = 140, BOX_H = 42, GAP_X = 16, GAP_Y = 44, MARGIN = 12, SWEEPS = 8 };

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
  size_t *box_of_node; /* [placed + 1] box + 1; 0: none */
  uint32_t *producer;  /* [values] node; 0: none */
  size_t n_values, n_layers;
} drawing;

static void drawing_free(drawing *d) {
  sn__free(d->boxes);
  sn__free(d->flows);
  sn__free(d->box_of_node);
  sn__free(d->producer);
}

/* ---- boxes ----------------------------------------------------------------------------------- */

static sn_status find_producers(drawing *d) {
  size_t n = sn_plan_placed_count(d->plan);
  d->n_values = 1;
  for (size_t i = 0; i < n; i++) {
    sn_plan_placed p = sn_plan_placed_at(d->plan, i);
    for (size_t o = 0; o < p.n_outputs; o++)
      if (p.outputs[o] >= d->n_values) d->n_values = (size_t)p.outputs[o] + 1;
  }
  d->producer = sn__calloc(d->n_values, sizeof *d->producer);
  d->box_of_node = sn__calloc(n + 2, sizeof *d->box_of_node);
  d->boxes = sn__calloc(n + 1, sizeof *d->boxes);
  if (d->producer == NULL || d->box_of_node == NULL || d->boxes == NULL)
    return sn_status_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    sn_plan_placed p = sn_plan_placed_at(d->plan, i);
    for (size_t o = 0; o < p.n_outputs; o++)
      d->producer[p.outputs[o]] = p.node;
  }
  return SN_OK;
}

static sn_plan_placed placed(const drawing *d, uint32_t node) {
  return sn_plan_placed_at(d->plan, node - 1);
}

/* Behind copies: the node that made a value in the first place; 0: none. */
static uint32_t maker(const drawing *d, uint32_t value) {
  uint32_t node = value < d->n_values ? d->producer[value] : 0;
  while (node != 0 && placed(d, node).copy) {
    value = placed(d, node).inputs[0];
    node = value < d->n_values ? d->producer[value] : 0;
  }
  return node;
}

static bool forward(const sn_plan_placed *p) {
  return strcmp(p->phase, "forward") == 0;
}

/* Inputs, variables and constants are in no box. */
static bool drawn(const sn_plan_placed *p) {
  return forward(p) && !p->copy && p->n_inputs > 0;
}

static bool beneath(const char *path, const char *module) {
  size_t n = strlen(module);
  return strncmp(path, module, n) == 0 && (n == 0 || path[n] == '/' || path[n] == '\0');
}

/* Layers of the boxes that a node reads from, all but `but`: the least that it can stand in. */
static size_t layer_below(const drawing *d, const sn_plan_placed *p, size_t but) {
  size_t layer = 0;
  for (size_t k = 0; k < p->n_inputs; k++) {
    uint32_t node = p->inputs[k] == 0 ? 0 : maker(d, p->inputs[k]);
    size_t b = node == 0 ? 0 : d->box_of_node[node];
    if (b != 0 && b != but && d->boxes[b - 1].layer + 1 > layer) layer = d->boxes[b - 1].layer + 1;
  }
  return layer;
}

/* A node joins the box of what it reads (of its own module, or a module's last steps that their
 * parent does, on the same device), or the latest box of its module, unless it reads from a box
 * that stands no higher than that; then it begins a box of its own. A module that others use in
 * between has several. Returns box + 1. */
static size_t choose_box(drawing *d, const sn_plan_placed *p) {
  size_t best = 0;
  for (size_t k = 0; k < p->n_inputs; k++) {
    uint32_t node = p->inputs[k] == 0 ? 0 : maker(d, p->inputs[k]);
    size_t b = node == 0 ? 0 : d->box_of_node[node];
    if (b <= best || d->boxes[b - 1].device != p->device ||
        !beneath(d->boxes[b - 1].path, p->module))
      continue;
    if (*p->module != '\0' && layer_below(d, p, b) <= d->boxes[b - 1].layer) best = b;
  }
  for (size_t b = d->n_boxes; best == 0 && b > 0; b--)
    if (strcmp(d->boxes[b - 1].path, p->module) == 0 && d->boxes[b - 1].device == p->device) {
      if (layer_below(d, p, b) <= d->boxes[b - 1].layer) best = b;
      break;
    }
  if (best != 0) return best;
  d->boxes[d->n_boxes] =
      (box){.path = p->module, .device = p->device, .layer = layer_below(d, p, 0)};
  return ++d->n_boxes;
}

static void make_boxes(drawing *d) {
  size_t n = sn_plan_placed_count(d->plan);
  for (uint32_t node = 1; node <= n; node++) {
    sn_plan_placed p = placed(d, node);
    if (drawn(&p)) d->box_of_node[node] = choose_box(d, &p);
  }
  for (uint32_t node = 1; node <= n; node++) {
    sn_plan_placed p = placed(d, node);
    if (p.origin != 0) d->box_of_node[node] = d->box_of_node[p.origin];
  }
  for (size_t i = 0; i < sn_plan_node_count(d->plan); i++) {
    sn_plan_node node = sn_plan_node_at(d->plan, i);
    size_t b = d->box_of_node[node.node];
    if (b != 0 && !node.copy) d->boxes[b - 1].busy_ns += node.finish_ns - node.start_ns;
  }
  for (size_t b = 0; b < d->n_boxes; b++)
    if (d->boxes[b].layer + 1 > d->n_layers) d->n_layers = d->boxes[b].layer + 1;
}

/* ---- flows ----------------------------------------------------------------------------------- */

static sn_status add_flow(drawing *d, size_t from, size_t to, bool down, uint64_t bytes) {
  size_t i = 0;
  while (i < d->n_flows && (d->flows[i].from != from || d->flows[i].to != to))
    i++;
  if (i == d->n_flows) {
    if (!sn__grow((void **)&d->flows, &d->cap_flows, d->n_flows + 1, sizeof *d->flows))
      return sn_status_out_of_memory();
    d->flows[d->n_flows++] = (flow){.from = from, .to = to};
  }
  if (down) d->flows[i].forward += bytes;
  if (!down) d->flows[i].backward += bytes;
  d->flows[i].seen |= down;
  return SN_OK;
}

/* A gradient goes the other way of the value that it belongs to, so backward bytes are noted on the
 * forward flow. A value that a box reads twice is one flow of its bytes. */
static sn_status find_flows(drawing *d) {
  uint32_t n = (uint32_t)sn_plan_placed_count(d->plan);
  uint64_t *told = sn__calloc(d->n_values, sizeof *told); /* by value: the last box + 1 */
  if (told == NULL) return sn_status_out_of_memory();
  sn_status status = SN_OK;
  for (uint32_t node = 1; node <= n && status == SN_OK; node++) {
    sn_plan_placed p = placed(d, node);
    size_t to = d->box_of_node[node];
    for (size_t k = 0; to != 0 && k < p.n_inputs && status == SN_OK; k++) {
      uint32_t by = p.inputs[k] == 0 ? 0 : maker(d, p.inputs[k]);
      size_t from = by == 0 ? 0 : d->box_of_node[by];
      sn_plan_placed made = by == 0 ? p : placed(d, by);
      if (from == 0 || from == to || forward(&made) != forward(&p)) continue;
      if (told[made.outputs[0]] == to) continue;
      told[made.outputs[0]] = to;
      uint64_t bytes = sn_plan_value_bytes(d->plan, p.inputs[k]);
      status = forward(&p) ? add_flow(d, from - 1, to - 1, true, bytes)
                           : add_flow(d, to - 1, from - 1, false, bytes);
    }
  }
  sn__free(told);
  return status;
}

/* ---- where it goes --------------------------------------------------------------------------- */

/* A branch that is short stands where it is read. Boxes are made in the order of the graph, so
 * readers are settled first. */
static void sink_boxes(drawing *d) {
  for (size_t b = d->n_boxes; b-- > 0;) {
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < d->n_flows; i++) {
      const flow *w = &d->flows[i];
      if (w->seen && w->from == b && d->boxes[w->to].layer < least) least = d->boxes[w->to].layer;
    }
    if (least != SIZE_MAX && least > d->boxes[b].layer + 1) d->boxes[b].layer = least - 1;
  }
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

/* ---- drawing --------------------------------------------------------------------------------- */

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
  enum { FIT = 20 };
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
          "%.0f\" style=\"display:block;margin:0 auto;max-width:max(100%%,%.0fpx);height:auto\">\n",
          width, height, width, height, 0.75 * width);
  for (size_t i = 0; i < d->n_flows; i++)
    if (d->flows[i].seen) put_flow(f, d, &d->flows[i]);
  for (size_t b = 0; b < d->n_boxes; b++)
    put_box(f, d, &d->boxes[b]);
  for (size_t i = 0; i < d->n_flows; i++)
    if (d->flows[i].seen) put_flow_words(f, d, &d->flows[i]);
  fputs("</svg></div>\n<p class=\"soft\">Time is forward and backward. Dashed: from one "
        "device to another, with the bytes that go down (values) and up (gradients) in a step."
        "</p>\n",
        f);
}

sn_status html_graph(FILE *f, const sn_plan *plan) {
  drawing d = {.plan = plan};
  double width = 0;
  sn_status status = find_producers(&d);
  if (status == SN_OK) make_boxes(&d);
  if (status == SN_OK) status = find_flows(&d);
  if (status == SN_OK) sink_boxes(&d);
  if (status == SN_OK) status = settle(&d, &width);
  if (status == SN_OK) draw(f, &d, width);
  drawing_free(&d);
  return status;
}
