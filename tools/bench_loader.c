/* SPDX-License-Identifier: Apache-2.0 */
/* How fast a loader hands out batches, against one thread that only decodes the same chunks.
 *
 *   bench_loader FILE [--path /x] [--label /y] [--threads N] [--batch N] [--epochs N] [--memory
 * MiB]
 *                [--no-shuffle]
 *
 * Prints one JSON object. `rows_per_s` is of the first epoch, with everything read and decoded;
 * `again_rows_per_s` of the later ones. `decode_ratio` is the loader's decoding rate over the one
 * thread's, to be held against --threads, which counts the caller too; `cpu_ratio` is the same in
 * processor time. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "io/dataset.h"
#include "io/h5_column.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of all threads: says what a busy machine's clock cannot. */
static double cpu_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void need(sn_status s) {
  if (s == SN_OK) return;
  fprintf(stderr, "bench_loader: %s\n", sn_status_message(s));
  exit(sn_code_exit(sn_status_code(s)));
}

/* Seconds in which one thread decodes every chunk of a dataset, nothing else; the best of three. */
static double decode_alone(const char *file, const char *path, double *out_bytes, double *out_cpu) {
  sn__h5_file *f = NULL;
  sn__h5_column *c = NULL;
  need(sn__h5_file_open(file, NULL, &f));
  need(sn__h5_column_open(f, path, &c));
  const sn__h5_column_info *info = sn__h5_column_info_of(c);
  int64_t row0, row1;
  sn__h5_column_band(c, 0, &row0, &row1);
  size_t item = info->item_bytes > 8 ? info->item_bytes : 8;
  void *out = sn__alloc((size_t)((row1 - row0) * info->width) * item);
  double best = 1e300, best_cpu = 1e300;
  for (int i = 0; i < 3 && out != NULL; ++i) {
    sn__h5_reader *r = NULL;
    need(sn__h5_reader_create(0, &r));
    double t = now(), cpu = cpu_now();
    for (int64_t b = 0; b < info->bands; ++b)
      for (int64_t p = 0; p < info->parts; ++p)
        need(sn__h5_column_read_part(c, r, b, p, SN_DTYPE_NONE, out));
    t = now() - t;
    cpu = cpu_now() - cpu;
    if (t < best) best = t;
    if (cpu < best_cpu) best_cpu = cpu;
    sn__h5_reader_free(r);
  }
  *out_cpu = best_cpu;
  *out_bytes = (double)info->rows * (double)info->width * (double)info->item_bytes;
  sn__free(out);
  sn__h5_column_free(c);
  sn__h5_file_free(f);
  return best;
}

static double epoch(sn_loader *l, int64_t number, int64_t *rows) {
  double t = now();
  *rows = 0;
  need(sn_loader_start(l, number, 0));
  for (const sn_batch *b;;) {
    need(sn_loader_next(l, &b));
    if (b == NULL) return now() - t;
    *rows += b->rows;
  }
}

static const char *option(int argc, char **argv, const char *name, const char *otherwise) {
  for (int i = 2; i + 1 < argc; ++i)
    if (strcmp(argv[i], name) == 0) return argv[i + 1];
  return otherwise;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: bench_loader FILE [--path /x] [--label /y] [--threads N] [--batch N] "
                    "[--epochs N] [--memory MiB] [--no-shuffle]\n");
    return 2;
  }
  const char *file = argv[1], *path = option(argc, argv, "--path", "/x");
  const char *label = option(argc, argv, "--label", "/y");
  int threads = atoi(option(argc, argv, "--threads", "2")),
      epochs = atoi(option(argc, argv, "--epochs", "3"));
  bool shuffle = true;
  for (int i = 2; i < argc; ++i)
    shuffle &= strcmp(argv[i], "--no-shuffle") != 0;
  const sn_field fields[] = {
      {.name = "x", .path = path, .dtype = SN_F32, .normalize = true},
      {.name = "y", .path = label, .role = SN_FIELD_CLASS, .dtype = SN_I32},
  };
  const sn_field target = {.name = "y", .path = label, .role = SN_FIELD_TARGET, .dtype = SN_F32};
  sn_dataset *d = NULL;
  sn_preparation *p = NULL;
  double t = now();
  sn_status s = sn_dataset_open(&file, 1, fields, 2, &d);
  if (s != SN_OK) {
    sn_status_free(s);
    const sn_field regression[] = {fields[0], target};
    need(sn_dataset_open(&file, 1, regression, 2, &d));
  }
  double open_s = now() - t;
  t = now();
  need(sn_preparation_fit(d, NULL, 0, &p));
  double fit_s = now() - t;
  t = now();
  need(sn_dataset_check(d, p, NULL, NULL));
  double check_s = now() - t, bytes, first = 1e300, again = 1e300, cpu = 1e300;
  int64_t rows = 0;
  for (int k = 0; k < 3; ++k) { /* a loader of its own decodes anew */
    sn_loader_options o = {.struct_size = sizeof o,
                           .batch = atoi(option(argc, argv, "--batch", "128")),
                           .shuffle = shuffle,
                           .seed = 1,
                           .threads = threads > 1 ? threads - 1 : -1,
                           .memory = (size_t)atoi(option(argc, argv, "--memory", "256")) << 20};
    sn_loader *l = NULL;
    need(sn_loader_create(d, p, NULL, 0, &o, &l));
    double c = cpu_now(), e = epoch(l, 0, &rows);
    c = cpu_now() - c;
    if (c < cpu) cpu = c;
    if (e < first) first = e;
    for (int i = 1; i < epochs; ++i) {
      e = epoch(l, i, &rows);
      if (e < again) again = e;
    }
    sn_loader_free(l);
  }
  double label_bytes, alone_cpu, label_cpu, alone = decode_alone(file, path, &bytes, &alone_cpu);
  alone += decode_alone(file, label, &label_bytes, &label_cpu);
  alone_cpu += label_cpu;
  bytes += label_bytes;
  printf("{\"rows\": %" PRId64
         ", \"threads\": %d, \"rows_per_s\": %.0f, \"again_rows_per_s\": %.0f, "
         "\"mb_per_s\": %.0f, \"decode_alone_mb_per_s\": %.0f, \"decode_ratio\": %.3f, "
         "\"cpu_ratio\": %.3f, "
         "\"open_s\": %.4f, \"fit_s\": %.4f, \"check_s\": %.4f}\n",
         rows, threads, (double)rows / first, (double)rows / again, bytes / first / 1e6,
         bytes / alone / 1e6, alone / first, alone_cpu / cpu, open_s, fit_s, check_s);
  sn_preparation_free(p);
  sn_dataset_free(d);
  return 0;
}
