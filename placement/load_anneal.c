/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/load_anneal.h"

#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"

enum {
  ONE_BITS = 24,  /* energy of a device at the reference load */
  STEP_BITS = 10, /* steps of the energy table for a reference load */
  FINE_BITS = 4,  /* and what lies between two of them */
  TABLE = 8 << STEP_BITS,
  POWER = 8,       /* of the load, in the energy: near enough to the largest, but it sees others */
  EXP_STEPS = 256, /* entries of the acceptance table for a factor e */
  EXP_MOST = 16 * EXP_STEPS,
  HEAT_STEPS = 512
};

#define EXP_STEP UINT64_C(4278222805) /* 2^32 e^(-1/256) */

typedef struct annealer {
  sn__load_state s;
  int64_t reference;
  uint64_t scale;     /* 2^32 * 2^(STEP_BITS + FINE_BITS) / reference */
  int64_t *energy_at; /* [TABLE + 2] */
  uint32_t *chance;   /* [EXP_MOST] */
  uint64_t random;
  int64_t heat;
  int *best;
  int64_t best_ns, best_energy, energy;
} annealer;

static uint64_t draw(annealer *a) {
  return sn__mix64(a->random++);
}

/* [0, n) from 32 random bits. */
static uint32_t below(uint64_t random, uint32_t n) {
  return (uint32_t)(((random & UINT32_MAX) * n) >> 32);
}

static int64_t energy_of(const annealer *a, int64_t load) {
  uint64_t at = (uint64_t)(((unsigned __int128)(uint64_t)load * a->scale) >> 32);
  uint64_t step = at >> FINE_BITS, fine = at & ((1u << FINE_BITS) - 1);
  if (step > TABLE) {
    fine = (step - TABLE) << FINE_BITS;
    if (fine > (uint64_t)1 << 24) fine = (uint64_t)1 << 24;
    step = TABLE;
  }
  int64_t low = a->energy_at[step], high = a->energy_at[step + 1];
  return low + (((high - low) * (int64_t)fine) >> FINE_BITS);
}

static void make_tables(annealer *a) {
  for (int64_t i = 0; i < TABLE + 2; i++) {
    int64_t e = (int64_t)1 << ONE_BITS;
    for (int p = 0; p < POWER; p++)
      e = (e * i) >> STEP_BITS;
    a->energy_at[i] = e;
  }
  uint64_t x = (uint64_t)UINT32_MAX + 1;
  for (int i = 0; i < EXP_MOST; i++) {
    a->chance[i] = x > UINT32_MAX ? UINT32_MAX : (uint32_t)x;
    x = (x * EXP_STEP) >> 32;
  }
}

static bool accept(annealer *a, int64_t change, uint64_t random) {
  if (change <= 0) return true;
  if (change >= a->heat * 16) return false;
  uint64_t at = (uint64_t)change * EXP_STEPS / (uint64_t)a->heat;
  return at < EXP_MOST && (random >> 32) < a->chance[at];
}

static void keep_best(annealer *a) {
  int64_t ns = sn__load_largest(&a->s);
  if (ns > a->best_ns || (ns == a->best_ns && a->energy >= a->best_energy)) return;
  a->best_ns = ns;
  a->best_energy = a->energy;
  memcpy(a->best, a->s.device, a->s.load->n_classes * sizeof *a->best);
}

/* A device that one of the class's neighbours is on, or any. */
static int choose_device(annealer *a, uint32_t c) {
  const sn__load *l = a->s.load;
  uint64_t r = draw(a);
  uint32_t first = l->first_net[c], n = l->first_net[c + 1] - first;
  if (n > 0 && (r >> 60) != 0) {
    uint32_t net = l->nets[first + below(r, n)];
    uint32_t ends = l->first_end[net + 1] - l->first_end[net];
    return a->s.device[l->ends[l->first_end[net] + below(draw(a), ends)]];
  }
  return (int)below(r, (uint32_t)l->n_devices);
}

static void try_move(annealer *a, uint32_t c, int to) {
  int from = a->s.device[c];
  int64_t from_ns = 0, to_ns = 0;
  if (from == to || !sn__load_fits(&a->s, c, to)) return;
  sn__load_try(&a->s, c, to, &from_ns, &to_ns);
  int64_t change = energy_of(a, from_ns) + energy_of(a, to_ns) -
                   energy_of(a, a->s.device_ns[from]) - energy_of(a, a->s.device_ns[to]);
  if (!accept(a, change, draw(a))) return;
  sn__load_move(&a->s, c, to);
  a->energy += change;
  if (change < 0) keep_best(a);
}

static int64_t whole_energy(const annealer *a) {
  int64_t e = 0;
  for (int d = 0; d < a->s.load->n_devices; d++)
    e += energy_of(a, a->s.device_ns[d]);
  return e;
}

/* Two classes change devices. */
static void try_swap(annealer *a, uint32_t c, uint32_t other) {
  int here = a->s.device[c], there = a->s.device[other];
  uint64_t cap_here = a->s.load->kinds[a->s.load->kind_of[here]].bytes;
  if (here == there || sn__load_ns(a->s.load, other, here) == SN__FLOW_NEVER) return;
  if (sn__load_ns(a->s.load, c, there) == SN__FLOW_NEVER) return;
  int64_t before = energy_of(a, a->s.device_ns[here]) + energy_of(a, a->s.device_ns[there]);
  sn__load_move(&a->s, other, -1);
  bool fits = sn__load_fits(&a->s, c, there);
  if (fits) sn__load_move(&a->s, c, there);
  fits = fits && (cap_here == 0 || sn__load_fits(&a->s, other, here));
  if (fits) {
    sn__load_move(&a->s, other, here);
    int64_t change =
        energy_of(a, a->s.device_ns[here]) + energy_of(a, a->s.device_ns[there]) - before;
    if (accept(a, change, draw(a))) {
      a->energy += change;
      if (change < 0) keep_best(a);
      return;
    }
  }
  sn__load_move(&a->s, other, -1);
  sn__load_move(&a->s, c, here);
  sn__load_move(&a->s, other, there);
}

static void step(annealer *a) {
  uint32_t n = a->s.load->n_classes;
  uint64_t r = draw(a);
  uint32_t c = below(r, n);
  if ((r >> 60) == 0)
    try_swap(a, c, below(draw(a), n));
  else
    try_move(a, c, choose_device(a, c));
}

static sn_status annealer_create(annealer *a, const sn__load *l, const int *device) {
  *a = (annealer){0};
  a->energy_at = sn__calloc(TABLE + 2, sizeof *a->energy_at);
  a->chance = sn__calloc(EXP_MOST, sizeof *a->chance);
  a->best = sn__calloc((size_t)l->n_classes + 1, sizeof *a->best);
  if (!a->energy_at || !a->chance || !a->best) return sn_status_out_of_memory();
  SN_TRY(sn__load_state_create(l, &a->s));
  sn__load_assign(&a->s, device);
  make_tables(a);
  a->best_ns = sn__load_largest(&a->s);
  a->reference = a->best_ns > 0 ? a->best_ns : 1;
  a->scale =
      (uint64_t)(((unsigned __int128)1 << (32 + STEP_BITS + FINE_BITS)) / (uint64_t)a->reference);
  a->energy = a->best_energy = whole_energy(a);
  memcpy(a->best, device, l->n_classes * sizeof *a->best);
  return SN_OK;
}

static void annealer_free(annealer *a) {
  sn__load_state_free(&a->s);
  sn__free(a->energy_at);
  sn__free(a->chance);
  sn__free(a->best);
}

sn_status sn__load_anneal_run(const sn__load *l, const sn__load_anneal *how, int *device,
                              int64_t *ns) {
  annealer a;
  sn_status status = annealer_create(&a, l, device);
  a.random = sn__mix64(how->seed);
  uint64_t done = 0;
  /* From hot to cold by a constant factor: e^-x with x going up evenly. */
  int64_t fall = 0;
  while (status == SN_OK && fall < EXP_MOST - 1 && (how->hot * a.chance[fall]) >> 32 > how->cold)
    fall++;
  for (uint64_t i = 1; status == SN_OK && i <= HEAT_STEPS; i++) {
    a.heat = (how->hot * a.chance[(int64_t)(i - 1) * fall / (HEAT_STEPS - 1)]) >> 32;
    if (a.heat < 1) a.heat = 1;
    for (uint64_t until = how->evals / HEAT_STEPS * i + how->evals % HEAT_STEPS * i / HEAT_STEPS;
         done < until; done++)
      step(&a);
  }
  if (status == SN_OK) {
    memcpy(device, a.best, l->n_classes * sizeof *device);
    *ns = a.best_ns;
  }
  annealer_free(&a);
  return status;
}
