/* SPDX-License-Identifier: Apache-2.0 */
/* Where the first NaN or inf comes from: looked for behind every op when a step has shown one. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/run/session_impl.h"

static bool finite_at(const sn__tensor *t, int64_t i, double *out) {
  switch (t->dtype) {
  case SN_F32: *out = (double)((const float *)t->data)[i]; break;
  case SN_F64: *out = ((const double *)t->data)[i]; break;
  case SN_BF16: {
    uint32_t bits = (uint32_t)((const uint16_t *)t->data)[i] << 16;
    float number;
    memcpy(&number, &bits, sizeof number);
    *out = (double)number;
    break;
  }
  default: *out = 0;
  }
  return isfinite(*out);
}

/* The batch's row that element e of a ragged structure belongs to. */
static int64_t row_of_element(const sn__ragged_state *state, int64_t rows, int64_t e) {
  int64_t low = 0, high = rows - 1;
  while (state->narrow != NULL && low < high) {
    int64_t middle = low + (high - low + 1) / 2;
    if (state->narrow[middle] <= e)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

/* Whether a value over elements is in the order of the batch's rows: the reorder nearest before it
 * decides. In time-major order an element's row cannot be told from its place. */
static bool row_major(const sn_graph *g, uint32_t value) {
  int64_t dim = g->values[value].shape.dims[0];
  for (;;) {
    const sn__node *n = &g->nodes[g->values[value].node];
    if (strcmp(n->op->name, "reorder") == 0)
      return n->op->n_attrs > 0 && n->op->attrs[0].kind == SN_ATTR_INT &&
             *(const int64_t *)((const char *)n->attrs + n->op->attrs[0].offset) != 0;
    uint32_t next = 0;
    for (uint32_t i = 0; next == 0 && i < n->n_in; i++)
      if (n->in[i] != 0 && g->values[n->in[i]].shape.rank > 0 &&
          g->values[n->in[i]].shape.dims[0] == dim)
        next = n->in[i];
    if (next == 0) return true;
    value = next;
  }
}

/* Which row of the batch the i-th number of a value belongs to; -1 when it has none that is known.
 */
static int64_t row_of(const sn_session *s, uint32_t value, const sn__tensor *t, int64_t i) {
  const sn_graph *g = s->plan->graph;
  const sn__value *v = &g->values[value];
  if (v->shape.rank < 1 || !sn_dim_is_symbolic(v->shape.dims[0])) return -1;
  const sn__symbol *symbol = &g->symbols[sn_dim_symbol(v->shape.dims[0])];
  int64_t span = sn__shape_span(&t->shape, 1, t->shape.rank);
  int64_t first = span > 0 ? i / span : 0;
  if (symbol->kind == SN_SYMBOL_ROWS) return first;
  if (symbol->kind != SN_SYMBOL_ELEMENTS || !row_major(g, value)) return -1;
  uint32_t part = sn__value_part(g, value);
  return row_of_element(&s->raggeds[part * g->n_raggeds + symbol->ragged],
                        sn__session_extents(s, s->extents, part)[SN_SYMBOL_BATCH], first);
}

/* "rows 3, 7 and 2 more" of the values that are not finite. */
static void rows_text(const sn_session *s, uint32_t value, const sn__tensor *t, int64_t from,
                      char *text, size_t size) {
  int64_t count = sn__shape_size(&t->shape), last = -1, listed = 0, more = 0;
  size_t used = 0;
  text[0] = '\0';
  for (int64_t i = from; i < count; i++) {
    double number;
    if (finite_at(t, i, &number)) continue;
    int64_t row = row_of(s, value, t, i);
    if (row < 0 || row == last) continue;
    last = row;
    if (listed >= 4) {
      more++;
      continue;
    }
    int n = snprintf(text + used, size - used, "%s%lld", listed == 0 ? " in row " : ", ",
                     (long long)(s->parts[sn__value_part(s->plan->graph, value)].row_base + row));
    listed++;
    if (n > 0 && used + (size_t)n < size) used += (size_t)n;
  }
  if (more > 0) snprintf(text + used, size - used, " and %lld more", (long long)more);
}

static sn_status check_tensor(const sn__work *w, uint32_t value, const sn__tensor *t,
                              const char *what) {
  if (value == 0 || t->data == NULL || !sn_dtype_is_float(t->dtype)) return SN_OK;
  const sn_session *s = w->session;
  const sn_graph *g = s->plan->graph;
  int64_t count = sn__shape_size(&t->shape);
  for (int64_t i = 0; i < count; i++) {
    double number;
    if (finite_at(t, i, &number)) continue;
    char rows[160];
    rows_text(s, value, t, i, rows, sizeof rows);
    return sn_status_make(SN_CODE_NUMERIC, "%s '%s' of module '%s' is %s%s", what,
                          g->values[value].name, g->modules[w->node->module].path,
                          isnan(number) ? "nan" : "inf", rows);
  }
  return SN_OK;
}

static bool readable_here(const sn_session *s, const sn__node *n) {
  return s->plan->topology->devices[n->device].kind == SN_DEVICE_CPU;
}

sn_status sn__session_check_inputs(const sn__work *w) {
  const sn_graph *g = w->session->plan->graph;
  if (w->is_copy || !readable_here(w->session, w->node)) return SN_OK;
  for (uint32_t i = 0; i < w->node->n_in; i++) {
    uint32_t value = w->node->in[i];
    uint32_t storage = value == 0 ? 0 : sn__value_storage(g, value);
    if (storage == 0) continue;
    if (g->values[storage].kind == SN_VALUE_INPUT)
      SN_TRY(check_tensor(w, value, &w->exec.in[i], "input"));
    if (g->values[storage].kind == SN_VALUE_VARIABLE)
      SN_TRY(check_tensor(w, value, &w->exec.in[i], "before the step, variable"));
  }
  return SN_OK;
}

sn_status sn__session_check_outputs(const sn__work *w) {
  if (!readable_here(w->session, w->node)) return SN_OK;
  for (uint32_t o = 0; o < w->node->n_out; o++)
    SN_TRY(
        check_tensor(w, w->node->out[o], &w->exec.out[o], "the first that is not finite: output"));
  return SN_OK;
}
