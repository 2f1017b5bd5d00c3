/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/bind.h"

#include <string.h>

#include "core/alloc.h"

static int field_named(const sn_dataset *dataset, const char *name) {
  for (size_t i = 0; i < sn_dataset_field_count(dataset); i++)
    if (strcmp(sn_dataset_field(dataset, i)->name, name) == 0) return (int)i;
  return BIND_NONE;
}

static int preparation_named(const sn_preparation *preparation, const char *name) {
  for (size_t i = 0; i < sn_preparation_field_count(preparation); i++)
    if (strcmp(sn_preparation_field(preparation, i)->name, name) == 0) return (int)i;
  return BIND_NONE;
}

/* The loss whose weights this input is, or whose labels. */
static int loss_with(const sn_graph *graph, sn_value input, bool weights) {
  for (size_t i = 0; i < sn_graph_loss_count(graph); i++) {
    sn_loss_info loss = sn_graph_loss(graph, i);
    sn_value part = weights ? loss.weights : loss.label;
    if (part.index != 0 && part.index == input.index) return (int)i;
  }
  return BIND_NONE;
}

/* Scalars and offsets are fed otherwise. */
static bool has_rows(sn_value input) {
  sn_shape shape = sn_value_shape(input);
  return shape.rank > 0 && sn_dim_addend(shape.dims[0]) == 0;
}

static sn_status bind_input_to(bind_set *bind, const sn_dataset *dataset, sn_value input,
                               bool labels) {
  const sn_graph *graph = bind->graph;
  const char *name = sn_value_name(input);
  int field = field_named(dataset, name), loss = loss_with(graph, input, true);
  bool weights = false;
  if (field < 0 && loss >= 0) {
    field = field_named(dataset, sn_value_name(sn_graph_loss(graph, (size_t)loss).label));
    weights = true;
  }
  if (field >= 0) {
    bind->inputs[bind->n_inputs++] = (bind_input){input, (size_t)field, weights};
    return SN_OK;
  }
  bool label = loss >= 0 || loss_with(graph, input, false) >= 0;
  if (label && !labels) return SN_OK;
  return sn_status_make(SN_CODE_DATA, "the model's input '%s' is not in the data", name);
}

static metric_kind kind_of(const sn_graph *graph, const sn_loss_info *loss) {
  (void)graph;
  sn_shape shape = sn_value_shape(loss->label);
  if (strncmp(loss->op, "sigmoid", strlen("sigmoid")) == 0) return METRIC_MULTILABEL;
  if (sn_dtype_is_float(sn_value_dtype(loss->label))) return METRIC_VALUES;
  return shape.dims[0] == SN_DIM_BATCH ? METRIC_CLASSES : METRIC_NEXT;
}

static void bind_output_to(bind_set *bind, const sn_preparation *preparation,
                           const sn_dataset *dataset, size_t i) {
  const sn_graph *graph = bind->graph;
  bind_output *out = &bind->outputs[i];
  out->value = sn_graph_output(graph, i, &out->name);
  out->loss = out->field = out->preparation = out->ragged = BIND_NONE;
  out->kind = METRIC_VALUES;
  sn_shape shape = sn_value_shape(out->value);
  out->width = 1;
  for (int32_t d = 1; d < shape.rank; d++)
    out->width *= shape.dims[d];
  for (size_t k = 0; k < bind->n_inputs && shape.rank > 0; k++) {
    sn_shape input = sn_value_shape(bind->inputs[k].value);
    if (shape.dims[0] != SN_DIM_BATCH && input.dims[0] == shape.dims[0])
      out->ragged = (int)bind->inputs[k].field;
  }
  for (size_t l = 0; l < sn_graph_loss_count(graph) && out->loss < 0; l++) {
    sn_loss_info loss = sn_graph_loss(graph, l);
    bool its = loss.prediction.index == out->value.index;
    if (its || strcmp(loss.name, out->name) == 0) out->loss = (int)l;
  }
  if (out->loss < 0) return;
  sn_loss_info loss = sn_graph_loss(graph, (size_t)out->loss);
  out->kind = kind_of(graph, &loss);
  out->field = field_named(dataset, sn_value_name(loss.label));
  out->preparation = preparation_named(preparation, sn_value_name(loss.label));
}

sn_status bind_create(const sn_graph *graph, const sn_preparation *preparation,
                      const sn_dataset *dataset, bool labels, bind_set *out) {
  size_t n = sn_graph_input_count(graph);
  *out = (bind_set){.graph = graph,
                    .inputs = sn__calloc(n + 1, sizeof *out->inputs),
                    .n_outputs = sn_graph_output_count(graph),
                    .feeds = sn__calloc(n + 1, sizeof *out->feeds)};
  out->outputs = sn__calloc(out->n_outputs + 1, sizeof *out->outputs);
  if (out->inputs == NULL || out->feeds == NULL || out->outputs == NULL) {
    bind_free(out);
    return sn_status_out_of_memory();
  }
  sn_status status = SN_OK;
  for (size_t i = 0; status == SN_OK && i < n; i++) {
    sn_value input = sn_graph_input(graph, i);
    if (has_rows(input)) status = bind_input_to(out, dataset, input, labels);
  }
  for (size_t i = 0; status == SN_OK && i < out->n_outputs; i++)
    bind_output_to(out, preparation, dataset, i);
  if (status != SN_OK) bind_free(out);
  return status;
}

void bind_free(bind_set *bind) {
  sn__free(bind->inputs);
  sn__free(bind->outputs);
  sn__free(bind->feeds);
  sn__free(bind->ones);
  *bind = (bind_set){.graph = NULL};
}

static sn_status need_ones(bind_set *bind, int64_t count) {
  size_t have = bind->cap_ones;
  if (have >= (size_t)count) return SN_OK;
  if (!sn__grow((void **)&bind->ones, &bind->cap_ones, (size_t)count, sizeof *bind->ones))
    return sn_status_out_of_memory();
  for (size_t i = have; i < bind->cap_ones; i++)
    bind->ones[i] = 1;
  return SN_OK;
}

sn_status bind_feeds(bind_set *bind, const sn_batch *batch, const sn_feed **out_feeds) {
  for (size_t i = 0; i < bind->n_inputs; i++)
    SN_TRY(need_ones(bind, batch->fields[bind->inputs[i].field].elements));
  for (size_t i = 0; i < bind->n_inputs; i++) {
    const bind_input *in = &bind->inputs[i];
    const sn_batch_field *f = &batch->fields[in->field];
    const void *weights = f->weights != NULL ? f->weights : bind->ones;
    bind->feeds[i] = (sn_feed){.value = in->value,
                               .data = in->weights ? weights : f->data,
                               .offsets = f->offsets,
                               .rows = batch->rows};
  }
  *out_feeds = bind->feeds;
  return SN_OK;
}

int64_t bind_rows(const bind_output *output, const sn_batch *batch) {
  return output->ragged < 0 ? batch->rows : batch->fields[output->ragged].elements;
}
