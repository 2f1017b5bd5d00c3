/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/inception_write.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "tools/sennit/h5_out.h"
#include "tools/sennit/inception_work.h"

static sn_status write_data(const char *path, const sn_inception_sizes *s, int64_t rows) {
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

/* Every class is named, so that the head has all of them whatever rows were drawn. */
static void put_model(FILE *f, const sn_inception_sizes *s) {
  fprintf(f,
          "# Inception, size %s: the work of `sennit bench inception --size %s` as a model file.\n"
          "inputs:\n"
          "  image: {kind: image, path: /image, encoder: inception, stem: %lld, reduce: %lld,\n"
          "          filters: [",
          s->name, s->name, (long long)s->stem, (long long)s->reduce);
  for (int64_t i = 0; i < s->blocks; i++)
    fprintf(f, "%s%lld", i > 0 ? ", " : "", (long long)s->filters);
  fprintf(f, "], max_pool: [1], pool: mean, normalize: none}\n"
             "outputs:\n  outcome:\n    path: /outcome\n    task: classification\n    labels: [");
  for (int64_t k = 0; k < s->classes; k++)
    fprintf(f, "%s%s%lld", k > 0 ? "," : "",
            k == 0        ? ""
            : k % 20 == 0 ? "\n             "
                          : " ",
            (long long)k);
  fprintf(f, "]\ntrain: {optimizer: adam, learning_rate: 0.001, batch: %lld, epochs: 3}\n",
          (long long)s->batch);
}

static sn_status write_model(const char *path, const sn_inception_sizes *s) {
  FILE *f = fopen(path, "w");
  if (f == NULL) return sn_status_make(SN_CODE_IO, "%s: cannot write: %s", path, strerror(errno));
  put_model(f, s);
  bool wrote = ferror(f) == 0;
  wrote = fclose(f) == 0 && wrote;
  return wrote ? SN_OK : sn_status_make(SN_CODE_IO, "%s: cannot write: %s", path, strerror(errno));
}

sn_status inception_write(const char *folder, const sn_inception_sizes *s, int64_t batches) {
  if (mkdir(folder, 0777) != 0 && errno != EEXIST)
    return sn_status_make(SN_CODE_IO, "%s: cannot make the folder: %s", folder, strerror(errno));
  char *data = sn__format("%s/data.h5", folder), *model = sn__format("%s/model.yaml", folder);
  sn_status status = data == NULL || model == NULL ? sn_status_out_of_memory()
                                                   : write_data(data, s, batches * s->batch);
  if (status == SN_OK) status = write_model(model, s);
  sn__free(data);
  sn__free(model);
  return status;
}
