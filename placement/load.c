/* SPDX-License-Identifier: Apache-2.0 */
/* The load problem's arrays, made from a flow or by putting classes together. */
#include "placement/load.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

void sn__load_free(sn__load *l) {
  if (l == NULL) return;
  void *const arrays[] = {l->kind_of, l->ns,   l->bytes,     l->net_ns, l->first_end,
                          l->ends,    l->nets, l->first_net, l->after,  l->first_after};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
    sn__free(arrays[i]);
  sn__free(l);
}

static sn__load *create(int n_devices, int n_kinds, uint32_t n_classes) {
  sn__load *l = sn__calloc(1, sizeof *l);
  if (l == NULL) return NULL;
  l->n_devices = n_devices;
  l->n_kinds = n_kinds;
  l->n_classes = n_classes;
  l->kind_of = sn__calloc((size_t)n_devices, sizeof *l->kind_of);
  l->ns = sn__calloc((size_t)n_classes * (size_t)n_kinds + 1, sizeof *l->ns);
  l->bytes = sn__calloc((size_t)n_classes + 1, sizeof *l->bytes);
  l->first_net = sn__calloc((size_t)n_classes + 1, sizeof *l->first_net);
  l->first_after = sn__calloc((size_t)n_classes + 1, sizeof *l->first_after);
  if (l->kind_of && l->ns && l->bytes && l->first_net && l->first_after) return l;
  sn__load_free(l);
  return NULL;
}

/* ---- nets ----------------------------------------------------------------------------------- */

/* Nets as they come: ends in one long row, unsorted, with repeats. */
typedef struct raw_nets {
  uint32_t n, n_ends;
  uint32_t *first, *ends; /* first: [n + 1] */
  int64_t *ns;
} raw_nets;

static void raw_free(raw_nets *r) {
  sn__free(r->first);
  sn__free(r->ends);
  sn__free(r->ns);
}

static bool raw_create(raw_nets *r, size_t nets, size_t ends) {
  *r = (raw_nets){0};
  r->first = sn__calloc(nets + 1, sizeof *r->first);
  r->ns = sn__calloc(nets + 1, sizeof *r->ns);
  r->ends = sn__calloc(ends + 1, sizeof *r->ends);
  return r->first && r->ns && r->ends;
}

static int compare_u32(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

static uint32_t unique_u32(uint32_t *x, uint32_t n) {
  uint32_t kept = 0;
  if (n > 1) qsort(x, n, sizeof *x, compare_u32);
  for (uint32_t i = 0; i < n; i++)
    if (kept == 0 || x[kept - 1] != x[i]) x[kept++] = x[i];
  return kept;
}

/* Sorts each net's ends and makes them unique; drops nets that cannot be cut or cost nothing. */
static void raw_tidy(raw_nets *r) {
  uint32_t nets = 0, ends = 0;
  for (uint32_t i = 0; i < r->n; i++) {
    uint32_t begin = r->first[i], end = r->first[i + 1];
    uint32_t n = unique_u32(r->ends + begin, end - begin);
    if (n < 2 || r->ns[i] == 0) continue;
    memmove(r->ends + ends, r->ends + begin, n * sizeof *r->ends);
    r->first[nets] = ends;
    r->ns[nets++] = r->ns[i];
    ends += n;
  }
  r->first[nets] = ends;
  r->n = nets;
  r->n_ends = ends;
}

typedef struct net_key {
  const uint32_t *ends;
  uint32_t n, net;
} net_key;

static int compare_keys(const void *a, const void *b) {
  const net_key *x = a, *y = b;
  if (x->n != y->n) return x->n < y->n ? -1 : 1;
  for (uint32_t i = 0; i < x->n; i++)
    if (x->ends[i] != y->ends[i]) return x->ends[i] < y->ends[i] ? -1 : 1;
  return x->net < y->net ? -1 : x->net > y->net;
}

static bool same_ends(const net_key *x, const net_key *y) {
  return x->n == y->n && memcmp(x->ends, y->ends, x->n * sizeof *x->ends) == 0;
}

/* Equal sets become one net that costs their sum. */
static sn_status take_nets(sn__load *l, const raw_nets *r) {
  net_key *keys = sn__calloc((size_t)r->n + 1, sizeof *keys);
  l->net_ns = sn__calloc((size_t)r->n + 1, sizeof *l->net_ns);
  l->first_end = sn__calloc((size_t)r->n + 1, sizeof *l->first_end);
  l->ends = sn__calloc((size_t)r->n_ends + 1, sizeof *l->ends);
  l->nets = sn__calloc((size_t)r->n_ends + 1, sizeof *l->nets);
  if (!keys || !l->net_ns || !l->first_end || !l->ends || !l->nets) {
    sn__free(keys);
    return sn_status_out_of_memory();
  }
  for (uint32_t i = 0; i < r->n; i++)
    keys[i] = (net_key){r->ends + r->first[i], r->first[i + 1] - r->first[i], i};
  if (r->n > 1) qsort(keys, r->n, sizeof *keys, compare_keys);
  uint32_t ends = 0;
  for (uint32_t i = 0; i < r->n; i++) {
    if (i > 0 && same_ends(&keys[i - 1], &keys[i])) {
      l->net_ns[l->n_nets - 1] += r->ns[keys[i].net];
      continue;
    }
    memcpy(l->ends + ends, keys[i].ends, keys[i].n * sizeof *l->ends);
    l->first_end[l->n_nets] = ends;
    l->net_ns[l->n_nets++] = r->ns[keys[i].net];
    ends += keys[i].n;
  }
  l->first_end[l->n_nets] = ends;
  sn__free(keys);
  for (uint32_t i = 0; i < ends; i++)
    l->first_net[l->ends[i] + 1]++;
  for (uint32_t c = 0; c < l->n_classes; c++)
    l->first_net[c + 1] += l->first_net[c];
  for (uint32_t n = 0; n < l->n_nets; n++)
    for (uint32_t i = l->first_end[n]; i < l->first_end[n + 1]; i++)
      l->nets[l->first_net[l->ends[i]]++] = n;
  for (uint32_t c = l->n_classes; c > 0; c--)
    l->first_net[c] = l->first_net[c - 1];
  l->first_net[0] = 0;
  return SN_OK;
}

/* ---- edges ---------------------------------------------------------------------------------- */

typedef struct edge {
  uint32_t from, to;
} edge;

static int compare_edges(const void *a, const void *b) {
  const edge *x = a, *y = b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  return x->to < y->to ? -1 : x->to > y->to;
}

/* Sorts `edges` in place. */
static sn_status take_edges(sn__load *l, edge *edges, uint32_t n) {
  l->after = sn__calloc((size_t)n + 1, sizeof *l->after);
  if (l->after == NULL) return sn_status_out_of_memory();
  if (n > 1) qsort(edges, n, sizeof *edges, compare_edges);
  for (uint32_t i = 0; i < n; i++) {
    if (edges[i].from == edges[i].to || (i > 0 && compare_edges(&edges[i - 1], &edges[i]) == 0))
      continue;
    l->after[l->n_edges++] = edges[i].to;
    l->first_after[edges[i].from + 1]++;
  }
  for (uint32_t c = 0; c < l->n_classes; c++)
    l->first_after[c + 1] += l->first_after[c];
  return SN_OK;
}

/* ---- from a flow ---------------------------------------------------------------------------- */

static bool same_device(const sn__flow *f, const sn__load_facts *facts, int a, int b) {
  if (f->device_bytes[a] != f->device_bytes[b]) return false;
  if (facts->device_pays != NULL && facts->device_pays[a] != facts->device_pays[b]) return false;
  for (uint32_t t = 0; t < f->n_tasks; t++) {
    const int64_t *ns = f->task_ns + (size_t)t * (size_t)f->n_devices;
    if (ns[a] != ns[b]) return false;
  }
  return true;
}

/* The kind of each device, and the first device of each kind. */
static sn_status find_kinds(const sn__flow *f, const sn__load_facts *facts, int *kind_of,
                            int *first, int *out_n) {
  bool pinned[256] = {0};
  int n = 0;
  for (uint32_t c = 0; c < f->n_classes; c++)
    if (f->class_pin[c] >= 0) pinned[f->class_pin[c]] = true;
  for (int d = 0; d < f->n_devices; d++) {
    int k = 0;
    while (k < n && (pinned[d] || pinned[first[k]] || !same_device(f, facts, first[k], d)))
      k++;
    if (k == SN__LOAD_KINDS_MOST)
      return sn_status_make(SN_CODE_UNSUPPORTED,
                            "placement: more than %d kinds of device; the load objective takes "
                            "machines of a few kinds",
                            SN__LOAD_KINDS_MOST);
    if (k == n) first[n++] = d;
    kind_of[d] = k;
  }
  *out_n = n;
  return SN_OK;
}

static sn_status fill_nets(sn__load *l, const sn__flow *f) {
  raw_nets raw;
  sn_status status = SN_OK;
  if (!raw_create(&raw, f->n_values, (size_t)f->n_values + f->n_reads)) {
    raw_free(&raw);
    return sn_status_out_of_memory();
  }
  for (uint32_t v = 0; v < f->n_values; v++) {
    raw.first[raw.n] = raw.n_ends;
    raw.ns[raw.n++] = f->copy_ns[(size_t)v * (size_t)f->n_links];
    raw.ends[raw.n_ends++] = f->value_class[v];
    for (uint32_t r = f->first_reader[v]; r < f->first_reader[v + 1]; r++)
      raw.ends[raw.n_ends++] = f->task_class[f->reads[r].task];
  }
  raw.first[raw.n] = raw.n_ends;
  raw_tidy(&raw);
  status = take_nets(l, &raw);
  raw_free(&raw);
  return status;
}

static void add_edge(edge *edges, uint32_t *n, uint32_t from, uint32_t to) {
  if (from != to) edges[(*n)++] = (edge){from, to};
}

/* One edge of tasks as one of classes, where it is one. */
static void fold_edge(const sn__flow *f, const bool *backward, const bool *forward_class,
                      uint32_t from, uint32_t to, edge *edges, uint32_t *n) {
  uint32_t a = f->task_class[from], b = f->task_class[to];
  bool from_back = backward != NULL && backward[from], to_back = backward != NULL && backward[to];
  if (!from_back && !to_back)
    add_edge(edges, n, a, b);
  else if (from_back && to_back && (!forward_class[a] || !forward_class[b]))
    add_edge(edges, n, b, a);
}

static sn_status fill_edges(sn__load *l, const sn__flow *f, const bool *backward) {
  uint32_t n = 0;
  edge *edges = sn__calloc((size_t)f->n_reads + f->n_orders + 1, sizeof *edges);
  bool *forward = sn__calloc((size_t)f->n_classes + 1, sizeof *forward);
  sn_status status = SN_OK;
  if (edges == NULL || forward == NULL) {
    status = sn_status_out_of_memory();
    goto done;
  }
  for (uint32_t t = 0; t < f->n_tasks; t++)
    if (backward == NULL || !backward[t]) forward[f->task_class[t]] = true;
  for (uint32_t i = 0; i < f->n_reads; i++) {
    uint32_t maker = f->value_task[f->reads[i].value];
    if (maker != SN__FLOW_NONE) fold_edge(f, backward, forward, maker, f->reads[i].task, edges, &n);
  }
  for (uint32_t i = 0; i < f->n_orders; i++)
    fold_edge(f, backward, forward, f->orders[i].before, f->orders[i].after, edges, &n);
  status = take_edges(l, edges, n);
done:
  sn__free(edges);
  sn__free(forward);
  return status;
}

static sn_status check_links(const sn__flow *f) {
  for (int a = 0; a < f->n_devices; a++)
    for (int b = 0; b < f->n_devices; b++)
      if (a != b && f->link_of[(size_t)a * (size_t)f->n_devices + (size_t)b] != f->link_of[1])
        return sn_status_make(SN_CODE_UNSUPPORTED,
                              "placement: links of several kinds; the load objective takes one "
                              "cost a tensor");
  return SN_OK;
}

sn_status sn__load_create(const sn__flow *f, const sn__load_facts *facts, sn__load **out_load) {
  static const sn__load_facts none;
  int kind_of[256], first[SN__LOAD_KINDS_MOST], n_kinds = 0;
  if (facts == NULL) facts = &none;
  if (f->n_devices > 1) SN_TRY(check_links(f));
  SN_TRY(find_kinds(f, facts, kind_of, first, &n_kinds));
  sn__load *l = create(f->n_devices, n_kinds, f->n_classes);
  if (l == NULL) return sn_status_out_of_memory();
  for (int d = 0; d < f->n_devices; d++) {
    sn__load_kind *kind = &l->kinds[kind_of[d]];
    l->kind_of[d] = kind_of[d];
    kind->count++;
    kind->pays = facts->device_pays == NULL || facts->device_pays[d];
    kind->bytes = f->device_bytes[d];
  }
  for (uint32_t c = 0; c < f->n_classes; c++) {
    int pin = f->class_pin[c];
    for (int k = 0; k < n_kinds; k++)
      l->ns[(size_t)c * (size_t)n_kinds + (size_t)k] =
          pin < 0 || kind_of[pin] == k ? sn__flow_class_ns(f, c, first[k]) : SN__FLOW_NEVER;
    l->bytes[c] = f->class_bytes[c];
  }
  sn_status status = fill_nets(l, f);
  if (status == SN_OK) status = fill_edges(l, f, facts->task_backward);
  if (status != SN_OK) {
    sn__load_free(l);
    return status;
  }
  *out_load = l;
  return SN_OK;
}

/* ---- putting classes together --------------------------------------------------------------- */

static sn_status contract_nets(sn__load *into, const sn__load *l, const uint32_t *block_of) {
  raw_nets raw;
  uint32_t n_ends = l->first_end[l->n_nets];
  if (!raw_create(&raw, l->n_nets, n_ends)) {
    raw_free(&raw);
    return sn_status_out_of_memory();
  }
  raw.n = l->n_nets;
  raw.n_ends = n_ends;
  memcpy(raw.first, l->first_end, ((size_t)l->n_nets + 1) * sizeof *raw.first);
  memcpy(raw.ns, l->net_ns, (size_t)l->n_nets * sizeof *raw.ns);
  for (uint32_t i = 0; i < n_ends; i++)
    raw.ends[i] = block_of[l->ends[i]];
  raw_tidy(&raw);
  sn_status status = take_nets(into, &raw);
  raw_free(&raw);
  return status;
}

static sn_status contract_edges(sn__load *into, const sn__load *l, const uint32_t *block_of) {
  edge *edges = sn__calloc((size_t)l->n_edges + 1, sizeof *edges);
  if (edges == NULL) return sn_status_out_of_memory();
  uint32_t n = 0;
  for (uint32_t c = 0; c < l->n_classes; c++)
    for (uint32_t i = l->first_after[c]; i < l->first_after[c + 1]; i++)
      add_edge(edges, &n, block_of[c], block_of[l->after[i]]);
  sn_status status = take_edges(into, edges, n);
  sn__free(edges);
  return status;
}

sn_status sn__load_contract(const sn__load *l, const uint32_t *block_of, uint32_t n_blocks,
                            sn__load **out_load) {
  sn__load *into = create(l->n_devices, l->n_kinds, n_blocks);
  if (into == NULL) return sn_status_out_of_memory();
  size_t kinds = (size_t)l->n_kinds;
  memcpy(into->kind_of, l->kind_of, (size_t)l->n_devices * sizeof *l->kind_of);
  memcpy(into->kinds, l->kinds, sizeof l->kinds);
  for (uint32_t c = 0; c < l->n_classes; c++) {
    uint32_t b = block_of[c];
    for (size_t k = 0; k < kinds; k++) {
      int64_t *sum = &into->ns[b * kinds + k], ns = l->ns[c * kinds + k];
      *sum = *sum == SN__FLOW_NEVER || ns == SN__FLOW_NEVER ? SN__FLOW_NEVER : *sum + ns;
    }
    into->bytes[b] += l->bytes[c];
  }
  sn_status status = contract_nets(into, l, block_of);
  if (status == SN_OK) status = contract_edges(into, l, block_of);
  if (status != SN_OK) {
    sn__load_free(into);
    return status;
  }
  *out_load = into;
  return SN_OK;
}
