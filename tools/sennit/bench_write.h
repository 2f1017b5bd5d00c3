/* SPDX-License-Identifier: Apache-2.0 */
/* `sennit bench KIND --write FOLDER`: what every kind of work has in common. */
#ifndef SN_TOOLS_SENNIT_BENCH_WRITE_H
#define SN_TOOLS_SENNIT_BENCH_WRITE_H

#include <stdio.h>

#include "core/status.h"
#include "tools/sennit/h5_out.h"

/* `sizes` is the kind's own; `rows` of data at `path`. */
typedef struct bench_writer {
  sn_status (*data)(const char *path, const void *sizes, int64_t rows);
  void (*model)(FILE *f, const void *sizes);
} bench_writer;

/* FOLDER/data.h5 and FOLDER/model.yaml; IO when the folder or a file cannot be made. */
SN_MUST_USE sn_status bench_write(const char *folder, const bench_writer *writer, const void *sizes,
                                  int64_t rows);

/* The output `outcome` of a model file. Every class is named, so that the head has all of them
 * whatever rows were drawn. */
void bench_write_outcome(FILE *f, int64_t classes);

#endif
