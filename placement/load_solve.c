/* SPDX-License-Identifier: Apache-2.0 */
/* The load objective from candidates to the answer. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "placement/downsets.h"
#include "placement/load.h"
#include "placement/load_anneal.h"
#include "placement/load_bound.h"
#include "placement/load_start.h"

enum {
  DOWNSETS_MOST = 1000000,    /* in a contiguous solve */
  DOWNSETS_CANDIDATE = 50000, /* for one candidate of many */
  SLICES_MOST = 2000,         /* blocks in an order that is sliced; longer ones are chunked */
  RANDOM_ORDERS = 12,
  ROUNDS = 120,     /* of annealing */
  LEVELS = 10,      /* rounds go through coarser and coarser blocks */
  EVALS = 40000000, /* default budget */
  EXACT_CLASSES = 16,
  CERTIFY_CLASSES = 64, /* deep enough for the stack */
  EXACT_STEPS = 20000000
};

/* The best so far, class by class. */
typedef struct solver {
  const sn__load *l;
  const sn__load_options *o;
  sn__load_result *out;
  int *device, *trial; /* [n_classes] */
  int64_t ns;
  char found[160];
  uint64_t evals;
  /* what contiguous splits are made of */
  uint32_t *block_of; /* [n_classes] */
  uint32_t n_blocks;
  sn__load *blocks;
  uint32_t n_downsets; /* 0: too many */
} solver;

static void solver_free(solver *s) {
  sn__free(s->device);
  sn__free(s->trial);
  sn__free(s->block_of);
  sn__load_free(s->blocks);
}

static sn_status solver_create(solver *s, const sn__load *l, const sn__load_options *o,
                               sn__load_result *out) {
  size_t n = (size_t)l->n_classes + 1;
  *s = (solver){.l = l, .o = o, .out = out, .ns = SN__FLOW_NEVER};
  s->device = sn__calloc(n, sizeof *s->device);
  s->trial = sn__calloc(n, sizeof *s->trial);
  s->block_of = sn__calloc(n, sizeof *s->block_of);
  return s->device && s->trial && s->block_of ? SN_OK : sn_status_out_of_memory();
}

static void take_better(solver *s, int64_t ns, const char *found) {
  if (ns >= s->ns) return;
  s->ns = ns;
  memcpy(s->device, s->trial, s->l->n_classes * sizeof *s->device);
  snprintf(s->found, sizeof s->found, "%s", found);
}

/* ---- slices ---------------------------------------------------------------------------------- */

/* Slices `sets` of `blocks`; block_of leads from classes to them. */
static sn_status slice(solver *s, const sn__load *blocks, const uint32_t *block_of,
                       const sn__downsets *sets, const char *found) {
  int64_t ns = 0, bound = s->ns < SN__FLOW_TIME_MOST ? s->ns : SN__FLOW_TIME_MOST;
  int *device = sn__calloc((size_t)blocks->n_classes + 1, sizeof *device);
  if (device == NULL) return sn_status_out_of_memory();
  sn_status status = sn__load_slice(blocks, sets, bound, device, &ns, &s->evals);
  if (status == SN_OK && ns != SN__FLOW_NEVER) {
    for (uint32_t c = 0; c < s->l->n_classes; c++)
      s->trial[c] = device[block_of[c]];
    take_better(s, ns, found);
  }
  sn__free(device);
  return status;
}

/* Long orders are cut into chunks of about equal work, which then are what is sliced. */
static sn_status slice_order(solver *s, sn__load_order kind, uint64_t seed) {
  uint32_t n = s->n_blocks, chunks = n < SLICES_MOST ? n : SLICES_MOST;
  sn__downsets *chain = NULL;
  sn__load *chunked = NULL;
  uint32_t *order = sn__calloc((size_t)n + 1, sizeof *order);
  uint32_t *chunk_of = sn__calloc((size_t)n + 1, sizeof *chunk_of);
  uint32_t *class_chunk = sn__calloc((size_t)s->l->n_classes + 1, sizeof *class_chunk);
  sn_status status = order && chunk_of && class_chunk ? SN_OK : sn_status_out_of_memory();
  if (status == SN_OK) status = sn__load_order_by(s->blocks, kind, seed, order);
  if (status != SN_OK) goto done;
  for (uint32_t i = 0; i < n; i++)
    chunk_of[order[i]] = (uint32_t)((uint64_t)i * chunks / n);
  for (uint32_t c = 0; c < s->l->n_classes; c++)
    class_chunk[c] = chunk_of[s->block_of[c]];
  SN_TRY_GOTO(status, sn__load_contract(s->blocks, chunk_of, chunks, &chunked), done);
  for (uint32_t i = 0; i < chunks; i++)
    order[i] = i;
  SN_TRY_GOTO(status, sn__downsets_chain(chunks, order, &chain), done);
  status = slice(s, chunked, class_chunk, chain, "slices of one order");
done:
  sn__downsets_free(chain);
  sn__load_free(chunked);
  sn__free(order);
  sn__free(chunk_of);
  sn__free(class_chunk);
  return status;
}

static sn_status slice_orders(solver *s) {
  for (int kind = 0; kind < SN__ORDER_RANDOM; kind++)
    SN_TRY(slice_order(s, (sn__load_order)kind, 0));
  for (uint64_t i = 0; i < RANDOM_ORDERS; i++)
    SN_TRY(slice_order(s, SN__ORDER_RANDOM, s->o->seed * RANDOM_ORDERS + i));
  return SN_OK;
}

static sn_status slice_lattice(solver *s, uint32_t most) {
  sn__downsets *sets = NULL;
  char found[160];
  SN_TRY(sn__downsets_create(s->n_blocks, s->blocks->first_after, s->blocks->after, most, &sets));
  s->n_downsets = sets == NULL ? 0 : sets->count;
  if (sets == NULL) return SN_OK;
  snprintf(found, sizeof found, "the best contiguous split, over %u downsets of %u blocks",
           sets->count, s->n_blocks);
  sn_status status = slice(s, s->blocks, s->block_of, sets, found);
  sn__downsets_free(sets);
  return status;
}

static sn_status fold(solver *s) {
  SN_TRY(sn__load_blocks(s->l, s->block_of, &s->n_blocks));
  return sn__load_contract(s->l, s->block_of, s->n_blocks, &s->blocks);
}

/* ---- annealing ------------------------------------------------------------------------------- */

/* One round over blocks of classes that are together now: a cluster moves as one. */
static sn_status anneal_round(solver *s, int round, uint64_t evals) {
  uint32_t n = s->l->n_classes, target = n, n_blocks = 0;
  uint32_t *block_of = sn__calloc((size_t)n + 1, sizeof *block_of);
  sn__load *blocks = NULL;
  int64_t ns = s->ns;
  uint64_t seed = sn__mix64(s->o->seed ^ sn__mix64((uint64_t)round));
  sn_status status = block_of != NULL ? SN_OK : sn_status_out_of_memory();
  for (int i = round % LEVELS; i > 0; i--)
    target = target * 2 / 3;
  uint32_t least = 3 * (uint32_t)s->l->n_devices;
  if (target < least) target = least;
  if (status == SN_OK)
    status = sn__load_coarsen(s->l, s->device, target, seed, block_of, &n_blocks);
  if (status == SN_OK) status = sn__load_contract(s->l, block_of, n_blocks, &blocks);
  if (status == SN_OK) {
    const int64_t one = (int64_t)1 << 24;
    sn__load_anneal how = {evals, seed, round % 3 == 0 ? one / 10 : one / 40, one / 3000};
    for (uint32_t c = 0; c < n; c++)
      s->trial[block_of[c]] = s->device[c]; /* block_of[c] <= c: nothing is overwritten early */
    status = sn__load_anneal_run(blocks, &how, s->trial, &ns);
  }
  for (uint32_t c = n; status == SN_OK && c > 0; c--)
    s->trial[c - 1] = s->trial[block_of[c - 1]];
  if (status == SN_OK) {
    s->evals += evals;
    if (ns < s->ns)
      take_better(s, ns, "annealing from the best candidate");
    else if (ns == s->ns)
      memcpy(s->device, s->trial, n * sizeof *s->device);
  }
  sn__load_free(blocks);
  sn__free(block_of);
  return status;
}

static sn_status anneal(solver *s, int64_t enough) {
  uint64_t budget = s->o->evals != 0 ? s->o->evals : EVALS;
  for (int round = 0; round < ROUNDS && s->ns > enough; round++)
    SN_TRY(anneal_round(s, round, budget / ROUNDS + (uint64_t)((uint64_t)round < budget % ROUNDS)));
  return SN_OK;
}

/* Few classes: every placement is looked at, and the best one proved. */
static sn_status exhaust(solver *s) {
  if (s->l->n_classes > (s->o->certify ? CERTIFY_CLASSES : EXACT_CLASSES)) return SN_OK;
  bool proved = false;
  int64_t ns = s->ns;
  SN_TRY(sn__load_exact(s->l, EXACT_STEPS, s->trial, &ns, &s->evals, &proved));
  if (ns < s->ns) take_better(s, ns, "the best of all placements");
  s->out->certified = proved;
  return SN_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static sn_status too_many(const solver *s) {
  return sn_status_make(SN_CODE_UNSUPPORTED,
                        "placement: more than %d downsets of %u blocks: too many branches side by "
                        "side for the exact contiguous split; leave out --contiguous",
                        DOWNSETS_MOST, s->n_blocks);
}

static sn_status contiguous(solver *s) {
  SN_TRY(fold(s));
  SN_TRY(slice_orders(s));
  SN_TRY(slice_lattice(s, DOWNSETS_MOST));
  if (s->n_downsets == 0) return too_many(s);
  if (s->ns == SN__FLOW_NEVER)
    return sn_status_make(SN_CODE_INVALID,
                          "placement: no contiguous split fits the devices' memory and pins; leave "
                          "out --contiguous");
  snprintf(s->found, sizeof s->found, "the best contiguous split, over %u downsets of %u blocks",
           s->n_downsets, s->n_blocks);
  s->out->certified = true;
  return SN_OK;
}

static sn_status candidates(solver *s) {
  int one = 0;
  uint32_t stuck = 0;
  int64_t ns = s->out->one_device_ns;
  sn__load_one_device(s->l, &one, &ns);
  for (uint32_t c = 0; c < s->l->n_classes; c++)
    s->trial[c] = one;
  take_better(s, ns, "everything on one device: copies would cost more than others gain");
  SN_TRY(sn__load_greedy(s->l, s->trial, &ns, &stuck));
  take_better(s, ns, "class by class, largest first");
  SN_TRY(fold(s));
  sn_status status = slice_orders(s);
  if (status == SN_OK) status = slice_lattice(s, DOWNSETS_CANDIDATE);
  if (sn_status_code(status) == SN_CODE_UNSUPPORTED) { /* many devices: no slices */
    sn_status_free(status);
    status = SN_OK;
  }
  return status;
}

/* What does not fit, where, and what would do. */
static sn_status nothing_fits(const sn__load *l) {
  const double mib = 1048576;
  double all = 0, room = 0;
  for (int d = 0; d < l->n_devices; d++) {
    uint64_t bytes = l->kinds[l->kind_of[d]].bytes;
    room += bytes == 0 ? 0x1p80 : (double)bytes;
  }
  for (uint32_t c = 0; c < l->n_classes; c++) {
    uint64_t most = 0;
    bool may = false;
    for (int k = 0; k < l->n_kinds; k++) {
      if (l->ns[(size_t)c * (size_t)l->n_kinds + (size_t)k] == SN__FLOW_NEVER) continue;
      may = may || l->kinds[k].bytes == 0 || l->bytes[c] <= l->kinds[k].bytes;
      if (l->kinds[k].bytes > most) most = l->kinds[k].bytes;
    }
    if (!may)
      return sn_status_make(SN_CODE_OUT_OF_MEMORY,
                            "placement: nothing fits: what moves as number %u takes %.6g MiB and "
                            "the largest device that can run it has %.6g MiB; give it a device of "
                            "%.6g MiB, or split it",
                            c, (double)l->bytes[c] / mib, (double)most / mib,
                            (double)l->bytes[c] / mib);
    all += (double)l->bytes[c];
  }
  if (all > room)
    return sn_status_make(SN_CODE_OUT_OF_MEMORY,
                          "placement: nothing fits: all together takes %.6g MiB and the %d devices "
                          "have %.6g MiB; add devices or memory",
                          all / mib, l->n_devices, room / mib);
  return sn_status_make(SN_CODE_OUT_OF_MEMORY,
                        "placement: no way was found to fit: all together takes %.6g MiB of the "
                        "%d devices' %.6g MiB, in pieces that leave gaps; give each a little more "
                        "memory, or add a device",
                        all / mib, l->n_devices, room / mib);
}

sn_status sn__load_solve(const sn__load *l, const sn__load_options *o, sn__load_result *out) {
  solver s;
  sn__load_bound bound;
  int one = 0;
  *out = (sn__load_result){0};
  sn__load_one_device(l, &one, &out->one_device_ns);
  sn_status status = solver_create(&s, l, o, out);
  if (status == SN_OK) status = sn__load_bound_of(l, &bound);
  if (status == SN_OK) status = o->contiguous ? contiguous(&s) : candidates(&s);
  if (status == SN_OK && !o->contiguous) status = exhaust(&s);
  if (status == SN_OK && s.ns == SN__FLOW_NEVER) status = nothing_fits(l);
  if (status == SN_OK && !o->contiguous && !out->certified) status = anneal(&s, bound.ns);
  if (status == SN_OK && o->certify && !out->certified && s.ns != bound.ns)
    status = sn_status_make(SN_CODE_UNSUPPORTED,
                            "placement: this largest load cannot be proved optimal: the best found "
                            "is above its lower bound; --contiguous is proved, and without "
                            "--certify the plan is given with its bound");
  if (status == SN_OK) {
    out->device = s.device;
    s.device = NULL;
    out->ns = s.ns;
    out->bound_ns = bound.ns;
    out->evals = s.evals;
    out->certified = out->certified || s.ns == bound.ns;
    snprintf(out->bound, sizeof out->bound, "%s", bound.words);
    snprintf(out->found, sizeof out->found, "%s", s.found);
  }
  solver_free(&s);
  return status;
}
