/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: our layer over the scan's report. The input is u32 length, that many bytes of a
 * hostile child's report, and the file that its addresses point into: the report is parsed, and
 * every column that it describes is opened and read, filters included.
 *
 * Seeds: tests/io/reports/, made by tests/io/make_reports.py. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/alloc.h"
#include "io/h5_column_impl.h"
#include "io/h5_inspect.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

const char *const sn__fuzz_words[] = {SN__WIRE_MAGIC, "/x", "f32", NULL};

#define MOST_ROWS     256
#define MOST_ELEMENTS 65536
#define MOST_CHUNK    ((size_t)1 << 20)

static void read_column(const sn__h5_column *c, sn__h5_reader *reader) {
  static double out[MOST_ELEMENTS];
  const sn__h5_column_info *info = sn__h5_column_info_of(c);
  const sn__h5_dataset *d = sn__h5_column_dataset(c);
  if (d->chunk_bytes > MOST_CHUNK || info->width > MOST_ELEMENTS) return;
  int64_t rows = info->width > 0 ? MOST_ELEMENTS / info->width : MOST_ROWS;
  if (rows > MOST_ROWS) rows = MOST_ROWS;
  if (rows > info->rows) rows = info->rows;
  if (info->kind == SN__H5_COLUMN_STRING) {
    sn__h5_strings strings = {0};
    if (info->item_bytes <= MOST_CHUNK / MOST_ROWS)
      sn_status_free(sn__h5_column_strings(c, reader, info->rows - rows, rows, &strings));
    sn__h5_strings_clear(&strings);
    return;
  }
  sn_status_free(sn__h5_column_read(c, reader, info->rows - rows, rows, SN_F64, out));
  int64_t some[3] = {info->rows - 1, 0, info->rows / 2};
  if (rows >= 3) sn_status_free(sn__h5_column_gather(c, reader, some, 3, SN_I32, out));
  int64_t row0 = 0, row1 = 0;
  if (info->bands > 0) sn__h5_column_band(c, info->bands - 1, &row0, &row1);
  if (info->bands > 0 && (row1 - row0) <= MOST_ROWS && (row1 - row0) <= rows)
    sn_status_free(
        sn__h5_column_read_part(c, reader, info->bands - 1, info->parts - 1, SN_F32, out));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static int fd = -1;
  setenv("SN_H5SCAN", "/nowhere", 1); /* nothing is to be converted here */
  if (fd < 0) fd = memfd_create("fuzz", MFD_CLOEXEC);
  uint32_t length = 0;
  if (size < sizeof length) return 0;
  memcpy(&length, data, sizeof length);
  if (length > size - sizeof length) length = (uint32_t)(size - sizeof length);
  const uint8_t *bytes = data + sizeof length + length;
  size_t rest = size - sizeof length - length;
  if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, bytes, rest, 0) != (ssize_t)rest) return 0;
  sn__h5_bounds bounds = {.file_size = rest, .shared_size = rest};
  sn__h5_report *report = NULL;
  sn_status s = sn__h5_report_parse(data + sizeof length, length, bounds, &report);
  if (s != SN_OK) {
    sn_status_free(s);
    return 0;
  }
  struct sn__h5_file file = {.path = (char *)"/nowhere/fuzz.h5", .fd = fd, .report = report};
  sn__h5_reader *reader = NULL;
  if (sn__h5_reader_create(MOST_CHUNK, &reader) != SN_OK) abort();
  for (size_t i = 0; i < report->dataset_count && i < 64; ++i) {
    sn__h5_column *c = NULL;
    s = sn__h5_column_open(&file, report->datasets[i].path, &c);
    if (s == SN_OK) read_column(c, reader);
    sn_status_free(s);
    sn__h5_column_free(c);
  }
  sn__h5_reader_free(reader);
  sn__h5_report_free(report);
  return 0;
}
