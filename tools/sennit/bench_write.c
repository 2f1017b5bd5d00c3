/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/bench_write.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"

void bench_write_outcome(FILE *f, int64_t classes) {
  fprintf(f, "outputs:\n  outcome:\n    path: /outcome\n    task: classification\n    labels: [");
  for (int64_t k = 0; k < classes; k++)
    fprintf(f, "%s%s%lld", k > 0 ? "," : "",
            k == 0        ? ""
            : k % 20 == 0 ? "\n             "
                          : " ",
            (long long)k);
  fprintf(f, "]\n");
}

static sn_status write_model(const char *path, const bench_writer *writer, const void *sizes) {
  FILE *f = fopen(path, "w");
  if (f == NULL) return sn_status_make(SN_CODE_IO, "%s: cannot write: %s", path, strerror(errno));
  writer->model(f, sizes);
  bool wrote = ferror(f) == 0;
  wrote = fclose(f) == 0 && wrote;
  return wrote ? SN_OK : sn_status_make(SN_CODE_IO, "%s: cannot write: %s", path, strerror(errno));
}

sn_status bench_write(const char *folder, const bench_writer *writer, const void *sizes,
                      int64_t rows) {
  if (mkdir(folder, 0777) != 0 && errno != EEXIST)
    return sn_status_make(SN_CODE_IO, "%s: cannot make the folder: %s", folder, strerror(errno));
  char *data = sn__format("%s/data.h5", folder), *model = sn__format("%s/model.yaml", folder);
  sn_status status =
      data == NULL || model == NULL ? sn_status_out_of_memory() : writer->data(data, sizes, rows);
  if (status == SN_OK) status = write_model(model, writer, sizes);
  sn__free(data);
  sn__free(model);
  return status;
}
