/* SPDX-License-Identifier: Apache-2.0 */
/* A fingerprint of a dataset: of what its rows hold, not of how files store it, so that data packed
 * anew or moved is the same data. Labels and lengths count whole, being in memory; of the rest some
 * rows, evenly spread, so that it costs the decoding of a few chunks. */
#include <string.h>

#include "core/sha256.h"
#include "io/preparation_impl.h"

enum { RUNS = 8, RUN_ROWS = 4 }; /* of the rows that are looked at */

static void add_number(sn_sha256 *hash, int64_t number) {
  sn_sha256_add(hash, &number, sizeof number);
}

/* Ascending; RUNS * RUN_ROWS at most. The first rows and the last ones are among them. */
static int64_t choose_rows(int64_t n, int64_t *rows) {
  int64_t count = 0;
  if (n <= RUNS * RUN_ROWS) {
    for (; count < n; ++count)
      rows[count] = count;
    return count;
  }
  for (int64_t k = 0; k < RUNS; ++k) {
    int64_t first = (n - RUN_ROWS) / (RUNS - 1) * k + (n - RUN_ROWS) % (RUNS - 1) * k / (RUNS - 1);
    for (int64_t i = 0; i < RUN_ROWS; ++i)
      rows[count++] = first + i;
  }
  return count;
}

static void add_codes(sn_sha256 *hash, const sn_dataset *d, const sn__field_data *fd) {
  add_number(hash, fd->keys.count);
  for (int64_t i = 0; i < fd->keys.count; ++i) {
    const sn__key *k = &fd->keys.items[i];
    add_number(hash, k->text);
    if (k->text)
      sn_sha256_add(hash, k->name, strlen(k->name) + 1);
    else
      add_number(hash, k->number);
  }
  sn_sha256_add(hash, fd->codes, (size_t)d->rows * sizeof *fd->codes);
}

static sn_status add_values(sn_sha256 *hash, const sn_dataset *d, const sn__field_data *fd,
                            const int64_t *rows, int64_t n_rows, sn__reading *reading) {
  sn__cuts cuts = {0};
  sn_dtype dtype = fd->ids ? SN_I64 : SN_F64;
  sn_status status = sn__field_cut(fd, d->n_files, rows, n_rows, &cuts);
  for (size_t i = 0; status == SN_OK && i < cuts.count; ++i) {
    const sn__cut *cut = &cuts.items[i];
    size_t size = (size_t)(cut->elements * fd->width) * sn_dtype_size(dtype);
    void *values = NULL;
    status = sn__reading_need(reading, 2, size, &values);
    if (status == SN_OK) status = sn__field_read(fd, cut, rows, reading, dtype, values);
    if (status == SN_OK) sn_sha256_add(hash, values, size);
  }
  sn__free(cuts.items);
  return status;
}

static sn_status add_field(sn_sha256 *hash, const sn_dataset *d, const sn__field_data *fd,
                           const int64_t *rows, int64_t n_rows, sn__reading *reading) {
  add_number(hash, fd->width);
  add_number(hash, fd->ragged);
  if (fd->ragged) sn_sha256_add(hash, fd->lengths, (size_t)d->rows * sizeof *fd->lengths);
  if (!fd->coded) return add_values(hash, d, fd, rows, n_rows, reading);
  add_codes(hash, d, fd);
  return SN_OK;
}

sn_status sn_dataset_fingerprint(const sn_dataset *d, char out_hex[65]) {
  int64_t rows[RUNS * RUN_ROWS], n_rows = choose_rows(d->rows, rows);
  sn_sha256 hash;
  uint8_t digest[32];
  sn__reading reading;
  SN_TRY(sn__reading_init(&reading, 0));
  sn_sha256_begin(&hash);
  add_number(&hash, d->rows);
  add_number(&hash, (int64_t)d->n_fields);
  sn_status status = SN_OK;
  for (size_t i = 0; status == SN_OK && i < d->n_fields; ++i)
    status = add_field(&hash, d, &d->fields[i], rows, n_rows, &reading);
  sn__reading_clear(&reading);
  sn_sha256_end(&hash, digest);
  if (status == SN_OK) sn_sha256_hex(digest, out_hex);
  return status;
}
