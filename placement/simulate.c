/* SPDX-License-Identifier: Apache-2.0 */
/* A step on a clock. List scheduling by longest remaining path, as the executor's schedule does it.
 */
#include "placement/problem.h"

#include <assert.h>
#include <string.h>

/* A task or a copy, queued. Jobs [0, n_tasks) are the tasks; copies follow. */
typedef struct job {
  int64_t ns;
  int64_t rank;     /* longest remaining path from its start */
  uint32_t queue;   /* device * 2, + 1 for the copy queue */
  uint32_t waiting; /* inputs not there yet */
  uint32_t value;   /* copies: what is copied */
  uint32_t first;   /* successors: sim->next chain heads */
} job;

typedef struct successor {
  uint32_t job;
  uint32_t next;
} successor;

typedef struct heap {
  uint32_t *items;
  uint32_t count;
} heap;

struct sn__simulator {
  const sn__problem *problem;
  job *jobs;
  uint32_t n_jobs;
  successor *successors;
  uint32_t n_successors;
  uint32_t *copy_of; /* [n_values * n_devices]: job of the copy there, 0 = none */
  uint32_t *touched; /* which entries of copy_of are set */
  uint32_t n_touched;
  heap *ready;     /* by queue: best rank on top */
  heap running;    /* by finish time */
  int64_t *finish; /* [jobs] */
  bool *busy;      /* by queue */
  uint32_t *uses;  /* [n_values * n_devices] readers still to come, for memory */
  uint64_t *live;  /* [n_devices] */
};

static size_t most_jobs(const sn__problem *p) {
  return (size_t)p->n_tasks + p->n_edges;
}

sn_status sn__simulator_create(const sn__problem *p, sn__simulator **out_simulator) {
  sn__simulator *s = sn__calloc(1, sizeof *s);
  if (s == NULL) return sn_status_out_of_memory();
  size_t nd = (size_t)p->topology->n_devices, jobs = most_jobs(p) + 1;
  s->problem = p;
  s->jobs = sn__calloc(jobs, sizeof *s->jobs);
  s->successors = sn__calloc((size_t)p->n_edges * 2 + 1, sizeof *s->successors);
  s->copy_of = sn__calloc(p->graph->n_values * nd, sizeof *s->copy_of);
  s->touched = sn__calloc((size_t)p->n_edges + 1, sizeof *s->touched);
  s->ready = sn__calloc(nd * 2, sizeof *s->ready);
  s->running.items = sn__calloc(jobs, sizeof *s->running.items);
  s->finish = sn__calloc(jobs, sizeof *s->finish);
  s->busy = sn__calloc(nd * 2, sizeof *s->busy);
  s->uses = sn__calloc(p->graph->n_values * nd, sizeof *s->uses);
  s->live = sn__calloc(nd, sizeof *s->live);
  bool ok = s->jobs && s->successors && s->copy_of && s->touched && s->ready && s->running.items &&
            s->finish && s->busy && s->uses && s->live;
  for (size_t q = 0; ok && q < nd * 2; q++)
    ok = (s->ready[q].items = sn__calloc(jobs, sizeof(uint32_t))) != NULL;
  if (!ok) {
    sn__simulator_free(s);
    return sn_status_out_of_memory();
  }
  *out_simulator = s;
  return SN_OK;
}

void sn__simulator_free(sn__simulator *s) {
  if (s == NULL) return;
  for (int q = 0; s->ready != NULL && q < s->problem->topology->n_devices * 2; q++)
    sn__free(s->ready[q].items);
  sn__free(s->jobs);
  sn__free(s->successors);
  sn__free(s->copy_of);
  sn__free(s->touched);
  sn__free(s->ready);
  sn__free(s->running.items);
  sn__free(s->finish);
  sn__free(s->busy);
  sn__free(s->uses);
  sn__free(s->live);
  sn__free(s);
}

/* ---- building the jobs of one assignment ---------------------------------------------------- */

static void link(sn__simulator *s, uint32_t from, uint32_t to) {
  uint32_t i = ++s->n_successors; /* 0 ends a chain */
  s->successors[i - 1] = (successor){.job = to, .next = s->jobs[from].first};
  s->jobs[from].first = i;
  s->jobs[to].waiting++;
}

/* The copy of an edge's value to `device`; made at its first use there. */
static uint32_t copy_job(sn__simulator *s, const sn__edge *e, int from, int to) {
  const sn__problem *p = s->problem;
  size_t key = (size_t)e->value * (size_t)p->topology->n_devices + (size_t)to;
  if (s->copy_of[key] != 0) return s->copy_of[key];
  uint32_t j = s->n_jobs++;
  s->jobs[j] = (job){.ns = sn_topology_copy_ns(p->topology, from, to, p->value_bytes[e->value]),
                     .queue = (uint32_t)to * 2 + 1,
                     .value = e->value};
  s->copy_of[key] = j;
  s->touched[s->n_touched++] = (uint32_t)key;
  if (e->from != UINT32_MAX) link(s, e->from, j);
  return j;
}

static void build_jobs(sn__simulator *s, const int *devices, sn__simulated *out) {
  const sn__problem *p = s->problem;
  int nd = p->topology->n_devices;
  for (uint32_t i = 0; i < s->n_touched; i++)
    s->copy_of[s->touched[i]] = 0;
  s->n_touched = s->n_successors = 0;
  s->n_jobs = p->n_tasks;
  for (uint32_t t = 0; t < p->n_tasks; t++) {
    int d = devices[p->tasks[t].unit];
    s->jobs[t] =
        (job){.ns = p->task_ns[(size_t)t * (size_t)nd + (size_t)d], .queue = (uint32_t)d * 2};
  }
  for (uint32_t i = 0; i < p->n_edges; i++) {
    const sn__edge *e = &p->edges[i];
    int from = devices[e->from_unit], to = devices[p->tasks[e->to].unit];
    if (from != to)
      link(s, copy_job(s, e, from, to), e->to);
    else if (e->from != UINT32_MAX)
      link(s, e->from, e->to);
  }
  out->copy_ns = 0;
  out->copy_bytes = 0;
  for (uint32_t j = p->n_tasks; j < s->n_jobs; j++) {
    out->copy_ns += s->jobs[j].ns;
    out->copy_bytes += p->value_bytes[s->jobs[j].value];
  }
}

static int64_t longest_after(const sn__simulator *s, uint32_t j) {
  int64_t after = 0;
  for (uint32_t i = s->jobs[j].first; i != 0; i = s->successors[i - 1].next)
    if (s->jobs[s->successors[i - 1].job].rank > after)
      after = s->jobs[s->successors[i - 1].job].rank;
  return after;
}

/* Tasks are in topological order and a copy's readers come after its producer, so ranks are settled
 * backwards: a copy when its producer is reached, or at the end for copies of sources. */
static void rank_jobs(sn__simulator *s) {
  const sn__problem *p = s->problem;
  for (uint32_t t = p->n_tasks; t-- > 0;) {
    for (uint32_t i = s->jobs[t].first; i != 0; i = s->successors[i - 1].next) {
      uint32_t c = s->successors[i - 1].job;
      if (c >= p->n_tasks) s->jobs[c].rank = s->jobs[c].ns + longest_after(s, c);
    }
    s->jobs[t].rank = s->jobs[t].ns + longest_after(s, t);
  }
  for (uint32_t c = p->n_tasks; c < s->n_jobs; c++)
    s->jobs[c].rank = s->jobs[c].ns + longest_after(s, c);
}

/* ---- heaps ---------------------------------------------------------------------------------- */

static bool before(const sn__simulator *s, const heap *h, uint32_t a, uint32_t b) {
  if (h == &s->running) return s->finish[a] != s->finish[b] ? s->finish[a] < s->finish[b] : a < b;
  return s->jobs[a].rank != s->jobs[b].rank ? s->jobs[a].rank > s->jobs[b].rank : a < b;
}

static void push(sn__simulator *s, heap *h, uint32_t j) {
  uint32_t i = h->count++;
  for (; i > 0 && before(s, h, j, h->items[(i - 1) / 2]); i = (i - 1) / 2)
    h->items[i] = h->items[(i - 1) / 2];
  h->items[i] = j;
}

static uint32_t pop(sn__simulator *s, heap *h) {
  uint32_t top = h->items[0], last = h->items[--h->count], i = 0;
  for (;;) {
    uint32_t c = 2 * i + 1;
    if (c >= h->count) break;
    if (c + 1 < h->count && before(s, h, h->items[c + 1], h->items[c])) c++;
    if (!before(s, h, h->items[c], last)) break;
    h->items[i] = h->items[c];
    i = c;
  }
  if (h->count > 0) h->items[i] = last;
  return top;
}

/* ---- memory over time ----------------------------------------------------------------------- */

static size_t home_of(const sn__simulator *s, uint32_t value, const int *devices) {
  const sn_graph *g = s->problem->graph;
  return (size_t)devices[s->problem->unit_of_node[g->values[value].node]];
}

static void count_uses(sn__simulator *s, const int *devices) {
  const sn__problem *p = s->problem;
  size_t nd = (size_t)p->topology->n_devices;
  memset(s->uses, 0, p->graph->n_values * nd * sizeof *s->uses);
  for (uint32_t i = 0; i < p->n_edges; i++)
    s->uses[p->edges[i].value * nd + (size_t)devices[p->tasks[p->edges[i].to].unit]]++;
  /* A copy reads its value at the source. */
  for (uint32_t i = 0; i < s->n_touched; i++) {
    uint32_t value = s->touched[i] / (uint32_t)nd;
    s->uses[value * nd + home_of(s, value, devices)]++;
  }
}

static void grow_live(sn__simulator *s, uint32_t value, size_t d, sn__simulated *out) {
  s->live[d] += s->problem->value_bytes[value];
  if (s->live[d] > out->peak_bytes[d]) out->peak_bytes[d] = s->live[d];
}

static void drop_use(sn__simulator *s, uint32_t value, size_t d, const int *devices) {
  size_t nd = (size_t)s->problem->topology->n_devices;
  const sn__value *v = &s->problem->graph->values[value];
  uint32_t *uses = &s->uses[value * nd + d];
  if (*uses == 0 || --*uses > 0) return;
  /* Variables, constants and feeds stay at home; their copies elsewhere go. */
  if (v->kind != SN_VALUE_OP && d == home_of(s, value, devices)) return;
  uint64_t bytes = s->problem->value_bytes[value];
  s->live[d] -= bytes < s->live[d] ? bytes : s->live[d];
}

static void start_memory(sn__simulator *s, uint32_t j, sn__simulated *out) {
  const sn__problem *p = s->problem;
  size_t d = s->jobs[j].queue / 2;
  if (j >= p->n_tasks) {
    grow_live(s, s->jobs[j].value, d, out);
    return;
  }
  const sn__node *n = &p->graph->nodes[p->tasks[j].node];
  if ((n->op->flags & (SN_OP_COMMIT | SN_OP_VIEW)) != 0) return;
  for (uint32_t o = 0; o < n->n_out; o++)
    grow_live(s, n->out[o], d, out);
}

static void end_memory(sn__simulator *s, uint32_t j, const int *devices) {
  const sn__problem *p = s->problem;
  if (j >= p->n_tasks) {
    drop_use(s, s->jobs[j].value, home_of(s, s->jobs[j].value, devices), devices);
    return;
  }
  for (uint32_t e = p->first_edge[j]; e < p->first_edge[j + 1]; e++)
    drop_use(s, p->edges[e].value, s->jobs[j].queue / 2, devices);
}

/* ---- the clock ------------------------------------------------------------------------------ */

static void start_ready(sn__simulator *s, int64_t now, sn__simulated *out) {
  int queues = s->problem->topology->n_devices * 2;
  for (int q = 0; q < queues; q++) {
    if (s->busy[q] || s->ready[q].count == 0) continue;
    uint32_t j = pop(s, &s->ready[q]);
    s->busy[q] = true;
    s->finish[j] = now + s->jobs[j].ns;
    push(s, &s->running, j);
    if (out->busy_ns != NULL && q % 2 == 0) out->busy_ns[q / 2] += s->jobs[j].ns;
    if (out->peak_bytes != NULL) start_memory(s, j, out);
  }
}

static void reset_figures(sn__simulator *s, const int *devices, sn__simulated *out) {
  const sn__problem *p = s->problem;
  size_t nd = (size_t)p->topology->n_devices;
  if (out->busy_ns != NULL) memset(out->busy_ns, 0, nd * sizeof *out->busy_ns);
  if (out->peak_bytes == NULL) return;
  memset(s->live, 0, nd * sizeof *s->live);
  for (uint32_t u = 0; u < p->n_units; u++)
    s->live[devices[u]] += p->unit_bytes[u];
  memcpy(out->peak_bytes, s->live, nd * sizeof *s->live);
  count_uses(s, devices);
}

void sn__simulate(sn__simulator *s, const int *devices, sn__simulated *out) {
  build_jobs(s, devices, out);
  rank_jobs(s);
  reset_figures(s, devices, out);
  s->running.count = 0;
  for (int q = 0; q < s->problem->topology->n_devices * 2; q++) {
    s->ready[q].count = 0;
    s->busy[q] = false;
  }
  for (uint32_t j = 0; j < s->n_jobs; j++)
    if (s->jobs[j].waiting == 0) push(s, &s->ready[s->jobs[j].queue], j);
  int64_t now = 0;
  uint32_t done = 0;
  start_ready(s, now, out);
  while (s->running.count > 0) {
    now = s->finish[s->running.items[0]];
    while (s->running.count > 0 && s->finish[s->running.items[0]] == now) {
      uint32_t j = pop(s, &s->running);
      done++;
      s->busy[s->jobs[j].queue] = false;
      if (out->peak_bytes != NULL) end_memory(s, j, devices);
      for (uint32_t i = s->jobs[j].first; i != 0; i = s->successors[i - 1].next) {
        uint32_t next = s->successors[i - 1].job;
        if (--s->jobs[next].waiting == 0) push(s, &s->ready[s->jobs[next].queue], next);
      }
    }
    start_ready(s, now, out);
  }
  assert(done == s->n_jobs); /* the graph is acyclic */
  out->step_ns = now;
}

int64_t sn__lower_bound_ns(const sn__problem *p) {
  int nd = p->topology->n_devices;
  int64_t *path = sn__calloc(p->n_tasks + 1, sizeof *path);
  int64_t critical = 0, work = 0;
  for (uint32_t t = 0; path != NULL && t < p->n_tasks; t++) {
    int64_t ns = INT64_MAX;
    for (int d = 0; d < nd; d++)
      if (p->task_ns[(size_t)t * (size_t)nd + (size_t)d] < ns)
        ns = p->task_ns[(size_t)t * (size_t)nd + (size_t)d];
    int64_t start = 0;
    for (uint32_t e = p->first_edge[t]; e < p->first_edge[t + 1]; e++)
      if (p->edges[e].from != UINT32_MAX && path[p->edges[e].from] > start)
        start = path[p->edges[e].from];
    path[t] = start + ns;
    work += ns;
    if (path[t] > critical) critical = path[t];
  }
  sn__free(path);
  int64_t share = (work + nd - 1) / nd;
  return critical > share ? critical : share;
}
