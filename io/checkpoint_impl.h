/* SPDX-License-Identifier: Apache-2.0 */
/* What checkpoint.c and safetensors.c share (internal). */
#ifndef SN_IO_CHECKPOINT_IMPL_H
#define SN_IO_CHECKPOINT_IMPL_H

#include "core/alloc.h"
#include "io/checkpoint.h"

struct sn_checkpoint {
  sn__arena arena;
  sn_named_tensor *tensors;
  size_t n_tensors, cap_tensors;
  sn_named_text *texts;
  size_t n_texts, cap_texts;
};

/* Adds a tensor with room for its bytes. */
SN_MUST_USE sn_status sn__checkpoint_add(sn_checkpoint *checkpoint, const char *name,
                                         sn_dtype dtype, const sn_shape *shape, void **out_data,
                                         size_t *out_bytes);

/* A safetensors file in memory; messages do not name the file. */
SN_BEGIN_DECLS
SN_API SN_MUST_USE sn_status sn__safetensors_parse(const void *bytes, size_t size,
                                                   sn_checkpoint **out_tensors);
SN_END_DECLS

#endif
