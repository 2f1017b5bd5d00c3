/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds: what they say about extents, and the way to where kernels read them. */
#include "core/run/session_impl.h"

#include <string.h>

static sn__ragged_state *ragged_of(const sn_session *s, const sn__input *in) {
  const sn_graph *g = s->plan->graph;
  return &s->raggeds[sn__value_part(g, in->value) * g->n_raggeds + (size_t)in->ragged];
}

/* ---- measuring ----------------------------------------------------------------------------- */

typedef struct measure {
  sn_session *s;
  const sn_graph *g;
} measure;

static bool has_rows(const sn__input *in, const sn__value *v) {
  return in->ragged >= 0 || (v->shape.rank > 0 && v->shape.dims[0] == SN_DIM_BATCH);
}

static sn_status find_input(const sn_graph *g, const sn_feed *feed, uint32_t *out_input) {
  uint32_t index = feed->value.index;
  if (index == 0 || index >= g->n_values || g->values[index].kind != SN_VALUE_INPUT)
    return sn_status_make(SN_CODE_INVALID, "a feed is for '%s', which is no input",
                          index == 0 || index >= g->n_values ? "(invalid)" : g->values[index].name);
  *out_input = g->values[index].extra;
  const sn__input *in = &g->inputs[*out_input];
  if (in->role == SN_INPUT_OFFSETS)
    return sn_status_make(SN_CODE_INVALID, "'%s' is fed with its input: offsets of its sn_feed",
                          in->name);
  if (in->role != SN_INPUT_DATA)
    return sn_status_make(SN_CODE_INVALID, "'%s' is fed by the session itself", in->name);
  return SN_OK;
}

/* Some input of the part that has said how many rows there are. */
static const char *who_said(const measure *m, uint32_t part, int64_t rows) {
  for (size_t i = m->g->n_inputs; i-- > 0;) {
    const sn__input *in = &m->g->inputs[i];
    if (m->s->inputs[i].fed && m->s->inputs[i].rows == rows &&
        sn__value_part(m->g, in->value) == part && has_rows(in, &m->g->values[in->value]))
      return in->name;
  }
  return "";
}

static sn_status measure_rows(measure *m, const sn__input *in, int64_t rows) {
  uint32_t part = sn__value_part(m->g, in->value);
  int64_t *said = &sn__session_extents(m->s, m->s->wanted, part)[SN_SYMBOL_BATCH];
  if (rows < 0 || rows >= INT32_MAX)
    return sn_status_make(SN_CODE_INVALID, "input '%s' is fed with %lld rows; 0 to %d fit",
                          in->name, (long long)rows, INT32_MAX - 1);
  if (*said >= 0 && *said != rows)
    return sn_status_make(SN_CODE_INVALID,
                          "input '%s' is fed with %lld rows and '%s' with %lld: a batch has as "
                          "many in every input",
                          in->name, (long long)rows, who_said(m, part, *said), (long long)*said);
  *said = rows;
  return SN_OK;
}

/* One pass: start, order and the longest row. */
static sn_status scan_offsets(const sn__input *in, const int64_t *offsets, int64_t rows,
                              int64_t *out_longest) {
  if (offsets[0] != 0)
    return sn_status_make(SN_CODE_DATA, "input '%s': offsets start at %lld; they must start at 0",
                          in->name, (long long)offsets[0]);
  int64_t longest = 0;
  for (int64_t r = 0; r < rows; r++) {
    if (offsets[r + 1] < offsets[r])
      return sn_status_make(SN_CODE_DATA,
                            "input '%s': row %lld ends at %lld, before its start at %lld: offsets "
                            "must not decrease",
                            in->name, (long long)r, (long long)offsets[r + 1],
                            (long long)offsets[r]);
    int64_t length = offsets[r + 1] - offsets[r];
    longest = length > longest ? length : longest;
  }
  if (offsets[rows] > INT32_MAX)
    return sn_status_make(SN_CODE_DATA,
                          "input '%s': %lld elements in one batch; at most %d fit: use a smaller "
                          "batch",
                          in->name, (long long)offsets[rows], INT32_MAX);
  *out_longest = longest;
  return SN_OK;
}

static sn_status measure_offsets(measure *m, const sn__input *in, const sn_feed *feed) {
  if (feed->offsets == NULL) return SN_OK;
  uint32_t part = sn__value_part(m->g, in->value);
  int64_t *wanted = sn__session_extents(m->s, m->s->wanted, part);
  sn__ragged_state *state = ragged_of(m->s, in);
  const sn__ragged *ragged = &m->g->raggeds[in->ragged];
  if (state->offsets != NULL) {
    size_t bytes = ((size_t)feed->rows + 1) * sizeof *feed->offsets;
    if (state->offsets == feed->offsets || memcmp(state->offsets, feed->offsets, bytes) == 0)
      return SN_OK;
    return sn_status_make(SN_CODE_INVALID, "inputs '%s' and '%s' must have the same offsets",
                          state->input, in->name);
  }
  int64_t longest = 0;
  SN_TRY(scan_offsets(in, feed->offsets, feed->rows, &longest));
  state->offsets = feed->offsets;
  state->input = in->name;
  wanted[ragged->elements_symbol] = feed->offsets[feed->rows];
  wanted[ragged->longest_symbol] = longest;
  return SN_OK;
}

static sn_status measure_feed(measure *m, const sn_feed *feed) {
  uint32_t i = 0;
  SN_TRY(find_input(m->g, feed, &i));
  const sn__input *in = &m->g->inputs[i];
  sn__input_state *state = &m->s->inputs[i];
  if (state->fed) return sn_status_make(SN_CODE_INVALID, "input '%s' is fed twice", in->name);
  state->fed = true;
  state->data = feed->data;
  state->rows = feed->rows;
  if (!has_rows(in, &m->g->values[in->value])) return SN_OK;
  SN_TRY(measure_rows(m, in, feed->rows));
  return in->ragged >= 0 ? measure_offsets(m, in, feed) : SN_OK;
}

/* Everything that the plan reads has been fed. */
static sn_status check_complete(measure *m) {
  const bool *needed = m->s->plan->schedule->needed;
  for (size_t i = 0; i < m->g->n_inputs; i++) {
    const sn__input *in = &m->g->inputs[i];
    const sn__input_state *state = &m->s->inputs[i];
    if (!needed[m->g->values[in->value].node]) continue;
    if (in->role == SN_INPUT_DATA && !state->fed)
      return sn_status_make(SN_CODE_INVALID, "input '%s' is not fed", in->name);
    if (in->ragged >= 0 && ragged_of(m->s, in)->offsets == NULL)
      return sn_status_make(SN_CODE_INVALID, "input '%s' is fed without offsets",
                            m->g->raggeds[in->ragged].name);
    size_t bytes = 0;
    const int64_t *wanted =
        sn__session_extents(m->s, m->s->wanted, sn__value_part(m->g, in->value));
    if (in->role == SN_INPUT_DATA && state->data == NULL &&
        (!sn__value_bytes(m->g, in->value, wanted, &bytes) || bytes > 0))
      return sn_status_make(SN_CODE_INVALID, "input '%s' is fed with NULL", in->name);
  }
  return SN_OK;
}

sn_status sn__session_measure(sn_session *s, const sn_step_args *args) {
  const sn_graph *g = s->plan->graph;
  measure m = {.s = s, .g = g};
  memset(s->wanted, 0, s->n_parts * g->n_symbols * sizeof *s->wanted);
  for (uint32_t p = 0; p < s->n_parts; p++)
    sn__session_extents(s, s->wanted, p)[SN_SYMBOL_BATCH] = -1; /* no input has said */
  for (size_t i = 0; i < g->n_inputs; i++) {
    s->inputs[i].fed = s->inputs[i].in_buffer = false;
    s->inputs[i].data = NULL;
  }
  for (size_t i = 0; i < s->n_parts * g->n_raggeds; i++)
    s->raggeds[i].offsets = NULL;
  for (size_t i = 0; i < args->n_feeds; i++)
    SN_TRY(measure_feed(&m, &args->feeds[i]));
  for (uint32_t p = 0; p < s->n_parts; p++) {
    int64_t *rows = &sn__session_extents(s, s->wanted, p)[SN_SYMBOL_BATCH];
    if (*rows < 0) *rows = 0;
  }
  return check_complete(&m);
}

/* ---- staging ------------------------------------------------------------------------------- */

static sn_status narrow_offsets(sn_session *s, uint32_t part, size_t r) {
  sn__ragged_state *state = &s->raggeds[part * s->plan->graph->n_raggeds + r];
  if (state->offsets == NULL) return SN_OK;
  size_t count = (size_t)sn__session_extents(s, s->extents, part)[SN_SYMBOL_BATCH] + 1;
  if (!sn__grow((void **)&state->narrow, &state->capacity, count, sizeof *state->narrow))
    return sn_status_out_of_memory();
  for (size_t i = 0; i < count; i++)
    state->narrow[i] = (int32_t)state->offsets[i];
  return SN_OK;
}

static double sum_weights(const sn_session *s, uint32_t value) {
  const sn_graph *g = s->plan->graph;
  const sn__value *v = &g->values[value];
  const void *data = s->inputs[v->extra].data;
  sn_shape shape =
      sn__shape_resolve(&v->shape, sn__session_extents(s, s->extents, sn__value_part(g, value)));
  int64_t count = data == NULL ? 0 : sn__shape_size(&shape);
  double sum = 0;
  for (int64_t i = 0; i < count; i++)
    sum += v->dtype == SN_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
  return sum;
}

static double own_weight(const sn_session *s, const sn__loss_info *loss) {
  const sn_graph *g = s->plan->graph;
  if (loss->weights != 0) return sum_weights(s, loss->weights);
  return (double)sn__session_extents(s, s->extents, sn__value_part(g, loss->sum))[loss->symbol];
}

/* The parts of a batch have one seed for each loss of the model. */
static double batch_weight(const sn_session *s, const sn__loss_info *loss) {
  const sn_graph *g = s->plan->graph;
  double weight = 0;
  for (size_t i = 0; i < g->n_losses; i++)
    if (g->losses[i].seed == loss->seed) weight += own_weight(s, &g->losses[i]);
  return weight;
}

static void weigh_losses(sn_session *s, const sn_step_args *args) {
  const sn_graph *g = s->plan->graph;
  for (size_t i = 0; i < g->n_losses; i++) {
    const sn__loss_info *loss = &g->losses[i];
    double weight = args->loss_weights != NULL ? args->loss_weights[i] : batch_weight(s, loss);
    s->loss_weights[i] = weight;
    sn__input_state *seed = &s->inputs[g->values[loss->seed].extra];
    double number = weight != 0 ? loss->lambda / weight : 0;
    if (g->values[loss->seed].dtype == SN_F64)
      seed->scalar.f64 = number;
    else
      seed->scalar.f32 = (float)number;
  }
}

/* A device that reads host memory reads feeds in place, when they are aligned; others get a copy.
 */
static sn_status bring(sn_session *s, const sn__input *in, sn__input_state *state) {
  const sn_graph *g = s->plan->graph;
  const sn__value *v = &g->values[in->value];
  int32_t home = g->nodes[v->node].device;
  const sn_device_desc *desc = &s->plan->topology->devices[home];
  bool aligned = (uintptr_t)state->data % sn_dtype_size(v->dtype) == 0;
  if (desc->kind == SN_DEVICE_CPU && aligned) return SN_OK;
  size_t bytes = 0;
  const int64_t *extents = sn__session_extents(s, s->extents, sn__value_part(g, in->value));
  if (!sn__value_bytes(g, in->value, extents, &bytes)) return sn_status_out_of_memory();
  if (state->buffer == NULL || state->buffer->bytes < bytes) {
    sn__buffer_free(state->buffer);
    state->buffer = NULL;
    SN_TRY(sn__device_alloc(s->machine->devices[home], bytes, &state->buffer));
  }
  state->in_buffer = true;
  sn__transfer up = {.to = {.buffer = state->buffer},
                     .from = {.host = (void *)(uintptr_t)state->data},
                     .bytes = bytes};
  return sn__transfer_now(&up);
}

sn_status sn__session_stage(sn_session *s, const sn_step_args *args) {
  const sn_graph *g = s->plan->graph;
  for (uint32_t p = 0; p < s->n_parts; p++)
    for (size_t r = 0; r < g->n_raggeds; r++)
      SN_TRY(narrow_offsets(s, p, r));
  weigh_losses(s, args);
  for (size_t i = 0; i < g->n_inputs; i++) {
    const sn__input *in = &g->inputs[i];
    sn__input_state *state = &s->inputs[i];
    if (!s->plan->schedule->needed[g->values[in->value].node]) continue;
    if (in->role == SN_INPUT_OFFSETS) state->data = ragged_of(s, in)->narrow;
    if (in->role == SN_INPUT_STEP) state->scalar.i64 = s->store->step;
    if (in->role == SN_INPUT_STEP || in->role == SN_INPUT_SEED) state->data = &state->scalar;
    SN_TRY(bring(s, in, state));
  }
  return SN_OK;
}
