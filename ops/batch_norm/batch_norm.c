/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisation of every feature over all elements of the (micro-)batch. Outputs: y, and stats
 * (batch_norm.h) for the backward pass and for the running variables, which only a training graph
 * commits. */
#include "ops/batch_norm/batch_norm.h"

static const sn__attr_def norm_attrs[] = {SN__FLOAT_ATTR(sn__batch_norm_attrs, momentum),
                                          SN__FLOAT_ATTR(sn__batch_norm_attrs, epsilon),
                                          SN__INT_ATTR(sn__batch_norm_attrs, variance)};

static const sn__attr_def total_attrs[] = {SN__INT_ATTR(sn__batch_total_attrs, moments)};

enum { IN_X, IN_SCALE, IN_SHIFT, IN_MEAN, IN_VARIANCE, IN_WHOLE };

static bool is_synced(int n_in) {
  return n_in > IN_WHOLE;
}

static sn_status batch_norm_infer(sn__infer *c) {
  static const char *const words[] = {"x", "scale", "shift", "the running mean",
                                      "the running variance"};
  const sn__batch_norm_attrs *a = c->attrs;
  /* Scale and shift may be left empty, not out: a graph from a file may try. */
  if (c->n_in <= IN_VARIANCE) return sn__infer_fail(c, "%s is missing", words[c->n_in]);
  SN_TRY(sn__want_real(c, IN_X, "x"));
  SN_TRY(sn__want_rank(c, IN_X, 2, SN_MAX_RANK, "x"));
  const int64_t features = c->in[IN_X].shape.dims[c->in[IN_X].shape.rank - 1];
  if (sn_dim_is_symbolic(features))
    return sn__infer_fail(c, "the last dimension of x must have a fixed size");
  for (int i = IN_SCALE; i <= IN_VARIANCE; i++)
    if (c->in[i].dtype != SN_DTYPE_NONE)
      SN_TRY(sn__want_vector(c, i, features, words[i]));
    else if (i >= IN_MEAN)
      return sn__infer_fail(c, "%s is missing", words[i]);
  const sn_shape stats = {1, {2 * features + 1}};
  if (is_synced(c->n_in) &&
      (c->in[IN_WHOLE].dtype != SN_F64 || !sn_shape_equal(&c->in[IN_WHOLE].shape, &stats)))
    return sn__infer_fail(c, "the whole batch's statistics must be those of batch_moments");
  if (!(a->epsilon >= 0)) return sn__infer_fail(c, "epsilon %g must not be negative", a->epsilon);
  if (!(a->momentum >= 0 && a->momentum <= 1))
    return sn__infer_fail(c, "momentum %g must be from 0 to 1", a->momentum);
  c->out[0] = c->in[IN_X];
  c->out[1] = (sn__type){c->in[IN_X].dtype, stats};
  return SN_OK;
}

static sn_status batch_moments_infer(sn__infer *c) {
  SN_TRY(sn__want_real(c, 0, "x"));
  SN_TRY(sn__want_rank(c, 0, 2, SN_MAX_RANK, "x"));
  const int64_t features = c->in[0].shape.dims[c->in[0].shape.rank - 1];
  if (sn_dim_is_symbolic(features))
    return sn__infer_fail(c, "the last dimension of x must have a fixed size");
  c->out[0] = (sn__type){SN_F64, {1, {2 * features + 1}}};
  return SN_OK;
}

static sn_status batch_total_infer(sn__infer *c) {
  const sn__batch_total_attrs *a = c->attrs;
  for (int i = 0; i < c->n_in; i++)
    if (c->in[i].dtype != SN_F64 || c->in[i].shape.rank != 1 || c->in[i].shape.dims[0] < 1 ||
        !sn_shape_equal(&c->in[i].shape, &c->in[0].shape))
      return sn__infer_fail(c, "inputs must be f64 vectors of one size");
  if (a->moments != 0 && c->in[0].shape.dims[0] % 2 == 0)
    return sn__infer_fail(c, "inputs must be moments: a mean and a variance of each feature, then "
                             "their count");
  c->out[0] = c->in[0];
  return SN_OK;
}

/* dy, x, stats -> sums over rows of dy and of dy * (normalised x) */
static sn_status batch_norm_grad_sums_infer(sn__infer *c) {
  c->out[0] = (sn__type){SN_F64, {1, {2 * c->in[1].shape.dims[c->in[1].shape.rank - 1]}}};
  return SN_OK;
}

/* dy, x, stats, scale (optional), sums of these rows and of all (with sync) -> dx, dscale, dshift
 */
static sn_status batch_norm_grad_infer(sn__infer *c) {
  c->out[0] = c->in[1];
  c->out[1] = (sn__type){c->in[1].dtype, {1, {c->in[1].shape.dims[c->in[1].shape.rank - 1]}}};
  c->out[2] = c->out[1];
  return SN_OK;
}

/* running, control (absent where no optimizer is), stats of each micro-batch in order -> running */
static sn_status batch_norm_commit_infer(sn__infer *c) {
  c->out[0] = c->in[0];
  return SN_OK;
}

static void batch_norm_cost(const sn__exec *e, sn__cost *out) {
  out->flops = 10.0 * (double)sn__shape_size(&e->in[0].shape);
  out->bytes = sn__tensor_bytes(e);
}

static sn_value add_total(sn_graph *g, sn_value part, bool moments) {
  const sn__batch_total_attrs a = {.moments = moments};
  return sn__node_add(g, &sn__op_batch_total, &a, &part, 1, NULL, NULL);
}

static void add_commit(const sn__grad *c, int variable, bool variance) {
  sn_graph *g = c->graph;
  sn__batch_norm_attrs a = *(const sn__batch_norm_attrs *)c->attrs;
  a.variance = variance;
  const sn_phase phase = g->phase;
  const uint32_t home = g->home;
  g->phase = SN_UPDATE;
  g->home = c->in[variable].index;
  const sn_value in[] = {[SN__COMMIT_RUNNING] = c->in[variable],
                         [SN__COMMIT_CONTROL] = sn__value_at(g, 0),
                         [SN__COMMIT_STATS] = is_synced(c->n_in) ? c->in[IN_WHOLE] : c->out[1]};
  sn_value v = sn__node_add(g, &sn__op_batch_norm_commit, &a, in, 3, NULL, NULL);
  g->phase = phase;
  g->home = home;
  const sn__value *running = sn__value_info(g, c->in[variable]);
  if (sn_value_ok(v) && running->kind == SN_VALUE_VARIABLE)
    g->variables[running->extra].commit = g->values[v.index].node;
}

static sn_status batch_norm_grad(const sn__grad *c) {
  add_commit(c, IN_MEAN, false);
  add_commit(c, IN_VARIANCE, true);
  if (!sn_value_ok(c->dout[0])) return SN_OK;
  sn_value in[6] = {c->dout[0], c->in[IN_X], c->out[1], c->in[IN_SCALE]};
  sn_value out[SN_MAX_OUTPUTS];
  size_t n_in = 4;
  if (is_synced(c->n_in)) {
    in[n_in++] = sn__node_add(c->graph, &sn__op_batch_norm_grad_sums, c->attrs, in, 3, NULL, NULL);
    in[n_in] = add_total(c->graph, in[n_in - 1], false);
    n_in++;
  }
  sn__node_add(c->graph, &sn__op_batch_norm_grad, c->attrs, in, n_in, NULL, out);
  for (int i = IN_X; i <= IN_SHIFT; i++)
    if (c->need[i]) c->din[i] = out[i];
  return SN_OK;
}

static size_t batch_norm_grad_workspace(const sn__exec *e) {
  return 2 * (size_t)e->out[1].shape.dims[0] * sn_dtype_size(e->out[1].dtype);
}

const sn_op_def sn__op_batch_norm = {
    .name = "batch_norm",
    .version = 1,
    .min_inputs = 1,
    .max_inputs = 6,
    .n_outputs = 2,
    SN__ATTRS(sn__batch_norm_attrs, norm_attrs),
    .infer = batch_norm_infer,
    .grad = batch_norm_grad,
    .saved_inputs =
        1u << IN_X | 1u << IN_SCALE | 1u << IN_MEAN | 1u << IN_VARIANCE | 1u << IN_WHOLE,
    .saved_outputs = 1u << 1,
    .cost = batch_norm_cost,
    .cpu = sn__batch_norm_cpu,
    .doc = "normalises each feature over the batch, or by running statistics in evaluation"};

const sn_op_def sn__op_batch_norm_grad = {.name = "batch_norm_grad",
                                          .version = 1,
                                          .min_inputs = 3,
                                          .max_inputs = 6,
                                          .n_outputs = 3,
                                          .flags = SN_OP_GRAD,
                                          SN__ATTRS(sn__batch_norm_attrs, norm_attrs),
                                          .infer = batch_norm_grad_infer,
                                          .cost = batch_norm_cost,
                                          .workspace = batch_norm_grad_workspace,
                                          .cpu = sn__batch_norm_grad_cpu,
                                          .doc = "gradients of batch_norm"};

const sn_op_def sn__op_batch_norm_commit = {
    .name = "batch_norm_commit",
    .version = 1,
    .min_inputs = 3,
    .max_inputs = -1,
    .n_outputs = 1,
    .flags = SN_OP_GRAD | SN_OP_COMMIT,
    SN__ATTRS(sn__batch_norm_attrs, norm_attrs),
    .infer = batch_norm_commit_infer,
    .commits = {SN__COMMIT_RUNNING + 1},
    .control = SN__COMMIT_CONTROL + 1,
    .cpu = sn__batch_norm_commit_cpu,
    .doc = "moves a running statistic towards the batch's; an empty or not finite one leaves it"};

const sn_op_def sn__op_batch_moments = {
    .name = "batch_moments",
    .version = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .n_outputs = 1,
    .flags = SN_OP_NO_GRAD,
    .infer = batch_moments_infer,
    .cost = batch_norm_cost,
    .cpu = sn__batch_moments_cpu,
    .doc = "mean, variance and count of each feature, for batch_norm with sync"};

const sn_op_def sn__op_batch_norm_grad_sums = {
    .name = "batch_norm_grad_sums",
    .version = 1,
    .min_inputs = 3,
    .max_inputs = 3,
    .n_outputs = 1,
    .flags = SN_OP_GRAD,
    SN__ATTRS(sn__batch_norm_attrs, norm_attrs),
    .infer = batch_norm_grad_sums_infer,
    .cost = batch_norm_cost,
    .cpu = sn__batch_norm_grad_sums_cpu,
    .doc = "what the gradient of batch_norm adds up over rows, for batch_norm with sync"};

const sn_op_def sn__op_batch_total = {
    .name = "batch_total",
    .version = 1,
    .min_inputs = 1,
    .max_inputs = -1,
    .n_outputs = 1,
    .flags = SN_OP_NO_GRAD | SN_OP_ALL_PARTS,
    SN__ATTRS(sn__batch_total_attrs, total_attrs),
    .infer = batch_total_infer,
    .cpu = sn__batch_total_cpu,
    .doc = "sums, or moments weighted by count, of all micro-batches"};

sn_value sn_batch_norm_op(sn_graph *g, sn_value x, sn_value scale, sn_value shift,
                          sn_value running_mean, sn_value running_variance, double momentum,
                          double epsilon) {
  sn__batch_norm_attrs a = {.momentum = momentum, .epsilon = epsilon};
  const sn_value in[] = {x, scale, shift, running_mean, running_variance};
  return sn__node_add(g, &sn__op_batch_norm, &a, in, 5, NULL, NULL);
}

sn_value sn_batch_norm_sync_op(sn_graph *g, sn_value x, sn_value scale, sn_value shift,
                               sn_value running_mean, sn_value running_variance, double momentum,
                               double epsilon) {
  sn__batch_norm_attrs a = {.momentum = momentum, .epsilon = epsilon};
  const sn_value part = sn__node_add(g, &sn__op_batch_moments, NULL, &x, 1, NULL, NULL);
  const sn_value in[] = {x, scale, shift, running_mean, running_variance, add_total(g, part, true)};
  return sn__node_add(g, &sn__op_batch_norm, &a, in, 6, NULL, NULL);
}
