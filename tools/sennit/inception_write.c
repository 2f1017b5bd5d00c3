/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/inception_write.h"

#include "tools/sennit/bench_write.h"
#include "tools/sennit/inception_work.h"

static sn_status write_data(const char *path, const void *sizes, int64_t rows) {
  const sn_inception_sizes *s = sizes;
  inception_work w;
  SN_TRY(inception_work_make(NULL, s, rows, 0, &w));
  h5_out *f = NULL;
  sn_status status = h5_out_create(path, &f);
  if (status == SN_OK)
    status =
        h5_out_tensor(f, "/image", SN_F32, SN_SHAPE(rows, s->side, s->side, s->channels), w.image);
  if (status == SN_OK) status = h5_out_tensor(f, "/outcome", SN_I64, SN_SHAPE(rows), w.outcome);
  if (status == SN_OK) status = h5_out_finish(f);
  h5_out_free(f);
  inception_work_free(&w);
  return status;
}

static void put_model(FILE *f, const void *sizes) {
  const sn_inception_sizes *s = sizes;
  fprintf(f,
          "# Inception, size %s: the work of `sennit bench inception --size %s` as a model file.\n"
          "inputs:\n"
          "  image: {kind: image, path: /image, encoder: inception, stem: %lld, reduce: %lld,\n"
          "          filters: [",
          s->name, s->name, (long long)s->stem, (long long)s->reduce);
  for (int64_t i = 0; i < s->blocks; i++)
    fprintf(f, "%s%lld", i > 0 ? ", " : "", (long long)s->filters);
  fprintf(f, "], max_pool: [1], pool: mean, normalize: none}\n");
  bench_write_outcome(f, s->classes);
  fprintf(f, "train: {optimizer: adam, learning_rate: 0.001, batch: %lld, epochs: 3}\n",
          (long long)s->batch);
}

sn_status inception_write(const char *folder, const sn_inception_sizes *s, int64_t batches) {
  static const bench_writer writer = {write_data, put_model};
  return bench_write(folder, &writer, s, batches * s->batch);
}
