/* SPDX-License-Identifier: Apache-2.0 */
/* How fast a loader hands out batches, against one thread that only decodes the same chunks.
 *
 *   bench_loader FILE [--path /x] [--label /y] [--threads N] [--batch N] [--epochs N]
 *                [--memory MiB] [--rounds N] [--no-shuffle]
 *
 * A round is the one thread, then a new loader's epochs; prints medians over the rounds as one JSON
 * object. `rows_per_s` is of the first epoch, with everything read and decoded; `again_rows_per_s`
 * of the best later one. `decode_ratio` is the loader's decoding rate over the one thread's of the
 * same round, to be held against --threads, which counts the caller too, with the least and most of
 * any round beside it; `cpu_ratio` is the same in processor time. */
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

typedef struct alone {
  sn__h5_file *file;
  sn__h5_column *column;
  void *out; /* of one band */
  double bytes;
} alone;

static void alone_open(const char *file, const char *path, alone *a) {
  need(sn__h5_file_open(file, NULL, &a->file));
  need(sn__h5_column_open(a->file, path, &a->column));
  const sn__h5_column_info *info = sn__h5_column_info_of(a->column);
  int64_t row0, row1;
  sn__h5_column_band(a->column, 0, &row0, &row1);
  size_t item = info->item_bytes > 8 ? info->item_bytes : 8;
  a->out = sn__alloc((size_t)((row1 - row0) * info->width) * item);
  need(a->out == NULL ? sn_status_out_of_memory() : SN_OK);
  a->bytes = (double)info->rows * (double)info->width * (double)info->item_bytes;
}

static void alone_close(alone *a) {
  sn__free(a->out);
  sn__h5_column_free(a->column);
  sn__h5_file_free(a->file);
}

/* Seconds in which one thread decodes every chunk of a dataset, nothing else. */
static double alone_run(const alone *a) {
  const sn__h5_column_info *info = sn__h5_column_info_of(a->column);
  sn__h5_reader *r = NULL;
  need(sn__h5_reader_create(0, &r));
  double t = now();
  for (int64_t b = 0; b < info->bands; ++b)
    for (int64_t p = 0; p < info->parts; ++p)
      need(sn__h5_column_read_part(a->column, r, b, p, SN_DTYPE_NONE, a->out));
  t = now() - t;
  sn__h5_reader_free(r);
  return t;
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

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

enum { MOST_ROUNDS = 1001 };

/* Of [count] numbers, which are sorted: the middle, or with `share` 0 and 1 the ends. */
static double at_share(double *values, int count, double share) {
  qsort(values, (size_t)count, sizeof *values, by_value);
  return values[(int)(share * (count - 1) + 0.5)];
}

typedef struct rounds {
  int count;
  int64_t rows;
  double bytes;
  double first[MOST_ROUNDS], again[MOST_ROUNDS], alone[MOST_ROUNDS], ratio[MOST_ROUNDS],
      cpu_ratio[MOST_ROUNDS];
} rounds;

/* The two in turns, so that what else the machine does meets both. */
static void run_rounds(const sn_dataset *d, const sn_preparation *p, const sn_loader_options *o,
                       int epochs, const alone fields[2], rounds *out) {
  for (int k = 0; k < out->count; ++k) { /* a loader of its own decodes anew */
    sn_loader *l = NULL;
    double cpu = cpu_now();
    double decoding = alone_run(&fields[0]) + alone_run(&fields[1]), decoding_cpu = cpu_now() - cpu;
    need(sn_loader_create(d, p, NULL, 0, o, &l));
    cpu = cpu_now();
    double first = epoch(l, 0, &out->rows);
    cpu = cpu_now() - cpu;
    double again = 1e300;
    for (int i = 1; i < epochs; ++i) {
      double e = epoch(l, i, &out->rows);
      if (e < again) again = e;
    }
    sn_loader_free(l);
    out->first[k] = first;
    out->again[k] = again;
    out->alone[k] = decoding;
    out->ratio[k] = decoding / first;
    out->cpu_ratio[k] = decoding_cpu / cpu;
  }
}

static void print_rounds(rounds *r, int threads, double open_s, double fit_s, double check_s) {
  int n = r->count;
  double first = at_share(r->first, n, 0.5), again = at_share(r->again, n, 0.5);
  double decoding = at_share(r->alone, n, 0.5), low = at_share(r->ratio, n, 0);
  printf("{\"rows\": %" PRId64 ", \"threads\": %d, \"rounds\": %d, \"rows_per_s\": %.0f, "
         "\"again_rows_per_s\": %.0f, \"mb_per_s\": %.0f, \"decode_alone_mb_per_s\": %.0f, "
         "\"decode_ratio\": %.3f, \"decode_ratio_least\": %.3f, \"decode_ratio_most\": %.3f, "
         "\"cpu_ratio\": %.3f, \"open_s\": %.4f, \"fit_s\": %.4f, \"check_s\": %.4f}\n",
         r->rows, threads, n, (double)r->rows / first, (double)r->rows / again,
         r->bytes / first / 1e6, r->bytes / decoding / 1e6, at_share(r->ratio, n, 0.5), low,
         at_share(r->ratio, n, 1), at_share(r->cpu_ratio, n, 0.5), open_s, fit_s, check_s);
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: bench_loader FILE [--path /x] [--label /y] [--threads N] [--batch N] "
                    "[--epochs N] [--memory MiB] [--rounds N] [--no-shuffle]\n");
    return 2;
  }
  const char *file = argv[1], *path = option(argc, argv, "--path", "/x");
  const char *label = option(argc, argv, "--label", "/y");
  int threads = atoi(option(argc, argv, "--threads", "2")),
      epochs = atoi(option(argc, argv, "--epochs", "2"));
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
  double check_s = now() - t;
  sn_loader_options o = {.struct_size = sizeof o,
                         .batch = atoi(option(argc, argv, "--batch", "128")),
                         .shuffle = shuffle,
                         .seed = 1,
                         .threads = threads > 1 ? threads - 1 : -1,
                         .memory = (size_t)atoi(option(argc, argv, "--memory", "256")) << 20};
  static rounds r;
  int count = atoi(option(argc, argv, "--rounds", "21"));
  r.count = count < 1 ? 1 : count > MOST_ROUNDS ? MOST_ROUNDS : count;
  alone alones[2];
  alone_open(file, path, &alones[0]);
  alone_open(file, label, &alones[1]);
  r.bytes = alones[0].bytes + alones[1].bytes;
  run_rounds(d, p, &o, epochs, alones, &r);
  print_rounds(&r, threads, open_s, fit_s, check_s);
  alone_close(&alones[0]);
  alone_close(&alones[1]);
  sn_preparation_free(p);
  sn_dataset_free(d);
  return 0;
}
