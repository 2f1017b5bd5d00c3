/* SPDX-License-Identifier: Apache-2.0 */
/* Every public file under ../shared/data: none crashes, hangs or leaks; what h5py reads, we read to
 * the bit (golden.tsv, made by make_golden.py). */
#include <dirent.h>
#include <math.h>
#include <time.h>
#include <zlib.h>

#include "h5_make.h"

#define MOST 1000000

static const char *data_folder(void) {
  static char folder[1024];
  const char *shared = getenv("SN_SHARED");
  snprintf(folder, sizeof folder, "%s/data", shared != NULL ? shared : "../shared");
  return access(folder, R_OK) == 0 ? folder : NULL;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One line, with the file's name and no control characters. */
static void check_message(const char *message, const char *path) {
  ck_assert_msg(strstr(message, path) != NULL, "'%s' does not name %s", message, path);
  ck_assert_msg(strchr(message, '\n') == NULL && strlen(message) > strlen(path) + 10, "'%s'",
                message);
}

static unsigned long crc_of(unsigned long crc, const void *bytes, size_t size) {
  return crc32_z(crc, bytes, size);
}

/* ---- the same bytes as make_golden.py makes ------------------------------------------------ */

static unsigned long crc_numbers(const sn__h5_column *c, sn__h5_reader *r, int64_t rows, char form,
                                 unsigned long crc) {
  const sn__h5_column_info *info = sn__h5_column_info_of(c);
  size_t count = (size_t)(rows * info->width);
  if (form == 'i' && info->stored == SN__H5_U64) { /* wraps in the table, is an error in ours */
    double *values = malloc((count + 1) * sizeof *values);
    ck_sn_ok(sn__h5_column_read(c, r, 0, rows, SN_F64, values));
    for (size_t i = 0; i < count; ++i) {
      uint64_t v = (uint64_t)values[i];
      crc = crc_of(crc, &v, sizeof v);
    }
    free(values);
    return crc;
  }
  if (form == 'i') {
    int64_t *values = malloc((count + 1) * sizeof *values);
    ck_sn_ok(sn__h5_column_read(c, r, 0, rows, SN_I64, values));
    crc = crc_of(crc, values, count * sizeof *values);
    free(values);
    return crc;
  }
  double *values = malloc((count + 1) * sizeof *values);
  ck_sn_ok(sn__h5_column_read(c, r, 0, rows, SN_F64, values));
  for (size_t i = 0; i < count; ++i)
    if (isnan(values[i])) values[i] = (double)NAN;
  crc = crc_of(crc, values, count * sizeof *values);
  free(values);
  return crc;
}

static unsigned long crc_strings(const sn__h5_column *c, sn__h5_reader *r, int64_t rows) {
  sn__h5_strings s = {0};
  unsigned long crc = 0;
  ck_sn_ok(sn__h5_column_strings(c, r, 0, rows, &s));
  for (int64_t i = 0; i < s.count; ++i) {
    crc = crc_of(crc, s.bytes + s.offsets[i], (size_t)(s.offsets[i + 1] - s.offsets[i]));
    crc = crc_of(crc, "", 1);
  }
  sn__h5_strings_clear(&s);
  return crc;
}

static unsigned long crc_ragged(const sn__h5_column *c, sn__h5_reader *r, int64_t rows) {
  const sn__h5_column *values = sn__h5_column_values(c);
  ck_assert_ptr_nonnull(values);
  int64_t count = rows * sn__h5_column_info_of(c)->width;
  int64_t *offsets = malloc((size_t)(count + 1) * sizeof *offsets);
  unsigned long crc = 0;
  ck_sn_ok(sn__h5_column_offsets(c, 0, rows, offsets));
  for (int64_t i = 0; i < count; ++i) {
    int64_t length = offsets[i + 1] - offsets[i];
    crc = crc_of(crc, &length, sizeof length);
  }
  char form = sn__h5_kind_is_float(sn__h5_column_info_of(values)->stored) ? 'f' : 'i';
  crc = crc_numbers(values, r, offsets[count], form, crc);
  free(offsets);
  return crc;
}

/* `file` and `open_name`: the file of the line before, kept open. */
static void check_golden(const char *folder, const char *line, sn__h5_file **file,
                         char *open_name) {
  char name[256], path[512], full[2048];
  char form = 0;
  long long elements = 0;
  unsigned long crc = 0, got = 0;
  ck_assert_msg(
      sscanf(line, "%255[^\t]\t%511[^\t]\t%c\t%lld\t%lx", name, path, &form, &elements, &crc) == 5,
      "%s", line);
  snprintf(full, sizeof full, "%s/%s", folder, name);
  if (strcmp(name, open_name) != 0) {
    sn__h5_file_free(*file);
    *file = h5_open(full);
    strcpy(open_name, name);
  }
  sn__h5_column *c = h5_column(*file, path);
  sn__h5_reader *r = h5_reader();
  const sn__h5_column_info *info = sn__h5_column_info_of(c);
  int64_t rows = info->rows, most = MOST / (info->width > 0 ? info->width : 1);
  if (rows > most) rows = most;
  ck_assert_msg(rows * info->width == elements, "%s", line);
  if (form == 's')
    got = crc_strings(c, r, rows);
  else if (form == 'v')
    got = crc_ragged(c, r, rows);
  else
    got = crc_numbers(c, r, rows, form, 0);
  ck_assert_msg(got == crc, "%s: we read %08lx", line, got);
  sn__h5_reader_free(r);
  sn__h5_column_free(c);
}

START_TEST(test_same_as_h5py) {
  const char *folder = data_folder();
  if (folder == NULL) {
    puts("test_h5_corpus: skipped, no ../shared/data here (SN_SHARED)");
    return;
  }
  FILE *golden = fopen(SN_GOLDEN, "r");
  ck_assert_ptr_nonnull(golden);
  char line[1024], open_name[256] = "";
  sn__h5_file *file = NULL;
  int count = 0;
  for (; fgets(line, sizeof line, golden) != NULL; ++count)
    check_golden(folder, line, &file, open_name);
  ck_assert_int_gt(count, 200);
  sn__h5_file_free(file);
  fclose(golden);
}
END_TEST

/* ---- nothing hurts ------------------------------------------------------------------------- */

/* Opens and reads whatever there is, the way that a check of all data would; counts what was
 * readable. */
static int read_all(const char *path) {
  sn__h5_file *f = NULL;
  sn_status s = sn__h5_file_open_partial(path, NULL, &f);
  if (s != SN_OK) {
    check_message(sn_status_message(s), path);
    sn_status_free(s);
    return 0;
  }
  const sn__h5_report *report = sn__h5_file_report(f);
  if (report->failure != NULL) check_message(report->failure, path);
  sn__h5_reader *r = h5_reader();
  float *out = malloc(65536 * sizeof *out);
  int readable = 0;
  for (size_t i = 0; i < report->dataset_count; ++i) {
    sn__h5_column *c = NULL;
    s = sn__h5_column_open(f, report->datasets[i].path, &c);
    if (s == SN_OK) {
      const sn__h5_column_info *info = sn__h5_column_info_of(c);
      int64_t rows = 65536 / (info->width > 0 ? info->width : 1);
      if (rows > info->rows) rows = info->rows;
      if (info->kind == SN__H5_COLUMN_STRING) {
        sn__h5_strings strings = {0};
        s = sn__h5_column_strings(c, r, 0, rows, &strings);
        sn__h5_strings_clear(&strings);
      } else if (info->kind != SN__H5_COLUMN_RAGGED) {
        s = sn__h5_column_read(c, r, info->rows - rows, rows, SN_F32, out);
      }
    }
    readable += s == SN_OK;
    if (s != SN_OK) check_message(sn_status_message(s), path);
    sn_status_free(s);
    sn__h5_column_free(c);
  }
  free(out);
  sn__h5_reader_free(r);
  sn__h5_file_free(f);
  return readable;
}

static void each_file(const char *folder, int *files, int *readable) {
  DIR *dir = opendir(folder);
  ck_assert_ptr_nonnull(dir);
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    if (e->d_name[0] == '.') continue;
    char path[2048];
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    double begun = now();
    *readable += read_all(path) > 0;
    *files += 1;
    ck_assert_msg(now() - begun < 10, "%s took %.1f s", path, now() - begun);
  }
  closedir(dir);
}

START_TEST(test_every_file_is_survived) {
  const char *folder = data_folder();
  if (folder == NULL) return;
  static const char *const groups[] = {"cve", "hdfgroup", "hostile", "odd", "train", "sets", "seq"};
  int files = 0, readable = 0;
  for (size_t i = 0; i < sizeof groups / sizeof *groups; ++i) {
    char path[1200];
    snprintf(path, sizeof path, "%s/%s", folder, groups[i]);
    each_file(path, &files, &readable);
  }
  ck_assert_int_ge(files, 90);
  ck_assert_int_ge(readable, 45);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("h5_corpus");
  TCase *t = tcase_create("corpus");
  tcase_set_timeout(t, 280);
  tcase_add_test(t, test_same_as_h5py);
  tcase_add_test(t, test_every_file_is_survived);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
