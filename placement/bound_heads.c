/* SPDX-License-Identifier: Apache-2.0 */
/* Heads and tails with copies.
 *
 * For a task v and a time t: a task u before it that, were it on another device, could reach v only
 * after t must be on v's device if v is to start by t. All those go one after another there. The
 * least t for which they can be done is v's head. To reach v from elsewhere each path from u has a
 * copy somewhere; where the copy is cheapest counts. Tails are heads of the graph turned round. */
#include "placement/bound_heads.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "placement/exact_bound.h"

typedef struct edge {
  uint32_t before, after;
  int64_t copy; /* at least, if they are on different devices */
} edge;

/* One direction of the graph. */
typedef struct way {
  uint32_t *first_in, *in;   /* [n + 1], edges that end in a task */
  uint32_t *first_out, *out; /* [n + 1], edges that begin in it */
} way;

typedef struct near_task {
  uint32_t task;
  int64_t direct; /* from its end to v at least, if it is on v's device */
  int64_t remote; /* if it is not */
  int64_t key;    /* when it reaches v from elsewhere; INT64_MAX: it cannot be elsewhere */
} near_task;

typedef struct maker {
  const sn__flow *f;
  sn__windows *w;
  edge *edges;
  uint32_t n_edges;
  way ways[2];        /* forwards, backwards */
  uint32_t *position; /* [n] in topological order */
  uint32_t *slot;     /* [n] 1 + where a task stands in `near`; 0: it does not */
  bool *marked;       /* [n] */
  uint32_t *list;     /* [n] the marked ones */
  uint32_t n_list;
  uint64_t most_bytes;
  bool limits;
  near_task *near;
  sn__piece *pieces, *heap;
  uint32_t near_most;
} maker;

/* ---- the graph ------------------------------------------------------------------------------ */

static int64_t least_copy(const sn__flow *f, uint32_t value) {
  int64_t least = f->n_devices > 1 ? INT64_MAX : 0;
  for (int k = 0; f->n_devices > 1 && k < f->n_links; k++) {
    int64_t ns = f->copy_ns[(size_t)value * (size_t)f->n_links + (size_t)k];
    if (ns < least) least = ns;
  }
  return least;
}

static void list_edges(maker *m) {
  const sn__flow *f = m->f;
  for (uint32_t i = 0; i < f->n_reads; i++)
    if (f->value_task[f->reads[i].value] != SN__FLOW_NONE)
      m->edges[m->n_edges++] = (edge){f->value_task[f->reads[i].value], f->reads[i].task,
                                      least_copy(f, f->reads[i].value)};
  for (uint32_t o = 0; o < f->n_orders; o++)
    if (f->orders[o].reads == 0)
      m->edges[m->n_edges++] = (edge){f->orders[o].before, f->orders[o].after, 0};
}

static void link_way(const maker *m, way *w, bool backwards) {
  uint32_t n = m->f->n_tasks;
  for (uint32_t e = 0; e < m->n_edges; e++) {
    w->first_in[(backwards ? m->edges[e].before : m->edges[e].after) + 2]++;
    w->first_out[(backwards ? m->edges[e].after : m->edges[e].before) + 2]++;
  }
  for (uint32_t t = 0; t < n; t++) {
    w->first_in[t + 2] += w->first_in[t + 1];
    w->first_out[t + 2] += w->first_out[t + 1];
  }
  for (uint32_t e = 0; e < m->n_edges; e++) {
    w->in[w->first_in[(backwards ? m->edges[e].before : m->edges[e].after) + 1]++] = e;
    w->out[w->first_out[(backwards ? m->edges[e].after : m->edges[e].before) + 1]++] = e;
  }
}

static void find_least(maker *m) {
  const sn__flow *f = m->f;
  sn__flow_least_ns(f, m->w->ns);
  for (uint32_t t = 0; t < f->n_tasks; t++)
    if (f->task_view[t]) m->w->ns[t] = 0;
  for (int d = 0; d < f->n_devices; d++) {
    if (f->device_bytes[d] == 0) m->most_bytes = UINT64_MAX;
    if (f->device_bytes[d] > m->most_bytes) m->most_bytes = f->device_bytes[d];
  }
  m->limits = m->most_bytes < UINT64_MAX;
}

/* ---- one task ------------------------------------------------------------------------------- */

static bool pins_differ(const sn__flow *f, uint32_t a, uint32_t b) {
  return f->class_pin[a] >= 0 && f->class_pin[b] >= 0 && f->class_pin[a] != f->class_pin[b];
}

static bool too_large(const maker *m, uint32_t a, uint32_t b) {
  const uint64_t *bytes = m->f->class_bytes;
  return m->limits && a != b && bytes[a] <= m->most_bytes && bytes[b] > m->most_bytes - bytes[a];
}

/* What is known of u by what comes behind it on the way to v: see near_task. */
static void measure(const maker *m, const way *w, uint32_t u, uint32_t v, near_task *out) {
  *out = (near_task){.task = u};
  for (uint32_t i = w->first_out[u]; i < w->first_out[u + 1]; i++) {
    const edge *e = &m->edges[w->out[i]];
    uint32_t x = e->before == u ? e->after : e->before;
    int64_t direct = 0, remote = e->copy;
    if (x != v) {
      if (m->slot[x] == 0) continue;
      const near_task *next = &m->near[m->slot[x] - 1];
      direct = m->w->ns[x] + next->direct;
      int64_t crosses = e->copy + direct, later = m->w->ns[x] + next->remote;
      remote = crosses < later ? crosses : later;
    }
    if (direct > out->direct) out->direct = direct;
    if (remote > out->remote) out->remote = remote;
  }
}

static uint32_t degree(const way *w, uint32_t t) {
  return w->first_in[t + 1] - w->first_in[t] + w->first_out[t + 1] - w->first_out[t];
}

/* What t waits for is looked at, too. */
static void mark_before(maker *m, const way *w, uint32_t t) {
  for (uint32_t i = w->first_in[t]; i < w->first_in[t + 1]; i++) {
    const edge *e = &m->edges[w->in[i]];
    uint32_t u = e->before == t ? e->after : e->before;
    if (m->marked[u]) continue;
    m->marked[u] = true;
    m->list[m->n_list++] = u;
  }
}

/* The nearest of what v waits for, directly or not. backwards: the order is walked the other way.
 * Not all of them where that takes long: what is far, and what is read by very many, is left out,
 * which makes heads weaker and no less true. */
static uint32_t find_near(maker *m, const way *w, uint32_t v, bool backwards) {
  uint32_t n = 0, at = m->position[v], left = 0; /* marked tasks that are still to come */
  uint32_t steps = 16 * m->near_most, edges = 64 * m->near_most;
  m->n_list = 0;
  mark_before(m, w, v);
  left = m->n_list;
  for (; left > 0 && n < m->near_most && steps > 0; steps--) {
    at = backwards ? at + 1 : at - 1;
    uint32_t u = m->f->topological[at], before = m->n_list;
    if (!m->marked[u]) continue;
    left--;
    if (degree(w, u) > edges) continue;
    edges -= degree(w, u);
    measure(m, w, u, v, &m->near[n]);
    m->slot[u] = ++n;
    mark_before(m, w, u);
    left += m->n_list - before;
  }
  for (uint32_t i = 0; i < m->n_list; i++)
    m->marked[m->list[i]] = false;
  for (uint32_t i = 0; i < n; i++)
    m->slot[m->near[i].task] = 0;
  return n;
}

static int compare_keys(const void *a, const void *b) {
  const near_task *x = a, *y = b;
  if (x->key != y->key) return x->key > y->key ? -1 : 1;
  return x->task < y->task ? -1 : x->task > y->task;
}

/* When v can start if the first `k` of them are on its device. */
static int64_t one_after_another(const maker *m, const int64_t *head, uint32_t k) {
  for (uint32_t i = 0; i < k; i++) {
    const near_task *u = &m->near[i];
    m->pieces[i] = (sn__piece){head[u->task], m->w->ns[u->task], u->direct};
  }
  return sn__one_queue(m->pieces, k, m->heap);
}

static int64_t head_of(maker *m, const int64_t *head, uint32_t v, uint32_t n) {
  const sn__flow *f = m->f;
  uint32_t own = f->task_class[v], kept = 0;
  int64_t apart = 0; /* of those that cannot be on v's device */
  for (uint32_t i = 0; i < n; i++) {
    near_task u = m->near[i];
    uint32_t class_ = f->task_class[u.task];
    int64_t end = head[u.task] + m->w->ns[u.task];
    u.key = class_ == own ? INT64_MAX : end + u.remote;
    bool large = too_large(m, class_, own);
    if (f->n_devices > 1 && class_ != own && (large || pins_differ(f, class_, own))) {
      if (u.key > apart) {
        apart = u.key;
        if (large) m->w->memory = true;
      }
      continue;
    }
    if (f->n_devices == 1) u.key = INT64_MAX;
    m->near[kept++] = u;
  }
  if (kept > 1) qsort(m->near, kept, sizeof *m->near, compare_keys);
  /* The least of max(k on the device, the next elsewhere): one grows with k, the other falls. */
  uint32_t low = 0, high = kept;
  while (low < kept && m->near[low].key == INT64_MAX)
    low++;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (one_after_another(m, head, middle) >= m->near[middle].key)
      high = middle;
    else
      low = middle + 1;
  }
  int64_t best = one_after_another(m, head, low);
  if (low > 0 && m->near[low - 1].key < INT64_MAX) {
    /* One fewer: then the next one elsewhere decides. */
    int64_t other = m->near[low - 1].key;
    if (other < best) best = other;
  }
  return best > apart ? best : apart;
}

static void work_out(maker *m, bool backwards, int64_t *head) {
  const sn__flow *f = m->f;
  const way *w = &m->ways[backwards];
  for (uint32_t k = 0; k < f->n_tasks; k++) {
    uint32_t v = f->topological[backwards ? f->n_tasks - 1 - k : k];
    for (uint32_t i = w->first_in[v]; i < w->first_in[v + 1]; i++) {
      const edge *e = &m->edges[w->in[i]];
      uint32_t u = e->before == v ? e->after : e->before;
      if (head[u] + m->w->ns[u] > head[v]) head[v] = head[u] + m->w->ns[u];
    }
    if (m->near_most == 0) continue;
    int64_t better = head_of(m, head, v, find_near(m, w, v, backwards));
    if (better > head[v]) head[v] = better;
  }
}

/* ---- all of it ------------------------------------------------------------------------------ */

static bool allocate(maker *m) {
  const sn__flow *f = m->f;
  size_t n = (size_t)f->n_tasks + 2, edges = (size_t)f->n_reads + f->n_orders + 1;
  m->w->ns = sn__calloc(n, sizeof *m->w->ns);
  m->w->head = sn__calloc(n, sizeof *m->w->head);
  m->w->tail = sn__calloc(n, sizeof *m->w->tail);
  m->edges = sn__calloc(edges, sizeof *m->edges);
  m->position = sn__calloc(n, sizeof *m->position);
  m->slot = sn__calloc(n, sizeof *m->slot);
  m->marked = sn__calloc(n, sizeof *m->marked);
  m->list = sn__calloc(n, sizeof *m->list);
  m->near = sn__calloc((size_t)m->near_most + 1, sizeof *m->near);
  m->pieces = sn__calloc((size_t)m->near_most + 1, sizeof *m->pieces);
  m->heap = sn__calloc((size_t)m->near_most + 1, sizeof *m->heap);
  bool ok = m->w->ns && m->w->head && m->w->tail && m->edges && m->position && m->slot &&
            m->marked && m->list && m->near && m->pieces && m->heap;
  for (int d = 0; d < 2; d++) {
    m->ways[d] = (way){
        sn__calloc(n, sizeof *m->ways[d].first_in), sn__calloc(edges, sizeof *m->ways[d].in),
        sn__calloc(n, sizeof *m->ways[d].first_out), sn__calloc(edges, sizeof *m->ways[d].out)};
    ok &= m->ways[d].first_in && m->ways[d].in && m->ways[d].first_out && m->ways[d].out;
  }
  return ok;
}

static void free_maker(maker *m) {
  void *const arrays[] = {m->edges,
                          m->position,
                          m->slot,
                          m->marked,
                          m->list,
                          m->near,
                          m->pieces,
                          m->heap,
                          m->ways[0].first_in,
                          m->ways[0].in,
                          m->ways[0].first_out,
                          m->ways[0].out,
                          m->ways[1].first_in,
                          m->ways[1].in,
                          m->ways[1].first_out,
                          m->ways[1].out};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
    sn__free(arrays[i]);
}

sn_status sn__windows_create(const sn__flow *f, uint32_t near, sn__windows *out) {
  *out = (sn__windows){.n = f->n_tasks};
  maker m = {.f = f, .w = out, .near_most = near < f->n_tasks ? near : f->n_tasks};
  if (!allocate(&m)) {
    free_maker(&m);
    sn__windows_free(out);
    return sn_status_out_of_memory();
  }
  find_least(&m);
  list_edges(&m);
  for (uint32_t i = 0; i < f->n_tasks; i++)
    m.position[f->topological[i]] = i;
  link_way(&m, &m.ways[0], false);
  link_way(&m, &m.ways[1], true);
  work_out(&m, false, out->head);
  work_out(&m, true, out->tail);
  free_maker(&m);
  return SN_OK;
}

void sn__windows_free(sn__windows *w) {
  sn__free(w->ns);
  sn__free(w->head);
  sn__free(w->tail);
  *w = (sn__windows){0};
}
