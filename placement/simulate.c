/* SPDX-License-Identifier: Apache-2.0 */
/* A step on a clock: list scheduling by longest remaining path, with the rules, ties and costs of
 * core/run/schedule.c, but of graphs whose copies are not there yet and without allocating. */
#include "placement/problem.h"

#include <assert.h>
#include <string.h>

#include "core/run/values.h"

enum { NO_QUEUE = UINT32_MAX };

/* A task or a copy, queued. Jobs [0, n_tasks) are the tasks; copies follow. */
typedef struct job {
  int64_t ns;
  int64_t rank;   /* longest remaining path from its start */
  uint32_t queue; /* device * 2, + 1 for the copy queue; NO_QUEUE: a view, over at once */
  uint32_t device;
  uint32_t waiting; /* inputs not there yet */
  bool root;        /* a view of a source: over before the step begins */
  uint32_t value;   /* copies: what is copied */
  uint32_t first;   /* into the simulator's successors, + 1; 0: none */
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
  uint32_t *ended; /* [jobs] scratch: what ends at one moment */
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
  s->ended = sn__calloc(jobs, sizeof *s->ended);
  s->finish = sn__calloc(jobs, sizeof *s->finish);
  s->busy = sn__calloc(nd * 2, sizeof *s->busy);
  s->uses = sn__calloc(p->graph->n_values * nd, sizeof *s->uses);
  s->live = sn__calloc(nd, sizeof *s->live);
  bool ok = s->jobs && s->successors && s->copy_of && s->touched && s->ready && s->running.items &&
            s->ended && s->finish && s->busy && s->uses && s->live;
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
  sn__free(s->ended);
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

static int home_of(const sn__simulator *s, uint32_t value, const int *devices) {
  const sn__problem *p = s->problem;
  return devices[p->unit_of_node[p->graph->values[value].node]];
}

static const sn__node *view_of(const sn__simulator *s, uint32_t value) {
  const sn_graph *g = s->problem->graph;
  const sn__node *n = &g->nodes[g->values[value].node];
  return (n->op->flags & SN_OP_VIEW) != 0 && g->values[value].slot == 0 ? n : NULL;
}

/* The copy of a value from its home to another device; made at its first use there. */
static uint32_t copy_job(sn__simulator *s, uint32_t value, int from, int to) {
  const sn__problem *p = s->problem;
  size_t key = (size_t)value * (size_t)p->topology->n_devices + (size_t)to;
  if (s->copy_of[key] != 0) return s->copy_of[key];
  uint32_t j = s->n_jobs++, producer = p->task_of_node[p->graph->values[value].node];
  s->jobs[j] = (job){.ns = sn__copy_ns(p->topology, from, to, p->value_bytes[value]),
                     .queue = (uint32_t)to * 2 + 1,
                     .device = (uint32_t)to,
                     .value = value};
  s->copy_of[key] = j;
  s->touched[s->n_touched++] = (uint32_t)key;
  if (producer != UINT32_MAX) link(s, producer, j);
  return j;
}

/* Who reads the variable's own bytes for this edge's reader: the reader, or the last of the copies
 * that bring them to it, through views wherever those are. */
static uint32_t storage_reader(sn__simulator *s, const sn__problem_edge *e, const int *devices) {
  uint32_t reader = e->from, value = e->value;
  int at = (int)s->jobs[reader].device;
  for (;;) {
    int home = home_of(s, value, devices);
    if (home != at) reader = copy_job(s, value, home, at);
    at = home;
    const sn__node *view = view_of(s, value);
    if (view == NULL) return reader;
    value = view->in[0];
  }
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
    s->jobs[t] = (job){.ns = p->task_ns[(size_t)t * (size_t)nd + (size_t)d],
                       .queue = p->tasks[t].view ? NO_QUEUE : (uint32_t)d * 2,
                       .device = (uint32_t)d};
  }
  for (uint32_t i = 0; i < p->n_edges; i++) {
    const sn__problem_edge *e = &p->edges[i];
    if (e->order) {
      link(s, storage_reader(s, e, devices), e->to);
      continue;
    }
    int from = devices[e->from_unit], to = devices[p->tasks[e->to].unit];
    if (from != to)
      link(s, copy_job(s, e->value, from, to), e->to);
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

/* With one queue in use order cannot change the time, and the graph's own keeps memory lower. */
static bool one_queue(const sn__simulator *s) {
  uint32_t queue = NO_QUEUE;
  for (uint32_t j = 0; j < s->n_jobs; j++) {
    if (s->jobs[j].queue == NO_QUEUE || s->jobs[j].queue == queue) continue;
    if (queue != NO_QUEUE) return false;
    queue = s->jobs[j].queue;
  }
  return true;
}

/* Ranks are settled backwards: a copy's when its producer is reached, or at the end where that is a
 * source. */
static void rank_jobs(sn__simulator *s) {
  const sn__problem *p = s->problem;
  if (one_queue(s)) return; /* all 0: ties go by node */
  for (uint32_t k = 0; k < p->n_tasks; k++) {
    uint32_t t = p->backwards[k];
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

/* Equals go by their place in the placed graph, where a copy stands behind its producer: tasks by
 * number, copies (they never meet tasks in a queue) by what they copy. */
static bool in_order(const sn__simulator *s, uint32_t a, uint32_t b) {
  if (a < s->problem->n_tasks || b < s->problem->n_tasks) return a < b;
  const sn__value *x = &s->problem->graph->values[s->jobs[a].value];
  const sn__value *y = &s->problem->graph->values[s->jobs[b].value];
  return x->node != y->node ? x->node < y->node : x->slot < y->slot;
}

static bool before(const sn__simulator *s, const heap *h, uint32_t a, uint32_t b) {
  if (h == &s->running) return s->finish[a] != s->finish[b] ? s->finish[a] < s->finish[b] : a < b;
  return s->jobs[a].rank != s->jobs[b].rank ? s->jobs[a].rank > s->jobs[b].rank : in_order(s, a, b);
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

/* The value whose bytes a reader on device d of `value` looks at there: behind views, up to what a
 * copy brought. */
static uint32_t bytes_read(const sn__simulator *s, uint32_t value, int d, const int *devices) {
  while (home_of(s, value, devices) == d) {
    const sn__node *view = view_of(s, value);
    if (view == NULL) break;
    value = view->in[0];
  }
  return value;
}

static void count_uses(sn__simulator *s, const int *devices) {
  const sn__problem *p = s->problem;
  size_t nd = (size_t)p->topology->n_devices;
  memset(s->uses, 0, p->graph->n_values * nd * sizeof *s->uses);
  for (uint32_t i = 0; i < p->n_edges; i++) {
    const sn__problem_edge *e = &p->edges[i];
    if (e->order || p->tasks[e->to].view) continue;
    int d = devices[p->tasks[e->to].unit];
    s->uses[bytes_read(s, e->value, d, devices) * nd + (size_t)d]++;
  }
  /* A copy reads its value at the source. */
  for (uint32_t j = p->n_tasks; j < s->n_jobs; j++) {
    int home = home_of(s, s->jobs[j].value, devices);
    s->uses[bytes_read(s, s->jobs[j].value, home, devices) * nd + (size_t)home]++;
  }
}

static void grow_live(sn__simulator *s, uint32_t value, size_t d, sn__simulated *out) {
  s->live[d] += s->problem->value_bytes[value];
  if (s->live[d] > out->peak_bytes[d]) out->peak_bytes[d] = s->live[d];
}

static void drop_use(sn__simulator *s, uint32_t read, int d, const int *devices) {
  size_t nd = (size_t)s->problem->topology->n_devices;
  uint32_t value = bytes_read(s, read, d, devices);
  uint32_t *uses = &s->uses[value * nd + (size_t)d];
  if (*uses == 0 || --*uses > 0) return;
  /* Variables, constants and feeds stay at home; their copies elsewhere go. */
  const sn__value *v = &s->problem->graph->values[value];
  if (v->kind != SN_VALUE_OP && d == home_of(s, value, devices)) return;
  uint64_t bytes = s->problem->value_bytes[value];
  s->live[d] -= bytes < s->live[d] ? bytes : s->live[d];
}

static void start_memory(sn__simulator *s, uint32_t j, sn__simulated *out) {
  const sn__problem *p = s->problem;
  size_t d = s->jobs[j].device;
  if (j >= p->n_tasks) {
    grow_live(s, s->jobs[j].value, d, out);
    return;
  }
  const sn__node *n = &p->graph->nodes[p->tasks[j].node];
  if ((n->op->flags & SN_OP_COMMIT) != 0) return;
  for (uint32_t o = 0; o < n->n_out; o++)
    grow_live(s, n->out[o], d, out);
}

static void end_memory(sn__simulator *s, uint32_t j, const int *devices) {
  const sn__problem *p = s->problem;
  if (j >= p->n_tasks) {
    drop_use(s, s->jobs[j].value, home_of(s, s->jobs[j].value, devices), devices);
    return;
  }
  for (uint32_t e = p->first_edge[j]; !p->tasks[j].view && e < p->first_edge[j + 1]; e++)
    if (!p->edges[e].order) drop_use(s, p->edges[e].value, (int)s->jobs[j].device, devices);
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

/* Ends a job and the views that look at what it made; whoever waited for the last of them is ready.
 * Returns how many ended. */
static uint32_t end_job(sn__simulator *s, uint32_t first, const int *devices, sn__simulated *out) {
  uint32_t top = 0, done = 0;
  s->ended[top++] = first;
  for (; top > 0; done++) {
    uint32_t j = s->ended[--top];
    if (out->peak_bytes != NULL) end_memory(s, j, devices);
    for (uint32_t i = s->jobs[j].first; i != 0; i = s->successors[i - 1].next) {
      uint32_t next = s->successors[i - 1].job;
      if (--s->jobs[next].waiting > 0) continue;
      if (s->jobs[next].queue == NO_QUEUE)
        s->ended[top++] = next;
      else
        push(s, &s->ready[s->jobs[next].queue], next);
    }
  }
  return done;
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
  int64_t now = 0;
  uint32_t done = 0;
  for (uint32_t j = 0; j < s->n_jobs; j++) {
    if (s->jobs[j].waiting > 0) continue;
    s->jobs[j].root = s->jobs[j].queue == NO_QUEUE;
    if (!s->jobs[j].root) push(s, &s->ready[s->jobs[j].queue], j);
  }
  for (uint32_t j = 0; j < s->n_jobs; j++)
    if (s->jobs[j].root) done += end_job(s, j, devices, out);
  start_ready(s, now, out);
  while (s->running.count > 0) {
    now = s->finish[s->running.items[0]];
    while (s->running.count > 0 && s->finish[s->running.items[0]] == now) {
      uint32_t j = pop(s, &s->running);
      s->busy[s->jobs[j].queue] = false;
      done += end_job(s, j, devices, out);
    }
    start_ready(s, now, out);
  }
  assert(done == s->n_jobs); /* sn__problem_create() refuses cycles */
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
      if (!p->edges[e].order && p->edges[e].from != UINT32_MAX && path[p->edges[e].from] > start)
        start = path[p->edges[e].from];
    path[t] = start + ns;
    work += ns;
    if (path[t] > critical) critical = path[t];
  }
  sn__free(path);
  int64_t share = (work + nd - 1) / nd;
  return critical > share ? critical : share;
}
