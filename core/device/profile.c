/* SPDX-License-Identifier: Apache-2.0 */
#include "core/device/profile.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "core/alloc.h"

typedef struct row {
  char *op, *shapes, *device;
  size_t n_points;
  sn_profile_point points[SN_PROFILE_POINTS_MOST];
} row;

struct sn_profile {
  _Atomic uint32_t holders;
  row *rows;
  size_t count, capacity;
};

/* ---- life ---------------------------------------------------------------------------------- */

sn_status sn_profile_create(sn_profile **out_profile) {
  sn_profile *p = sn__calloc(1, sizeof *p);
  if (p == NULL) return sn_status_out_of_memory();
  atomic_init(&p->holders, 1);
  *out_profile = p;
  return SN_OK;
}

sn_profile *sn_profile_share(sn_profile *p) {
  if (p != NULL) atomic_fetch_add(&p->holders, 1);
  return p;
}

static void free_texts(row *r) {
  sn__free(r->op);
  sn__free(r->shapes);
  sn__free(r->device);
}

void sn_profile_free(sn_profile *p) {
  if (p == NULL || atomic_fetch_sub(&p->holders, 1) > 1) return;
  for (size_t i = 0; i < p->count; i++)
    free_texts(&p->rows[i]);
  sn__free(p->rows);
  sn__free(p);
}

/* ---- rows ---------------------------------------------------------------------------------- */

static bool good_number(double x) {
  return isfinite(x) && x >= 0;
}

static sn_status check_row(const sn_profile_row *r) {
  bool good = r->op != NULL && r->shapes != NULL && r->device != NULL && r->n_points > 0 &&
              r->n_points <= SN_PROFILE_POINTS_MOST;
  for (size_t i = 0; good && i < r->n_points; i++) {
    const sn_profile_point *p = &r->points[i];
    good = good_number(p->work) && good_number(p->ns) && p->samples >= 0 &&
           (i == 0 || p->work > p[-1].work);
  }
  if (good) return SN_OK;
  return sn_status_make(SN_CODE_INVALID,
                        "profile: the row of '%s' has no points, or works that do not grow, or a "
                        "number that cannot be; measure it again",
                        r->op == NULL ? "" : r->op);
}

static row *find_row(const sn_profile *p, const char *op, const char *shapes, const char *device) {
  for (size_t i = 0; i < p->count; i++) {
    row *r = &p->rows[i];
    if (strcmp(r->op, op) == 0 && strcmp(r->device, device) == 0 && strcmp(r->shapes, shapes) == 0)
      return r;
  }
  return NULL;
}

sn_status sn_profile_put(sn_profile *p, const sn_profile_row *given) {
  SN_TRY(check_row(given));
  row *r = find_row(p, given->op, given->shapes, given->device);
  if (r == NULL) {
    if (!sn__grow((void **)&p->rows, &p->capacity, p->count + 1, sizeof *p->rows))
      return sn_status_out_of_memory();
    row made = {.op = sn__strdup(given->op),
                .shapes = sn__strdup(given->shapes),
                .device = sn__strdup(given->device)};
    if (made.op == NULL || made.shapes == NULL || made.device == NULL) {
      free_texts(&made);
      return sn_status_out_of_memory();
    }
    r = &p->rows[p->count++];
    *r = made;
  }
  r->n_points = given->n_points;
  memcpy(r->points, given->points, given->n_points * sizeof *r->points);
  return SN_OK;
}

size_t sn_profile_row_count(const sn_profile *p) {
  return p->count;
}

sn_profile_row sn_profile_row_at(const sn_profile *p, size_t i) {
  if (i >= p->count) return (sn_profile_row){.op = NULL};
  const row *r = &p->rows[i];
  return (sn_profile_row){.op = r->op,
                          .shapes = r->shapes,
                          .device = r->device,
                          .n_points = r->n_points,
                          .points = r->points};
}

/* ---- asking -------------------------------------------------------------------------------- */

/* ns in proportion to work; a row whose ops do nothing by their cost rows gives what it measured.
 */
static double scaled(const sn_profile_point *from, double work) {
  return from->work > 0 ? from->ns * (work / from->work) : from->ns;
}

/* Between two points a line; past the ends in proportion to the nearest, but never less for more.
 */
static double on_row(const row *r, double work) {
  size_t i = 0;
  while (i < r->n_points && r->points[i].work < work)
    i++;
  if (i == 0) return scaled(&r->points[0], work);
  const sn_profile_point *below = &r->points[i - 1];
  if (i == r->n_points) return scaled(below, work);
  const sn_profile_point *above = &r->points[i];
  double part = (work - below->work) / (above->work - below->work);
  return below->ns + part * (above->ns - below->ns);
}

/* How far apart two works are: as a ratio, from 0. */
static double distance(double a, double b) {
  return fabs(log((a + 1) / (b + 1)));
}

static double row_distance(const row *r, double work) {
  double low = r->points[0].work, high = r->points[r->n_points - 1].work;
  return work < low ? distance(work, low) : work > high ? distance(work, high) : 0;
}

sn_cost_source sn__profile_ns(const sn_profile *p, const char *op, const char *shapes,
                              const char *device, double work, double *out_ns) {
  if (p == NULL) return SN_COST_ANALYTIC;
  const row *nearest = NULL;
  double measured = 0, described = 0;
  for (size_t i = 0; i < p->count; i++) {
    const row *r = &p->rows[i];
    if (strcmp(r->device, device) != 0) continue;
    if (strcmp(r->op, op) == 0) {
      if (strcmp(r->shapes, shapes) == 0) {
        *out_ns = on_row(r, work);
        return SN_COST_MEASURED;
      }
      if (nearest == NULL || row_distance(r, work) < row_distance(nearest, work)) nearest = r;
    }
    const sn_profile_point *middle = &r->points[r->n_points / 2];
    measured += middle->ns;
    described += middle->work;
  }
  if (nearest != NULL) {
    *out_ns = on_row(nearest, work);
    return SN_COST_SCALED;
  }
  if (!(described > 0)) return SN_COST_ANALYTIC;
  *out_ns = work * (measured / described);
  return SN_COST_CALIBRATED;
}
