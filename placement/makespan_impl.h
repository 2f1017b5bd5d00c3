/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the makespan search share. */
#ifndef SN_PLACEMENT_MAKESPAN_IMPL_H
#define SN_PLACEMENT_MAKESPAN_IMPL_H

#include "placement/flow_history.h"
#include "placement/makespan.h"

/* What happened in a simulated step, for the search to be guided by. */
typedef struct sn__trace {
  int64_t *start, *end; /* [n_tasks] */
  uint32_t *previous;   /* [n_tasks] */
} sn__trace;

typedef struct sn__search {
  const sn__flow *flow;
  const sn__makespan_options *options;
  sn__flow_simulator *simulator;
  int64_t budget, evals;
  uint64_t random; /* state of sn__draw() */
  bool limits;     /* some device has a limit that not everything together is under */
  bool over_time;  /* and values count, so that only simulating tells */
  uint64_t *held;  /* [n_devices] scratch */
  uint64_t *peak;  /* [n_devices] scratch */
  int most_used;   /* devices that can be in use at once: spread wants them all */
  /* Classes that exchange values, by class. */
  uint32_t *first_neighbour, *neighbours;
  /* The best plan so far. */
  int *devices;
  int64_t *priorities;
  bool prioritised; /* false: priorities mean nothing, the longest path goes first */
  int64_t cost;
  const char *trying, *found; /* what is tried now, and what gave the best plan; static words */
  bool annealed;              /* the best plan is `found` improved on; set where `trying` is NULL */
  bool proved;                /* the best plan is the best there is */
  int64_t last_step;          /* of the plan judged last that was simulated to the end */
} sn__search;

/* A number in [0, below): a splitmix64 stream. */
static inline uint32_t sn__draw(sn__search *s, uint32_t below) {
  s->random += 0x9E3779B97F4A7C15u;
  uint64_t x = s->random;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  x ^= x >> 31;
  return (uint32_t)(((x >> 32) * below) >> 32);
}

/* Whether a class may be on a device: its pin, and that all its tasks run there. */
static inline bool sn__allowed(const sn__flow *f, uint32_t class_, int device) {
  int pin = f->class_pin[class_];
  if (pin >= 0) return pin == device;
  for (uint32_t i = f->first_member[class_]; i < f->first_member[class_ + 1]; i++)
    if (f->task_ns[(size_t)f->members[i] * (size_t)f->n_devices + (size_t)device] == SN__FLOW_NEVER)
      return false;
  return true;
}

/* The cost of a plan: its step; more than any step for each device that spread wants and that is
 * idle; more than that for every byte that it lacks. Above `cutoff` (0: none) the answer is only
 * "more", INT64_MAX. trace: NULL, or filled unless the answer is INT64_MAX. Counts an evaluation.
 */
int64_t sn__judge(sn__search *s, const int *devices, const int64_t *priorities, int64_t cutoff,
                  const sn__trace *trace);
/* The same by a history. changes: from the plan that it keeps; NULL: everything. */
int64_t sn__judge_change(sn__search *s, sn__flow_history *history, const int *devices,
                         const int64_t *priorities, const sn__flow_changes *changes, int64_t cutoff,
                         const sn__trace *trace);
/* A cost that is a step: nothing lacks. */
static inline bool sn__plain_cost(int64_t cost) {
  return cost <= SN__FLOW_TIME_MOST;
}
/* Keeps a plan if it is the best so far. Equal costs keep the earlier one. */
bool sn__consider(sn__search *s, const int *devices, const int64_t *priorities, int64_t cost);

typedef enum sn__list_rule { SN__LIST_HEFT, SN__LIST_PEFT, SN__LIST_ETF } sn__list_rule;

/* A list schedule under class_bytes: devices by class, and tasks' starts in it. order: by task, the
 * larger the earlier; NULL: the rule's own. OUT_OF_MEMORY. */
SN_MUST_USE sn_status sn__list_schedule(sn__search *s, sn__list_rule rule, const int64_t *order,
                                        int *out_devices, int64_t *out_start);

/* HEFT's ranks: mean time, mean copies, and the longest of what comes after. By task. */
void sn__list_ranks(sn__search *s, int64_t *out_ranks);

/* A list schedule that keeps the best of many partial ones, for about as long as `evals` simulated
 * steps take, which it counts. rank: by task, the larger the sooner; NULL: tails. out_found: false
 * where there is none: too many tasks may go at once, or classes did not fit. OUT_OF_MEMORY. */
SN_MUST_USE sn_status sn__beam_schedule(sn__search *s, const int64_t *rank, int64_t evals,
                                        int *out_devices, int64_t *out_start, bool *out_found);

/* Anneals from the plan given (in place; it ends as the last accepted), spending `evals`. hot and
 * cold: thousandths of the plan's cost that are accepted as a loss at the start and at the end. */
SN_MUST_USE sn_status sn__anneal(sn__search *s, int *devices, int64_t *priorities, int64_t evals,
                                 int hot, int cold);

typedef struct sn__proof {
  bool proved;       /* no plan is better than the best one */
  bool any_schedule; /* this holds for schedules that wait on purpose, too */
  int64_t bound;     /* no plan that fits is below; 0: nothing is known */
} sn__proof;

/* Enumerates, taking as long as `budget` simulated steps at most, what could be better than the
 * best plan so far, which it replaces by what it finds. */
SN_MUST_USE sn_status sn__exact(sn__search *s, int64_t budget, sn__proof *out_proof);

SN_MUST_USE bool sn__trace_create(uint32_t n_tasks, sn__trace *out_trace);
void sn__trace_free(sn__trace *trace);

/* The largest lower bound and its name. */
SN_MUST_USE sn_status sn__makespan_bound(const sn__flow *flow, int64_t *out_bound,
                                         const char **out_name);

#endif
