/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/h3_write.h"

#include "tools/sennit/bench_write.h"
#include "tools/sennit/h3_work.h"

static sn_shape matrix(int64_t rows, int64_t columns) {
  int64_t dims[] = {rows, columns};
  return sn_shape_make(columns > 0 ? 2 : 1, dims);
}

static sn_status put(h5_out *f, const h3_work *w, const sn_h3_sizes *s) {
  SN_TRY(h5_out_tensor(f, "/dense", SN_F32, matrix(w->rows, s->dense_in), w->dense));
  int64_t n = w->sequence_offsets[w->rows];
  SN_TRY(h5_out_tensor(f, "/sequence/values", SN_F32, matrix(n, s->sequence_in), w->sequence));
  SN_TRY(
      h5_out_tensor(f, "/sequence/offsets", SN_I64, matrix(w->rows + 1, 0), w->sequence_offsets));
  n = w->set_offsets[w->rows];
  SN_TRY(h5_out_tensor(f, "/set/values", SN_F32, matrix(n, s->set_in), w->set));
  SN_TRY(h5_out_tensor(f, "/set/offsets", SN_I64, matrix(w->rows + 1, 0), w->set_offsets));
  return h5_out_tensor(f, "/outcome", SN_I64, matrix(w->rows, 0), w->outcome);
}

static sn_status write_data(const char *path, const void *sizes, int64_t rows) {
  const sn_h3_sizes *s = sizes;
  h3_work w;
  SN_TRY(h3_work_make(NULL, s, rows, 0, &w));
  h5_out *f = NULL;
  sn_status status = h5_out_create(path, &f);
  if (status == SN_OK) status = put(f, &w, s);
  if (status == SN_OK) status = h5_out_finish(f);
  h5_out_free(f);
  h3_work_free(&w);
  return status;
}

static void put_model(FILE *f, const void *sizes) {
  const sn_h3_sizes *s = sizes;
  fprintf(f,
          "# H3, size %s: the work of `sennit bench h3 --size %s` as a model file.\n"
          "inputs:\n"
          "  dense:    {kind: dense, path: /dense, hidden: [%lld, %lld], normalize: none}\n"
          "  sequence: {kind: sequence, path: /sequence, encoder: lstm, units: %lld,\n"
          "             bidirectional: true, pool: mean, normalize: none}\n"
          "  set:      {kind: set, path: /set, encoder: deepsets, phi: [%lld, %lld], pool: mean,\n"
          "             rho: [%lld], normalize: none}\n",
          s->name, s->name, (long long)s->dense_hidden, (long long)s->dense_hidden,
          (long long)s->sequence_units, (long long)s->set_hidden, (long long)s->set_hidden,
          (long long)s->set_hidden);
  bench_write_outcome(f, s->classes);
  fprintf(f,
          "trunk: {hidden: [%lld]}\n"
          "train: {optimizer: adam, learning_rate: 0.001, batch: %lld, epochs: 3}\n",
          (long long)s->trunk, (long long)s->batch);
}

sn_status h3_write(const char *folder, const sn_h3_sizes *s, int64_t batches) {
  static const bench_writer writer = {write_data, put_model};
  return bench_write(folder, &writer, s, batches * s->batch);
}
