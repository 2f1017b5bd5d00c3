/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "tools/sennit/plan_report.h"

/* Light enough for black text; devices past the last begin again. */
static const char *const colours[] = {"#a6cee3", "#fdbf6f", "#b2df8a", "#fb9a99",
                                      "#cab2d6", "#ffff99", "#e5c494", "#cccccc"};

static const char *colour_of(int device) {
  return colours[(size_t)device % (sizeof colours / sizeof *colours)];
}

static void put_text(FILE *f, const char *text) {
  for (; *text != '\0'; text++) {
    if (*text == '"' || *text == '\\') fputc('\\', f);
    fputc(*text == '\n' ? ' ' : *text, f);
  }
}

static void put_node(FILE *f, const sn_plan_placed *n) {
  bool source = n->n_inputs == 0;
  const char *style = strcmp(n->phase, "backward") == 0 ? "filled,dashed"
                      : strcmp(n->phase, "update") == 0 ? "filled,bold"
                                                        : "filled";
  fprintf(f, "    n%u [shape=%s,style=\"%s\",fillcolor=\"%s\",label=\"", n->node,
          n->copy  ? "ellipse"
          : source ? "note"
                   : "box",
          style, colour_of(n->device));
  put_text(f, n->op);
  fputs("\\n", f);
  put_text(f, n->name);
  fputs("\",tooltip=\"", f);
  put_text(f, n->cause != NULL ? n->cause : "");
  fputs("\"];\n", f);
}

/* Nodes come grouped by module: a frame for each, in the order in which they are first met. */
static void put_modules(FILE *f, const sn_plan *plan) {
  size_t n = sn_plan_placed_count(plan);
  for (size_t i = 0; i < n; i++) {
    sn_plan_placed first = sn_plan_placed_at(plan, i);
    bool met = false;
    for (size_t j = 0; j < i && !met; j++)
      met = strcmp(sn_plan_placed_at(plan, j).module, first.module) == 0;
    if (met) continue;
    bool root = *first.module == '\0';
    if (!root) fprintf(f, "  subgraph \"cluster_%zu\" {\n    label=\"", i);
    if (!root) put_text(f, first.module);
    if (!root) fputs("\";\n", f);
    for (size_t j = i; j < n; j++) {
      sn_plan_placed node = sn_plan_placed_at(plan, j);
      if (strcmp(node.module, first.module) == 0) put_node(f, &node);
    }
    if (!root) fputs("  }\n", f);
  }
}

static sn_status put_edges(FILE *f, const sn_plan *plan) {
  size_t n = sn_plan_placed_count(plan), n_values = 1;
  for (size_t i = 0; i < n; i++) {
    sn_plan_placed node = sn_plan_placed_at(plan, i);
    for (size_t o = 0; o < node.n_outputs; o++)
      if (node.outputs[o] >= n_values) n_values = (size_t)node.outputs[o] + 1;
  }
  uint32_t *producer = sn__calloc(n_values, sizeof *producer);
  if (producer == NULL) return sn_status_out_of_memory();
  for (size_t i = 0; i < n; i++) {
    sn_plan_placed node = sn_plan_placed_at(plan, i);
    for (size_t o = 0; o < node.n_outputs; o++)
      producer[node.outputs[o]] = node.node;
  }
  for (size_t i = 0; i < n; i++) {
    sn_plan_placed node = sn_plan_placed_at(plan, i);
    for (size_t k = 0; k < node.n_inputs; k++)
      if (node.inputs[k] != 0)
        fprintf(f, "  n%u -> n%u%s;\n", producer[node.inputs[k]], node.node,
                node.copy ? " [style=bold]" : "");
  }
  sn__free(producer);
  return SN_OK;
}

static sn_status put_graph(FILE *f, const sn_placement *placement, const sn_plan *plan) {
  fputs("digraph plan {\n  rankdir=TB;\n  node [fontname=\"Helvetica\",fontsize=10];\n"
        "  labelloc=t;\n  label=\"",
        f);
  put_text(f, sn_placement_sentence(placement));
  fputs("\\nsolid: forward, dashed: backward, bold: update; ellipses: copies\";\n", f);
  for (size_t d = 0; d < sn_plan_device_count(plan); d++) {
    fprintf(f, "  d%zu [shape=box,style=filled,fillcolor=\"%s\",label=\"", d, colour_of((int)d));
    put_text(f, sn_plan_device_at(plan, d).name);
    fputs("\"];\n", f);
  }
  put_modules(f, plan);
  SN_TRY(put_edges(f, plan));
  fputs("}\n", f);
  return SN_OK;
}

sn_status plan_write_dot(const char *path, const sn_placement *placement, const sn_plan *plan) {
  FILE *f = fopen(path, "w");
  if (f == NULL) return sn_status_make(SN_CODE_IO, "%s: cannot write: %s", path, strerror(errno));
  sn_status status = put_graph(f, placement, plan);
  bool wrote = ferror(f) == 0;
  wrote = fclose(f) == 0 && wrote;
  if (status == SN_OK && !wrote)
    status = sn_status_make(SN_CODE_IO, "%s: cannot write: %s", path, strerror(errno));
  return status;
}
