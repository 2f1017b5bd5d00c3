/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/gather_rows/gather_rows.h"

#include <string.h>

sn_status sn__check_indices(const sn__exec *e, const sn__tensor *indices, int64_t rows) {
  const int64_t n = sn__shape_size(&indices->shape);
  for (int64_t i = 0; i < n; i++) {
    const int64_t k = sn__index_at(indices, i);
    if (k < 0 || k >= rows)
      return sn_status_make(SN_CODE_DATA, "%s: index %lld is %lld but the table has rows 0 to %lld",
                            e->op != NULL ? e->op->name : "gather_rows", (long long)i, (long long)k,
                            (long long)(rows - 1));
  }
  return SN_OK;
}

typedef struct gather_job {
  const char *table;
  char *out;
  const sn__tensor *indices;
  size_t bytes;
} gather_job;

static void gather_task(void *arg, int64_t begin, int64_t end) {
  const gather_job *job = arg;
  for (int64_t i = begin; i < end; i++)
    memcpy(job->out + (size_t)i * job->bytes,
           job->table + (size_t)sn__index_at(job->indices, i) * job->bytes, job->bytes);
}

sn_status sn__gather_rows_cpu(const sn__exec *e) {
  const sn_shape *table = &e->in[0].shape;
  const sn__tensor *indices = &e->in[1];
  SN_TRY(sn__check_indices(e, indices, table->dims[0]));
  const size_t bytes =
      (size_t)sn__shape_span(table, 1, table->rank) * sn_dtype_size(e->in[0].dtype);
  if (bytes == 0) return SN_OK;
  gather_job job = {e->in[0].data, e->out[0].data, indices, bytes};
  sn__rows_run(e->team, sn__shape_size(&indices->shape), (int64_t)(bytes / sizeof(float)),
               gather_task, &job);
  return SN_OK;
}
