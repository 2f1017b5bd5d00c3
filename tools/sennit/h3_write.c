/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/h3_write.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "tools/sennit/h3_work.h"
#include "tools/sennit/h5_out.h"

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

static sn_status write_data(const char *path, const sn_h3_sizes *s, int64_t rows) {
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

/* Every class is named, so that the head has all of them whatever rows were drawn. */
static void put_model(FILE *f, const sn_h3_sizes *s) {
  fprintf(f,
          "# H3, size %s: the work of `sennit bench h3 --size %s` as a model file.\n"
          "inputs:\n"
          "  dense:    {kind: dense, path: /dense, hidden: [%lld, %lld], normalize: none}\n"
          "  sequence: {kind: sequence, path: /sequence, encoder: lstm, units: %lld,\n"
          "             bidirectional: true, pool: mean, normalize: none}\n"
          "  set:      {kind: set, path: /set, encoder: deepsets, phi: [%lld, %lld], pool: mean,\n"
          "             rho: [%lld], normalize: none}\n"
          "outputs:\n"
          "  outcome:\n    path: /outcome\n    task: classification\n    labels: [",
          s->name, s->name, (long long)s->dense_hidden, (long long)s->dense_hidden,
          (long long)s->sequence_units, (long long)s->set_hidden, (long long)s->set_hidden,
          (long long)s->set_hidden);
  for (int64_t k = 0; k < s->classes; k++)
    fprintf(f, "%s%s%lld", k > 0 ? "," : "",
            k == 0        ? ""
            : k % 20 == 0 ? "\n             "
                          : " ",
            (long long)k);
  fprintf(f,
          "]\n"
          "trunk: {hidden: [%lld]}\n"
          "train: {optimizer: adam, learning_rate: 0.001, batch: %lld, epochs: 3}\n",
          (long long)s->trunk, (long long)s->batch);
}

static sn_status write_model(const char *path, const sn_h3_sizes *s) {
  FILE *f = fopen(path, "w");
  if (f == NULL) return sn_status_make(SN_CODE_IO, "%s: cannot write: %s", path, strerror(errno));
  put_model(f, s);
  bool wrote = ferror(f) == 0;
  wrote = fclose(f) == 0 && wrote;
  return wrote ? SN_OK : sn_status_make(SN_CODE_IO, "%s: cannot write: %s", path, strerror(errno));
}

sn_status h3_write(const char *folder, const sn_h3_sizes *s, int64_t batches) {
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
