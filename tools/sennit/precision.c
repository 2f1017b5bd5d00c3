/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/precision.h"

#include <stdio.h>

const char *const precision_words[] = {"f32", "bf16", "fp16", NULL};

sn_status precision_check(sn_config_precision precision) {
  if (precision != SN_CONFIG_PRECISION_FP16) return SN_OK;
  return sn_status_make(SN_CODE_CONFIG,
                        "precision fp16: no device here computes it; use bf16, which has the range "
                        "of f32, so that nothing needs scaling");
}

void precision_set(sn_graph *graph, sn_config_precision precision) {
  sn_graph_set_precision(graph, precision == SN_CONFIG_PRECISION_BF16 ? SN_PRECISION_BF16
                                                                      : SN_PRECISION_F32);
}

void precision_note(const sn_graph *graph, const sn_topology *topology) {
  if (sn_graph_precision(graph) != SN_PRECISION_BF16) return;
  for (int i = 0; i < topology->n_devices; i++) {
    const sn_device_desc *d = &topology->devices[i];
    if (d->bf16_flops_per_s <= 0 || d->bf16_flops_per_s > d->flops_per_s) continue;
    fprintf(stderr,
            "note: %s has no AMX_BF16 for products of bf16: they are rounded alike by other "
            "instructions, and slower than f32\n",
            d->name);
    return;
  }
}
