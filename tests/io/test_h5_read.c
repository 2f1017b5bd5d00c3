/* SPDX-License-Identifier: Apache-2.0 */
/* Every layout, filter, byte order and number type that we decode, against what was written. */
#include <math.h>

#include "h5_make.h"

#define ROWS  37
#define WIDTH 10

static int64_t value(int64_t row, int64_t column) {
  return (row * 7 + column * 3) % 100;
}

static void fill(int64_t *data) {
  for (int64_t i = 0; i < ROWS; ++i)
    for (int64_t j = 0; j < WIDTH; ++j)
      data[i * WIDTH + j] = value(i, j);
}

/* Whole, a range, a list of rows and by parts: each equals what was written. */
static void check_column(const sn__h5_file *f, const char *path) {
  sn__h5_column *c = h5_column(f, path);
  sn__h5_reader *r = h5_reader();
  const sn__h5_column_info *info = sn__h5_column_info_of(c);
  ck_assert_int_eq(info->rows, ROWS);
  ck_assert_int_eq(info->width, WIDTH);
  float all[ROWS * WIDTH], some[12 * WIDTH];
  ck_sn_ok(sn__h5_column_read(c, r, 0, ROWS, SN_F32, all));
  for (int64_t i = 0; i < ROWS; ++i)
    for (int64_t j = 0; j < WIDTH; ++j)
      ck_assert_msg(all[i * WIDTH + j] == (float)value(i, j), "%s: row %d column %d is %g", path,
                    (int)i, (int)j, (double)all[i * WIDTH + j]);
  ck_sn_ok(sn__h5_column_read(c, r, 5, 12, SN_F32, some));
  ck_assert_mem_eq(some, all + (size_t)5 * WIDTH, sizeof some);
  const int64_t rows[] = {36, 0, 5, 6, 7, 7, 30, 1, 2, 35, 11, 0};
  int32_t integers[12 * WIDTH];
  ck_sn_ok(sn__h5_column_gather(c, r, rows, 12, SN_I32, integers));
  for (int64_t i = 0; i < 12; ++i)
    for (int64_t j = 0; j < WIDTH; ++j)
      ck_assert_int_eq(integers[i * WIDTH + j], value(rows[i], j));
  for (int64_t band = 0; band < info->bands; ++band) {
    int64_t row0, row1;
    sn__h5_column_band(c, band, &row0, &row1);
    float part[ROWS * WIDTH];
    memset(part, 0xff, sizeof part);
    for (int64_t p = info->parts - 1; p >= 0; --p)
      ck_sn_ok(sn__h5_column_read_part(c, r, band, p, SN_F32, part));
    ck_assert_mem_eq(part, all + row0 * WIDTH, (size_t)(row1 - row0) * WIDTH * sizeof *part);
  }
  sn__h5_reader_free(r);
  sn__h5_column_free(c);
}

static hid_t chunked(hsize_t a, hsize_t b) {
  hid_t p = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t chunk[] = {a, b};
  H5Pset_chunk(p, 2, chunk);
  return p;
}

START_TEST(test_layouts_and_filters) {
  const char *path = h5_make_path("layouts");
  int64_t data[ROWS * WIDTH];
  const hsize_t dims[] = {ROWS, WIDTH};
  fill(data);
  hid_t f = h5_make_file(path), p;
  h5_make(f, "contiguous", H5T_IEEE_F32LE, H5T_NATIVE_INT64, 2, dims, H5P_DEFAULT, data);
  p = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_layout(p, H5D_COMPACT);
  h5_make(f, "compact", H5T_IEEE_F64BE, H5T_NATIVE_INT64, 2, dims, p, data);
  H5Pclose(p);
  /* Chunks: whole rows, columns, both with edges, one chunk. */
  static const hsize_t shapes[][2] = {{8, 10}, {8, 3}, {37, 1}, {37, 10}, {1, 10}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i)
    for (int filters = 0; filters < 6; ++filters) {
      char name[64];
      snprintf(name, sizeof name, "chunks%zu_%d", i, filters);
      p = chunked(shapes[i][0], shapes[i][1]);
      if (filters == 1 || filters == 4) H5Pset_shuffle(p);
      if (filters >= 2 && filters != 5) H5Pset_deflate(p, 4);
      if (filters == 3 || filters == 4) H5Pset_fletcher32(p);
      if (filters == 5) {
        H5Pset_fletcher32(p); /* the checksum first, so inside the gzip */
        H5Pset_deflate(p, 4);
      }
      h5_make(f, name, H5T_STD_I32LE, H5T_NATIVE_INT64, 2, dims, p, data);
      H5Pclose(p);
    }
  H5Fclose(f);
  sn__h5_file *file = h5_open(path);
  const sn__h5_report *report = sn__h5_file_report(file);
  ck_assert_uint_eq(report->dataset_count, 32);
  for (size_t i = 0; i < report->dataset_count; ++i) {
    ck_assert_msg(sn__h5_dataset_foreign(&report->datasets[i]) == NULL, "%s",
                  report->datasets[i].path);
    check_column(file, report->datasets[i].path);
  }
  sn__h5_file_free(file);
  remove(path);
}
END_TEST

START_TEST(test_types_and_orders) {
  const char *path = h5_make_path("types");
  int64_t data[ROWS * WIDTH];
  const hsize_t dims[] = {ROWS, WIDTH};
  fill(data);
  hid_t f = h5_make_file(path);
  const hid_t types[] = {
      H5T_STD_I8LE,  H5T_STD_U8BE,  H5T_STD_I16LE,  H5T_STD_I16BE,  H5T_STD_U16LE,  H5T_STD_U16BE,
      H5T_STD_I32LE, H5T_STD_I32BE, H5T_STD_U32LE,  H5T_STD_U32BE,  H5T_STD_I64LE,  H5T_STD_I64BE,
      H5T_STD_U64LE, H5T_STD_U64BE, H5T_IEEE_F32LE, H5T_IEEE_F32BE, H5T_IEEE_F64LE, H5T_IEEE_F64BE};
  for (size_t i = 0; i < sizeof types / sizeof *types; ++i)
    for (int layout = 0; layout < 2; ++layout) {
      char name[64];
      snprintf(name, sizeof name, "type%zu_%d", i, layout);
      hid_t p = layout == 0 ? H5Pcreate(H5P_DATASET_CREATE) : chunked(9, 4);
      if (layout == 1) H5Pset_shuffle(p);
      h5_make(f, name, types[i], H5T_NATIVE_INT64, 2, dims, p, data);
      H5Pclose(p);
    }
  hid_t half = H5Tcopy(H5T_IEEE_F32LE), brain = H5Tcopy(H5T_IEEE_F32BE);
  H5Tset_fields(half, 15, 10, 5, 0, 10);
  H5Tset_precision(half, 16);
  H5Tset_ebias(half, 15);
  H5Tset_size(half, 2);
  H5Tset_fields(brain, 15, 7, 8, 0, 7);
  H5Tset_precision(brain, 16);
  H5Tset_size(brain, 2);
  h5_make(f, "half", half, H5T_NATIVE_INT64, 2, dims, H5P_DEFAULT, data);
  h5_make(f, "brain", brain, H5T_NATIVE_INT64, 2, dims, H5P_DEFAULT, data);
  H5Tclose(half);
  H5Tclose(brain);
  H5Fclose(f);
  sn__h5_file *file = h5_open(path);
  const sn__h5_report *report = sn__h5_file_report(file);
  ck_assert_uint_eq(report->dataset_count, 38);
  for (size_t i = 0; i < report->dataset_count; ++i) {
    ck_assert_int_ne(report->datasets[i].type.kind, SN__H5_KIND_NONE);
    check_column(file, report->datasets[i].path);
  }
  sn__h5_file_free(file);
  remove(path);
}
END_TEST

START_TEST(test_unwritten_is_the_fill_value) {
  const char *path = h5_make_path("fill");
  hid_t f = h5_make_file(path);
  const hsize_t dims[] = {10, 4};
  const double minus = -3;
  hid_t p = chunked(4, 3);
  H5Pset_fill_value(p, H5T_NATIVE_DOUBLE, &minus);
  h5_make(f, "chunks", H5T_STD_I16BE, 0, 2, dims, p, NULL);
  H5Pclose(p);
  p = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_fill_value(p, H5T_NATIVE_DOUBLE, &minus);
  h5_make(f, "flat", H5T_IEEE_F64BE, 0, 2, dims, p, NULL);
  H5Pclose(p);
  h5_make(f, "zero", H5T_IEEE_F32LE, 0, 2, dims, H5P_DEFAULT, NULL);
  /* One chunk of six written. */
  p = chunked(4, 3);
  H5Pset_fill_value(p, H5T_NATIVE_DOUBLE, &minus);
  H5Pset_deflate(p, 1);
  h5_make(f, "some", H5T_STD_I32LE, 0, 2, dims, p, NULL);
  H5Pclose(p);
  hid_t d = H5Dopen2(f, "some", H5P_DEFAULT), space = H5Dget_space(d);
  const hsize_t start[] = {5, 1}, count[] = {1, 1};
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
  hid_t one = H5Screate(H5S_SCALAR);
  const int nine = 9;
  ck_assert(H5Dwrite(d, H5T_NATIVE_INT, one, space, H5P_DEFAULT, &nine) >= 0);
  H5Sclose(one);
  H5Sclose(space);
  H5Dclose(d);
  H5Fclose(f);
  sn__h5_file *file = h5_open(path);
  sn__h5_reader *r = h5_reader();
  static const char *const names[] = {"chunks", "flat", "zero", "some"};
  for (int k = 0; k < 4; ++k) {
    sn__h5_column *c = h5_column(file, names[k]);
    float out[40];
    ck_sn_ok(sn__h5_column_read(c, r, 0, 10, SN_F32, out));
    for (int i = 0; i < 40; ++i)
      ck_assert_float_eq(out[i], k == 2 ? 0.f : k == 3 && i == 21 ? 9.f : -3.f);
    sn__h5_column_free(c);
  }
  sn__h5_reader_free(r);
  sn__h5_file_free(file);
  remove(path);
}
END_TEST

START_TEST(test_what_does_not_fit_is_named) {
  const char *path = h5_make_path("unfit");
  hid_t f = h5_make_file(path);
  const hsize_t dims[] = {3, 2};
  const double halves[] = {0, 1, 2, 1.5, 3, 4}, big[] = {0, 1, 2, 3, 4, 300};
  const uint64_t huge[] = {0, 1, 2, 3, UINT64_MAX, 5};
  const double wide[] = {0, 1e300, -1e300, 1, 2, 3};
  h5_make(f, "halves", H5T_IEEE_F32LE, H5T_NATIVE_DOUBLE, 2, dims, H5P_DEFAULT, halves);
  h5_make(f, "big", H5T_STD_I16LE, H5T_NATIVE_DOUBLE, 2, dims, H5P_DEFAULT, big);
  h5_make(f, "huge", H5T_STD_U64BE, H5T_NATIVE_UINT64, 2, dims, H5P_DEFAULT, huge);
  h5_make(f, "wide", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 2, dims, H5P_DEFAULT, wide);
  H5Fclose(f);
  sn__h5_file *file = h5_open(path);
  sn__h5_reader *r = h5_reader();
  int64_t out[6];
  float floats[6];
  sn__h5_column *c = h5_column(file, "/halves");
  ck_sn_fails(sn__h5_column_read(c, r, 0, 3, SN_I64, out), SN_CODE_DATA, "row 1, column 1: 1.5");
  sn__h5_column_free(c);
  c = h5_column(file, "big");
  ck_sn_fails(sn__h5_column_read(c, r, 1, 2, SN_U8, out), SN_CODE_DATA,
              "/big: row 2, column 1: 300");
  sn__h5_column_free(c);
  c = h5_column(file, "huge");
  ck_sn_fails(sn__h5_column_read(c, r, 0, 3, SN_I64, out), SN_CODE_DATA, "row 2, column 0");
  sn__h5_column_free(c);
  c = h5_column(file, "wide");
  ck_sn_ok(sn__h5_column_read(c, r, 0, 3, SN_F32, floats));
  ck_assert(isinf(floats[1]) && isinf(floats[2]) && floats[2] < 0);
  ck_sn_fails(sn__h5_column_read(c, r, 2, 2, SN_F32, floats), SN_CODE_INVALID, "3 rows");
  sn__h5_column_free(c);
  c = NULL;
  ck_sn_fails(sn__h5_column_open(file, "/halfs", &c), SN_CODE_NOT_FOUND, "did you mean /halves?");
  sn__h5_reader_free(r);
  sn__h5_file_free(file);
  remove(path);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("h5_read");
  TCase *t = tcase_create("read");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, test_layouts_and_filters);
  tcase_add_test(t, test_types_and_orders);
  tcase_add_test(t, test_unwritten_is_the_fill_value);
  tcase_add_test(t, test_what_does_not_fit_is_named);
  suite_add_tcase(s, t);
  return s;
}

SN_TEST_MAIN(suite)
