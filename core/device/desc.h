/* SPDX-License-Identifier: Apache-2.0 */
/* What devices are, without the devices: kinds, rates, memory and the links between them.
 *
 * A topology is plain data, so a plan can be made for machines that are not here. Rates are what a
 * solver compares, not promises: those that sn_topology_parse() fills in are constants per kind and
 * instruction set (core/device/desc.c gives each with its origin); a measured profile may overwrite
 * them at any time before planning. */
#ifndef SN_CORE_DEVICE_DESC_H
#define SN_CORE_DEVICE_DESC_H

#include "core/device/profile.h"

SN_BEGIN_DECLS

/* X(ENUM, name, what it is) */
#define SN_DEVICE_KINDS(X)                                                                         \
  X(CPU, "cpu", "CPU cores with a heap, a worker and a thread team of their own")                  \
  X(CUDA, "cuda", "an NVIDIA GPU, or a part of one")                                               \
  X(NULL, "null", "describes and schedules only: computes nothing")

typedef enum sn_device_kind {
#define SN_X(ENUM, name, words) SN_DEVICE_##ENUM,
  SN_DEVICE_KINDS(SN_X)
#undef SN_X
      SN_DEVICE_KIND_COUNT
} sn_device_kind;

SN_API const char *sn_device_kind_name(sn_device_kind kind); /* "cpu"; "unknown" */
/* Why devices of this kind cannot be used here; NULL when they can. They can still be described. */
SN_API const char *sn_device_kind_absent(sn_device_kind kind);

enum { SN_DEVICE_NAME_SIZE = 32, SN_DEVICES_MOST = 64 };

typedef struct sn_device_desc {
  sn_device_kind kind;
  int index;                      /* of its kind: 1 for "cpu:1" */
  int part;                       /* "cuda:0/1" is part 1 of GPU 0; -1: the whole */
  char name[SN_DEVICE_NAME_SIZE]; /* "cpu:1", "cuda:0/1" */
  uint64_t memory_bytes;          /* what buffers may take; 0: no limit */
  double flops_per_s;             /* f32, all threads together */
  double bytes_per_s;             /* memory bandwidth */
  int64_t launch_ns;              /* what one more operation costs, however small */
  int threads;                    /* CPU devices: the worker and its helpers; else 1 */
  double bf16_flops_per_s;        /* products of bf16 (sn_graph_set_precision); 0: as f32 */
} sn_device_desc;

typedef enum sn_link_path {
  SN_LINK_DIRECT, /* one copy */
  SN_LINK_STAGED  /* through host memory: two copies */
} sn_link_path;

typedef struct sn_link_desc {
  int from, to; /* device indices in the topology */
  int64_t latency_ns;
  double bytes_per_s;
  sn_link_path path;
} sn_link_desc;

/* Owns its arrays. The rates may be changed in place before the topology is planned with. */
typedef struct sn_topology {
  int n_devices;
  sn_device_desc *devices;
  sn_link_desc *links; /* [n_devices * n_devices], row = from; the diagonal is free */
  sn_profile *profile; /* measured costs; NULL: rates alone. Set by sn_topology_set_profile() */
} sn_topology;

/* Fills in what `kind` usually has: name from index and part, rates from the kind's constants for
 * `threads` threads (at least 1; read for CPU and null), memory of this machine's RAM (CPU) or a
 * constant. */
SN_API void sn_device_desc_init(sn_device_kind kind, int index, int part, int threads,
                                sn_device_desc *out_desc);

/* A topology of copies of `devices`, links filled with the constants of each pair of kinds. Needs
 * 1..SN_DEVICES_MOST devices with different names, positive rates and at least one thread. */
SN_API SN_MUST_USE sn_status sn_topology_create(const sn_device_desc *devices, int n_devices,
                                                sn_topology **out_topology);

/* Reads a device list: items with commas between, each `kind:index`, `cuda:index/part` or
 * `kind*count` (that many from index 0), each with `=size` behind it where its memory is to be
 * capped
 * ("cpu*2=64MiB"; B, kB, MB, GB, TB, KiB, MiB, GiB, TiB): plans keep under the cap, and what would
 * go over it is refused. "cpu" alone is "cpu:0". `threads` in all (0: one for each
 * CPU that the process may use) are shared out over the CPU devices, at least one each, earlier
 * ones first. CONFIG: an unknown kind, a bad number, a device named twice, a kind that is not here
 * (and why). */
SN_API SN_MUST_USE sn_status sn_topology_parse(const char *list, int threads,
                                               sn_topology **out_topology);

/* The caller's own, with whatever rates it has by now. */
SN_API SN_MUST_USE sn_status sn_topology_copy(const sn_topology *topology,
                                              sn_topology **out_topology);
SN_API void sn_topology_free(sn_topology *topology);
/* From here on costs come from this profile as far as it reaches; shared, NULL takes it off. */
SN_API void sn_topology_set_profile(sn_topology *topology, sn_profile *profile);

/* Index of the device with this name, or -1. */
SN_API int sn_topology_find(const sn_topology *topology, const char *name);
/* How copies go from one device to another (indices in the topology); borrowed. */
SN_API const sn_link_desc *sn_topology_link(const sn_topology *topology, int from, int to);
/* Nanoseconds that a copy takes over this link, alone on it: latency + bytes / rate; 0 if from ==
 * to. */
SN_API int64_t sn_topology_copy_ns(const sn_topology *topology, int from, int to, uint64_t bytes);

SN_END_DECLS

#endif
