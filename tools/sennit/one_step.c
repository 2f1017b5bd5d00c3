/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/one_step.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"

sn_shape one_step_shape(const one_step *s, sn_value value) {
  sn_shape shape = sn_value_shape(value);
  for (int32_t d = 0; d < shape.rank; d++) {
    int64_t dim = shape.dims[d];
    if (sn_dim_is_symbolic(dim))
      shape.dims[d] = s->extents[sn_dim_symbol(dim)] + sn_dim_addend(dim);
  }
  return shape;
}

static size_t bytes_of(const one_step *s, sn_value value) {
  sn_shape shape = one_step_shape(s, value);
  size_t bytes = sn_dtype_size(sn_value_dtype(value));
  for (int32_t d = 0; d < shape.rank; d++)
    bytes *= (size_t)shape.dims[d];
  return bytes;
}

/* ---- what is fetched ------------------------------------------------------------------------ */

static void want(one_step *s, sn_value value, const char *name) {
  s->names[s->n_fetches] = name;
  s->values[s->n_fetches++] = value;
}

static sn_status choose_fetches(one_step *s) {
  size_t n = sn_graph_value_count(s->model), n_variables = sn_graph_variable_count(s->model);
  size_t most = n + n_variables + sn_graph_loss_count(s->model) + 1;
  s->values = sn__calloc(most, sizeof *s->values);
  s->names = sn__calloc(most, sizeof *s->names);
  s->fetches = sn__calloc(most, sizeof *s->fetches);
  if (s->values == NULL || s->names == NULL || s->fetches == NULL) return sn_status_out_of_memory();
  for (size_t i = 1; i <= n; i++) {
    sn_value value = sn_graph_value(s->model, i);
    if (sn_value_computed(value)) want(s, value, sn_value_name(value));
  }
  s->n_activations = s->n_fetches;
  for (size_t i = 0; i < n_variables; i++) {
    sn_value variable = sn_graph_variable(s->model, i);
    sn_value gradient = sn_graph_gradient(s->train, variable);
    if (sn_value_ok(gradient)) want(s, gradient, sn_value_name(variable));
  }
  s->n_gradients = s->n_fetches - s->n_activations;
  for (size_t l = 0; l < sn_graph_loss_count(s->model); l++)
    want(s, sn_graph_loss(s->model, l).sum, sn_graph_loss(s->model, l).name);
  return SN_OK;
}

static sn_status make_room(one_step *s) {
  for (size_t i = 0; i < s->n_fetches; i++) {
    size_t bytes = bytes_of(s, s->values[i]);
    s->fetches[i] =
        (sn_fetch){.value = s->values[i], .data = sn__calloc(bytes + 1, 1), .bytes = bytes};
    if (s->fetches[i].data == NULL) return sn_status_out_of_memory();
  }
  return SN_OK;
}

/* ---- the batch ------------------------------------------------------------------------------ */

/* "batch", "strokes.elements", "strokes.longest". */
static int64_t extent_of(const one_step *s, const char *symbol) {
  if (strcmp(symbol, "batch") == 0) return s->rows;
  for (size_t i = 0; i < s->n_feeds; i++) {
    const char *name = sn_value_name(s->feeds[i].value);
    const int64_t *offsets = s->feeds[i].offsets;
    size_t length = strlen(name);
    if (offsets == NULL || strncmp(symbol, name, length) != 0) continue;
    if (strcmp(symbol + length, ".elements") == 0) return offsets[s->rows];
    int64_t longest = 0;
    for (int64_t r = 0; r < s->rows; r++)
      if (offsets[r + 1] - offsets[r] > longest) longest = offsets[r + 1] - offsets[r];
    if (strcmp(symbol + length, ".longest") == 0) return longest;
  }
  return 0;
}

static sn_status take_batch(one_step *s, bind_set *bind, const sn_batch *batch) {
  const sn_feed *feeds = NULL;
  SN_TRY(bind_feeds(bind, batch, &feeds));
  s->rows = batch->rows;
  s->n_feeds = bind->n_inputs;
  s->feeds = sn__calloc(s->n_feeds + 1, sizeof *s->feeds);
  if (s->feeds == NULL) return sn_status_out_of_memory();
  memcpy(s->feeds, feeds, s->n_feeds * sizeof *feeds);
  return SN_OK;
}

static sn_status take_extents(one_step *s) {
  size_t n = sn_plan_symbol_count(s->plan);
  s->extents = sn__calloc(n + 1, sizeof *s->extents);
  if (s->extents == NULL) return sn_status_out_of_memory();
  for (size_t i = 0; i < n; i++)
    s->extents[i] = extent_of(s, sn_plan_symbol(s->plan, i));
  return SN_OK;
}

/* ---- the step ------------------------------------------------------------------------------- */

/* The names are the task's, which knows the largest batch by them; the numbers are this batch's. */
static sn_status make_known(const one_step *s, const task *t, sn_extent **out_known) {
  *out_known = sn__calloc(t->n_extents + 1, sizeof **out_known);
  if (*out_known == NULL) return sn_status_out_of_memory();
  for (size_t i = 0; i < t->n_extents; i++)
    (*out_known)[i] = (sn_extent){t->extents[i].symbol, extent_of(s, t->extents[i].symbol)};
  return SN_OK;
}

static sn_status make_plan(one_step *s, const task *t) {
  const sn_trainer_options *o = &t->options;
  SN_TRY(sn_training_graph(s->model, &o->optimizer, SN_TRAIN_WHOLE, &s->train));
  sn_place_options place = o->placement;
  place.recompute = SN_RECOMPUTE_NONE; /* every value is written out: it is kept anyway */
  SN_TRY(sn_place(s->train, t->topology, &place, &s->placement));
  SN_TRY(sn_placement_apply(s->placement, s->train, &s->placed));
  SN_TRY(choose_fetches(s));
  sn_plan_options options = {.struct_size = sizeof options,
                             .fetches = s->values,
                             .n_fetches = s->n_fetches,
                             .training = true,
                             .n_extents = t->n_extents};
  sn_extent *known = NULL;
  SN_TRY(make_known(s, t, &known));
  options.extents = known;
  sn_status status = sn_plan_create(s->placed, t->topology, &options, &s->plan);
  sn__free(known);
  return status;
}

sn_status one_step_open(const task *t, bind_set *bind, const sn_batch *batch, one_step *s) {
  s->model = t->graph;
  SN_TRY(take_batch(s, bind, batch));
  SN_TRY(make_plan(s, t));
  SN_TRY(take_extents(s));
  SN_TRY(make_room(s));
  SN_TRY(sn_machine_create(t->topology, NULL, &s->machine));
  return sn_store_create(s->train, t->options.seed, &s->store);
}

sn_status one_step_run(one_step *s) {
  SN_TRY(sn_session_create(s->plan, s->store, s->machine, NULL, &s->session));
  sn_step_args args = {.struct_size = sizeof args,
                       .feeds = s->feeds,
                       .n_feeds = s->n_feeds,
                       .fetches = s->fetches,
                       .n_fetches = s->n_fetches};
  sn_timepoint done;
  SN_TRY(sn_session_step(s->session, &args, &done));
  return sn_session_wait(s->session, done);
}

double one_step_loss(const one_step *s, size_t loss) {
  float sum = 0;
  memcpy(&sum, s->fetches[s->n_activations + s->n_gradients + loss].data, sizeof sum);
  double weight = sn_session_loss_weight(s->session, loss);
  return weight > 0 ? (double)sum / weight : 0;
}

void one_step_close(one_step *s) {
  sn_session_free(s->session);
  sn_plan_free(s->plan);
  sn_store_free(s->store);
  sn_machine_free(s->machine);
  sn_placement_free(s->placement);
  sn_graph_free(s->placed);
  sn_graph_free(s->train);
  for (size_t i = 0; s->fetches != NULL && i < s->n_fetches; i++)
    sn__free(s->fetches[i].data);
  sn__free(s->fetches);
  sn__free(s->values);
  sn__free(s->names);
  sn__free(s->feeds);
  sn__free(s->extents);
  *s = (one_step){.model = NULL};
}
