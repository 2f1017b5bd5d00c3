/* SPDX-License-Identifier: Apache-2.0 */
#include "core/device/desc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/device/bf16.h"
#include "core/device/device_impl.h"
#include "core/device/thread.h"

/* ---- kinds --------------------------------------------------------------------------------- */

static const char *const kind_names[SN_DEVICE_KIND_COUNT] = {
#define SN_X(ENUM, name, words) name,
    SN_DEVICE_KINDS(SN_X)
#undef SN_X
};

const char *sn_device_kind_name(sn_device_kind kind) {
  return (unsigned)kind < SN_DEVICE_KIND_COUNT ? kind_names[kind] : "unknown";
}

const char *sn_device_kind_absent(sn_device_kind kind) {
  if (sn__device_backend(kind) != NULL) return NULL;
  if (kind == SN_DEVICE_CUDA) {
    return "no CUDA module (libsennit-cuda) is loaded; use cpu:0, or null:0 to plan without a "
           "device";
  }
  return "no such kind of device";
}

/* ---- rates --------------------------------------------------------------------------------- */

/* f32 multiply-adds of blocked products, counted as two operations, on one thread. Tried with the
 * vendor's products on one core of a 2023 server: 160-200e9 with AVX-512; the narrower sets scale
 * with the width of their vectors. Rates only have to be right to each other. */
static double cpu_flops_per_thread(void) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return 160e9;
  if (__builtin_cpu_supports("avx2")) return 80e9;
  return 20e9;
#else
  return 40e9;
#endif
}

/* The same of bf16 operands, rounding them included; tried: 300-700e9 with AMX for products of 64
 * rows and more, of 32 deep and more; 60e9 with AVX512_BF16 on the same processor (others may be
 * faster); 0.3 of f32 where it is emulated. */
static double cpu_bf16_per_thread(void) {
  switch (sn__cpu_bf16_there()) {
  case SN__CPU_BF16_AMX: return 500e9;
  case SN__CPU_BF16_AVX512: return 60e9;
  default: return 0.3 * cpu_flops_per_thread();
  }
}

#define CPU_BYTES_PER_THREAD 10e9 /* one thread that streams through memory */
#define CPU_BYTES_MOST       80e9 /* more threads than this do not make memory faster */
#define CPU_LAUNCH_NS        1500 /* queue, wake a helper, start a kernel */
#define NULL_MEMORY          ((uint64_t)16 << 30)
#define CUDA_FLOPS           40e12
#define CUDA_BYTES           1.5e12
#define CUDA_LAUNCH_NS       5000
#define CUDA_MEMORY          ((uint64_t)80 << 30) /* until the module asks the device */

/* The machine's RAM, or what the control group leaves of it. */
static uint64_t host_memory(void) {
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  uint64_t bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
  FILE *file = fopen("/sys/fs/cgroup/memory.max", "re");
  unsigned long long limit; /* the file says "max" where there is none */
  if (file != NULL && fscanf(file, "%llu", &limit) == 1 && (bytes == 0 || limit < bytes)) {
    bytes = limit;
  }
  if (file != NULL) fclose(file);
  return bytes;
}

void sn_device_desc_init(sn_device_kind kind, int index, int part, int threads,
                         sn_device_desc *out_desc) {
  sn_device_desc d = {.kind = kind, .index = index, .part = part, .threads = 1};
  if (part >= 0) {
    snprintf(d.name, sizeof d.name, "%s:%d/%d", sn_device_kind_name(kind), index, part);
  } else {
    snprintf(d.name, sizeof d.name, "%s:%d", sn_device_kind_name(kind), index);
  }
  if (kind == SN_DEVICE_CUDA) {
    d.memory_bytes = CUDA_MEMORY;
    d.flops_per_s = CUDA_FLOPS;
    d.bytes_per_s = CUDA_BYTES;
    d.launch_ns = CUDA_LAUNCH_NS;
  } else {
    int n = threads < 1 ? 1 : threads;
    if (kind == SN_DEVICE_CPU) d.threads = n;
    d.memory_bytes = kind == SN_DEVICE_CPU ? host_memory() : NULL_MEMORY;
    d.flops_per_s = cpu_flops_per_thread() * n;
    d.bf16_flops_per_s = cpu_bf16_per_thread() * n;
    d.bytes_per_s =
        CPU_BYTES_PER_THREAD * n < CPU_BYTES_MOST ? CPU_BYTES_PER_THREAD * n : CPU_BYTES_MOST;
    d.launch_ns = CPU_LAUNCH_NS;
  }
  *out_desc = d;
}

/* A copy between two CPU devices is one thread's memcpy plus the waking of two queues; to or from a
 * GPU one transfer over PCIe 4 x16 from pageable memory; between GPUs two, until the module knows
 * that they reach each other. */
static sn_link_desc usual_link(const sn_device_desc *from, const sn_device_desc *to, int i, int j) {
  sn_link_desc link = {.from = i, .to = j, .path = SN_LINK_DIRECT};
  int gpus = (from->kind == SN_DEVICE_CUDA) + (to->kind == SN_DEVICE_CUDA);
  if (i == j) {
    link.bytes_per_s = from->bytes_per_s;
  } else if (gpus == 0) {
    link.latency_ns = 5000;
    link.bytes_per_s = 8e9; /* tried: 6.5-8.8e9 for blocks of 4 MB and more */
  } else if (gpus == 1) {
    link.latency_ns = 10000;
    link.bytes_per_s = 12e9;
  } else {
    link.latency_ns = 20000;
    link.bytes_per_s = 6e9;
    link.path = SN_LINK_STAGED;
    if (from->index == to->index) { /* two parts of one GPU share its memory */
      link.latency_ns = 8000;
      link.bytes_per_s = CUDA_BYTES / 2;
      link.path = SN_LINK_DIRECT;
    }
  }
  return link;
}

/* ---- topologies ---------------------------------------------------------------------------- */

static sn_status check_desc(const sn_device_desc *d, int i) {
  if (memchr(d->name, '\0', sizeof d->name) == NULL || d->name[0] == '\0') {
    return sn_status_make(SN_CODE_INVALID, "device %d has no name", i);
  }
  if ((unsigned)d->kind >= SN_DEVICE_KIND_COUNT) {
    return sn_status_make(SN_CODE_INVALID, "device %s is of unknown kind %d", d->name,
                          (int)d->kind);
  }
  if (!(d->bf16_flops_per_s >= 0))
    return sn_status_make(SN_CODE_INVALID, "device %s: its rate of bf16 products is %g flop/s",
                          d->name, d->bf16_flops_per_s);
  if (!(d->flops_per_s > 0) || !(d->bytes_per_s > 0) || d->launch_ns < 0) {
    return sn_status_make(
        SN_CODE_INVALID, "device %s: its rates must be positive: %g flop/s, %g B/s, launch %lld ns",
        d->name, d->flops_per_s, d->bytes_per_s, (long long)d->launch_ns);
  }
  if (d->threads < 1) {
    return sn_status_make(SN_CODE_INVALID, "device %s has %d threads: at least 1 is needed",
                          d->name, d->threads);
  }
  return SN_OK;
}

static sn_status check_descs(const sn_device_desc *devices, int n) {
  if (n < 1 || n > SN_DEVICES_MOST) {
    return sn_status_make(SN_CODE_INVALID, "a topology of %d devices: give 1 to %d", n,
                          SN_DEVICES_MOST);
  }
  for (int i = 0; i < n; i++) {
    SN_TRY(check_desc(&devices[i], i));
    for (int j = 0; j < i; j++) {
      if (strcmp(devices[i].name, devices[j].name) == 0) {
        return sn_status_make(SN_CODE_INVALID, "two devices are called %s", devices[i].name);
      }
    }
  }
  return SN_OK;
}

static sn_topology *allocate(int n) {
  sn_topology *t = sn__calloc(1, sizeof *t);
  if (t == NULL) return NULL;
  t->n_devices = n;
  t->devices = sn__calloc((size_t)n, sizeof *t->devices);
  t->links = sn__calloc((size_t)n * (size_t)n, sizeof *t->links);
  if (t->devices != NULL && t->links != NULL) return t;
  sn_topology_free(t);
  return NULL;
}

sn_status sn_topology_create(const sn_device_desc *devices, int n_devices,
                             sn_topology **out_topology) {
  SN_TRY(check_descs(devices, n_devices));
  sn_topology *t = allocate(n_devices);
  if (t == NULL) return sn_status_out_of_memory();
  memcpy(t->devices, devices, (size_t)n_devices * sizeof *devices);
  for (int i = 0; i < n_devices; i++) {
    for (int j = 0; j < n_devices; j++) {
      t->links[i * n_devices + j] = usual_link(&devices[i], &devices[j], i, j);
    }
  }
  *out_topology = t;
  return SN_OK;
}

sn_status sn_topology_copy(const sn_topology *topology, sn_topology **out_topology) {
  size_t n = (size_t)topology->n_devices;
  sn_topology *t = allocate(topology->n_devices);
  if (t == NULL) return sn_status_out_of_memory();
  memcpy(t->devices, topology->devices, n * sizeof *t->devices);
  memcpy(t->links, topology->links, n * n * sizeof *t->links);
  t->profile = sn_profile_share(topology->profile);
  *out_topology = t;
  return SN_OK;
}

void sn_topology_free(sn_topology *topology) {
  if (topology == NULL) return;
  sn__free(topology->devices);
  sn__free(topology->links);
  sn_profile_free(topology->profile);
  sn__free(topology);
}

void sn_topology_set_profile(sn_topology *topology, sn_profile *profile) {
  sn_profile *before = topology->profile;
  topology->profile = sn_profile_share(profile);
  sn_profile_free(before);
}

int sn_topology_find(const sn_topology *topology, const char *name) {
  for (int i = 0; i < topology->n_devices; i++) {
    if (strcmp(topology->devices[i].name, name) == 0) return i;
  }
  return -1;
}

const sn_link_desc *sn_topology_link(const sn_topology *topology, int from, int to) {
  return &topology->links[from * topology->n_devices + to];
}

int64_t sn_topology_copy_ns(const sn_topology *topology, int from, int to, uint64_t bytes) {
  if (from == to) return 0;
  const sn_link_desc *link = sn_topology_link(topology, from, to);
  double ns = (double)bytes * 1e9 / link->bytes_per_s;
  if (!(ns < 9e18)) return INT64_MAX; /* a link without a rate: never worth a copy */
  int64_t whole = (int64_t)ns;
  return link->latency_ns + whole + (ns > (double)whole);
}

/* ---- device lists -------------------------------------------------------------------------- */

typedef struct parser {
  const char *list; /* whole, for messages */
  const char *at;   /* the rest */
  sn_device_desc devices[SN_DEVICES_MOST];
  uint64_t caps[SN_DEVICES_MOST]; /* as asked for; 0: what the kind has */
  int n;
} parser;

static size_t item_length(const char *item) {
  return strcspn(item, ",");
}

SN_PRINTF(2, 3) static sn_status mistake(const parser *p, const char *format, ...) {
  char why[256];
  va_list args;
  va_start(args, format);
  vsnprintf(why, sizeof why, format, args);
  va_end(args);
  return sn_status_make(SN_CODE_CONFIG, "devices \"%.200s\": \"%.*s\": %s", p->list,
                        (int)(item_length(p->at) < 60 ? item_length(p->at) : 60), p->at, why);
}

/* Digits up to `end`; at most 4 of them. */
static bool number(const char *text, const char *end, int *out) {
  if (text == end || end - text > 4) return false;
  int value = 0;
  for (; text < end; text++) {
    if (*text < '0' || *text > '9') return false;
    value = value * 10 + (*text - '0');
  }
  *out = value;
  return true;
}

static sn_status add(parser *p, sn_device_kind kind, int index, int part) {
  for (int i = 0; i < p->n; i++) {
    const sn_device_desc *d = &p->devices[i];
    if (d->kind != kind || d->index != index) continue;
    if (d->part == part) return mistake(p, "%s is named twice", d->name);
    if (d->part < 0 || part < 0) {
      return mistake(p, "%s:%d is asked for whole and in parts", sn_device_kind_name(kind), index);
    }
  }
  if (p->n == SN_DEVICES_MOST) return mistake(p, "more than %d devices", SN_DEVICES_MOST);
  sn_device_desc_init(kind, index, part, 1, &p->devices[p->n++]);
  return SN_OK;
}

static sn_status parse_kind(const parser *p, size_t length, sn_device_kind *out_kind) {
  for (int k = 0; k < SN_DEVICE_KIND_COUNT; k++) {
    if (strlen(kind_names[k]) == length && strncmp(p->at, kind_names[k], length) == 0) {
      *out_kind = (sn_device_kind)k;
      const char *absent = sn_device_kind_absent(*out_kind);
      return absent == NULL ? SN_OK : mistake(p, "%s", absent);
    }
  }
  char known[64] = "";
  for (int k = 0; k < SN_DEVICE_KIND_COUNT; k++) {
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s%s", k == 0 ? "" : ", ", kind_names[k]);
  }
  return mistake(p, "unknown kind of device; there are %s (as cpu:0 or cpu*2)", known);
}

/* A number with a unit, "64MiB" or "1.5GB": the most bytes that a device may hold. */
static sn_status parse_cap(const parser *p, const char *text, const char *end, uint64_t *out) {
  static const struct {
    const char *name;
    double bytes;
  } units[] = {{"B", 1},        {"kB", 1e3},     {"MB", 1e6},     {"GB", 1e9},    {"TB", 1e12},
               {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  double value = 0, place = 1;
  const char *at = text;
  for (; at < end && *at >= '0' && *at <= '9'; at++)
    value = value * 10 + (*at - '0');
  const char *digits = at;
  if (at > text && at < end && *at == '.')
    for (at++; at < end && *at >= '0' && *at <= '9'; at++)
      value += (*at - '0') * (place /= 10);
  for (size_t i = 0; digits > text && i < sizeof units / sizeof *units; i++) {
    size_t length = strlen(units[i].name);
    if ((size_t)(end - at) != length || strncmp(at, units[i].name, length) != 0) continue;
    value *= units[i].bytes;
    if (value < 1 || value > 0x1p60) break;
    *out = (uint64_t)value;
    return SN_OK;
  }
  return mistake(p, "what follows = is the most memory the device may use, as in cpu:0=64MiB or "
                    "1.5GB");
}

/* kind | kind:index | cuda:index/part | kind*count, all but the cap */
static sn_status parse_device(parser *p, const char *end) {
  const char *item = p->at;
  size_t kind_length = strcspn(item, ":*/,=");
  sn_device_kind kind = SN_DEVICE_CPU;
  SN_TRY(parse_kind(p, kind_length, &kind));
  const char *rest = item + kind_length;
  if (rest == end) return add(p, kind, 0, -1);
  int value;
  if (*rest == '*') {
    if (!number(rest + 1, end, &value) || value < 1 || value > SN_DEVICES_MOST) {
      return mistake(p, "the count after * must be a number from 1 to %d", SN_DEVICES_MOST);
    }
    for (int i = 0; i < value; i++)
      SN_TRY(add(p, kind, i, -1));
    return SN_OK;
  }
  const char *slash = memchr(rest, '/', (size_t)(end - rest));
  if (*rest != ':' || !number(rest + 1, slash != NULL ? slash : end, &value)) {
    return mistake(p, "the index after : must be a number, as in %s:0", kind_names[kind]);
  }
  int part = -1;
  if (slash != NULL && kind != SN_DEVICE_CUDA) {
    return mistake(p, "only cuda devices have parts; use %s:%d, %s:%d for two devices",
                   kind_names[kind], value, kind_names[kind], value + 1);
  }
  if (slash != NULL && !number(slash + 1, end, &part)) {
    return mistake(p, "the part after / must be a number, as in cuda:0/1");
  }
  return add(p, kind, value, part);
}

/* device | device=cap; the cap is each one's of a count. */
static sn_status parse_item(parser *p) {
  size_t length = item_length(p->at);
  if (length == 0) return mistake(p, "a device is missing between commas; write cpu:0,cpu:1");
  const char *end = p->at + length, *equals = memchr(p->at, '=', length);
  int first = p->n;
  SN_TRY(parse_device(p, equals != NULL ? equals : end));
  if (equals == NULL) return SN_OK;
  uint64_t cap = 0;
  SN_TRY(parse_cap(p, equals + 1, end, &cap));
  for (int i = first; i < p->n; i++)
    p->caps[i] = cap;
  return SN_OK;
}

/* Shares the host's threads and memory out over the CPU devices, a GPU's over its parts. */
static void share_out(parser *p, int threads) {
  int cpus = 0;
  for (int i = 0; i < p->n; i++)
    cpus += p->devices[i].kind == SN_DEVICE_CPU;
  int each = cpus > 0 ? threads / cpus : 0, left = threads - each * cpus;
  for (int i = 0; i < p->n; i++) {
    sn_device_desc *d = &p->devices[i];
    int sharers = 1, mine = 1;
    if (d->kind == SN_DEVICE_CPU) {
      sharers = cpus > 1 ? cpus : 1;
      mine = each + (left-- > 0);
      if (mine < 1) mine = 1;
    } else if (d->part >= 0) {
      for (int j = 0; j < p->n; j++) {
        sharers += j != i && p->devices[j].kind == d->kind && p->devices[j].index == d->index;
      }
    }
    sn_device_desc_init(d->kind, d->index, d->part, mine, d);
    d->memory_bytes /= (uint64_t)sharers;
    if (p->caps[i] > 0) d->memory_bytes = p->caps[i];
    if (d->part >= 0) {
      d->flops_per_s /= sharers;
      d->bf16_flops_per_s /= sharers;
      d->bytes_per_s /= sharers;
    }
  }
}

sn_status sn_topology_parse(const char *list, int threads, sn_topology **out_topology) {
  if (threads < 0 || threads > SN__TEAM_MOST_THREADS) {
    return sn_status_make(SN_CODE_CONFIG,
                          "%d threads: give a number from 1 to %d, or 0 for all CPUs", threads,
                          SN__TEAM_MOST_THREADS);
  }
  parser *p = sn__calloc(1, sizeof *p);
  if (p == NULL) return sn_status_out_of_memory();
  p->list = p->at = list;
  sn_status status = SN_OK;
  for (;;) {
    status = parse_item(p);
    p->at += item_length(p->at);
    if (status != SN_OK || *p->at == '\0') break;
    p->at++;
  }
  if (status == SN_OK) {
    share_out(p, threads > 0 ? threads : sn__cpu_count());
    status = sn_topology_create(p->devices, p->n, out_topology);
  }
  sn__free(p);
  return status;
}
