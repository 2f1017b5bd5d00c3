/* SPDX-License-Identifier: Apache-2.0 */
/* An assignment with its loads, kept up to date move by move. */
#include "placement/load.h"

#include <string.h>

#include "core/alloc.h"

sn_status sn__load_state_create(const sn__load *l, sn__load_state *out) {
  size_t counts = 0;
  *out = (sn__load_state){.load = l};
  if (!sn__size_mul((size_t)l->n_nets + 1, (size_t)l->n_devices, &counts))
    return sn_status_out_of_memory();
  out->device = sn__calloc((size_t)l->n_classes + 1, sizeof *out->device);
  out->device_ns = sn__calloc((size_t)l->n_devices, sizeof *out->device_ns);
  out->device_bytes = sn__calloc((size_t)l->n_devices, sizeof *out->device_bytes);
  out->count = sn__calloc(counts, sizeof *out->count);
  if (!out->device || !out->device_ns || !out->device_bytes || !out->count) {
    sn__load_state_free(out);
    return sn_status_out_of_memory();
  }
  for (uint32_t c = 0; c < l->n_classes; c++)
    out->device[c] = -1;
  return SN_OK;
}

void sn__load_state_free(sn__load_state *s) {
  sn__free(s->device);
  sn__free(s->device_ns);
  sn__free(s->device_bytes);
  sn__free(s->count);
  *s = (sn__load_state){0};
}

/* What the nets of `class_` add to a device's load by its arrival there; minus that by its leaving
 * when it is one of those counted (`there` is 1). */
static int64_t nets_change(const sn__load_state *s, uint32_t class_, int device, uint32_t there) {
  const sn__load *l = s->load;
  size_t nd = (size_t)l->n_devices;
  int64_t sum = 0;
  if (!l->kinds[l->kind_of[device]].pays) return 0;
  for (uint32_t i = l->first_net[class_]; i < l->first_net[class_ + 1]; i++) {
    uint32_t net = l->nets[i];
    uint32_t others = s->count[net * nd + (size_t)device] - there;
    if (others == 0) sum += l->net_ns[net]; /* nets have two classes at least */
    if (others + 1 == l->first_end[net + 1] - l->first_end[net]) sum -= l->net_ns[net];
  }
  return sum;
}

void sn__load_try(const sn__load_state *s, uint32_t class_, int to, int64_t *out_from_ns,
                  int64_t *out_to_ns) {
  int from = s->device[class_];
  if (from >= 0)
    *out_from_ns =
        s->device_ns[from] - sn__load_ns(s->load, class_, from) - nets_change(s, class_, from, 1);
  *out_to_ns = s->device_ns[to];
  if (from != to)
    *out_to_ns += sn__load_ns(s->load, class_, to) + nets_change(s, class_, to, 0);
  else
    *out_from_ns = s->device_ns[from];
}

void sn__load_move(sn__load_state *s, uint32_t class_, int to) {
  const sn__load *l = s->load;
  size_t nd = (size_t)l->n_devices;
  int from = s->device[class_];
  if (from == to) return;
  if (from >= 0) {
    s->device_ns[from] -= sn__load_ns(l, class_, from) + nets_change(s, class_, from, 1);
    s->device_bytes[from] -= l->bytes[class_];
    for (uint32_t i = l->first_net[class_]; i < l->first_net[class_ + 1]; i++)
      s->count[l->nets[i] * nd + (size_t)from]--;
  }
  s->device[class_] = to;
  if (to < 0) return;
  s->device_ns[to] += sn__load_ns(l, class_, to) + nets_change(s, class_, to, 0);
  s->device_bytes[to] += l->bytes[class_];
  for (uint32_t i = l->first_net[class_]; i < l->first_net[class_ + 1]; i++)
    s->count[l->nets[i] * nd + (size_t)to]++;
}

void sn__load_assign(sn__load_state *s, const int *device) {
  const sn__load *l = s->load;
  memset(s->device_ns, 0, (size_t)l->n_devices * sizeof *s->device_ns);
  memset(s->device_bytes, 0, (size_t)l->n_devices * sizeof *s->device_bytes);
  memset(s->count, 0, (size_t)l->n_nets * (size_t)l->n_devices * sizeof *s->count);
  for (uint32_t c = 0; c < l->n_classes; c++)
    s->device[c] = -1;
  for (uint32_t c = 0; c < l->n_classes; c++)
    if (device[c] >= 0) sn__load_move(s, c, device[c]);
}

int64_t sn__load_largest(const sn__load_state *s) {
  int64_t most = 0;
  for (int d = 0; d < s->load->n_devices; d++)
    if (s->device_ns[d] > most) most = s->device_ns[d];
  return most;
}

bool sn__load_fits(const sn__load_state *s, uint32_t class_, int to) {
  const sn__load *l = s->load;
  uint64_t cap = l->kinds[l->kind_of[to]].bytes;
  if (sn__load_ns(l, class_, to) == SN__FLOW_NEVER) return false;
  if (s->device[class_] == to || cap == 0) return true;
  return s->device_bytes[to] <= cap && l->bytes[class_] <= cap - s->device_bytes[to];
}
