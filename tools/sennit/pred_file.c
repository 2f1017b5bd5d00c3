/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/pred_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <hdf5.h>

#include "core/alloc.h"
#include "tools/sennit/h5_out.h"

/* The datasets of one output; -1 where it has none. */
typedef struct pred_output {
  hid_t group, logits, probabilities, values, names, offsets;
  hid_t name_type;
  size_t name_size;
  int64_t rows, ends; /* written so far; elements so far */
} pred_output;

struct pred_file {
  char *path, *temporary;
  const sn_preparation *preparation;
  hid_t file;
  pred_output *outputs;
  size_t n_outputs;
  void *scratch;
  size_t cap_scratch;
  bool done;
};

static sn_status failed(const pred_file *f, const char *what) {
  return sn_status_make(SN_CODE_IO, "cannot write %s: %s%s%s", f->path, what,
                        errno != 0 ? ": " : "", errno != 0 ? strerror(errno) : "");
}

/* libhdf5 says little about why a file cannot be made; the system says it. */
static sn_status make_empty(const pred_file *f) {
  errno = 0;
  int fd = open(f->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return failed(f, "it cannot be made");
  close(fd);
  return SN_OK;
}

sn_status pred_file_create(const char *path, const sn_preparation *preparation, pred_file **out) {
  pred_file *f = sn__calloc(1, sizeof *f);
  if (f == NULL) return sn_status_out_of_memory();
  f->file = -1;
  f->preparation = preparation;
  f->path = sn__strdup(path);
  f->temporary = sn__format("%s.%ld.tmp", path, (long)getpid());
  if (f->path == NULL || f->temporary == NULL) {
    pred_file_free(f);
    return sn_status_out_of_memory();
  }
  sn_status status = make_empty(f);
  if (status == SN_OK) {
    h5_section section = h5_section_enter();
    f->file = H5Fcreate(f->temporary, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    h5_section_leave(&section);
    if (f->file < 0) status = failed(f, "HDF5 cannot make it");
  }
  if (status != SN_OK) {
    pred_file_free(f);
    return status;
  }
  *out = f;
  return SN_OK;
}

/* ---- datasets that grow by rows -------------------------------------------------------------- */

/* [0.., width], or [0..] when width is 0. */
static hid_t growing(hid_t group, const char *name, hid_t type, int64_t width) {
  hsize_t dims[2] = {0, (hsize_t)width}, most[2] = {H5S_UNLIMITED, (hsize_t)width};
  size_t row = H5Tget_size(type) * (size_t)(width > 0 ? width : 1);
  hsize_t rows = (hsize_t)(65536 / (row > 0 ? row : 1));
  hsize_t chunk[2] = {rows > 0 ? rows : 1, (hsize_t)width};
  int rank = width > 0 ? 2 : 1;
  hid_t space = H5Screate_simple(rank, dims, most), plist = H5Pcreate(H5P_DATASET_CREATE);
  hid_t dataset = -1;
  if (H5Pset_chunk(plist, rank, chunk) >= 0)
    dataset = H5Dcreate2(group, name, type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
  H5Pclose(plist);
  H5Sclose(space);
  return dataset;
}

static bool append(hid_t dataset, hid_t type, int64_t at, int64_t rows, int64_t width,
                   const void *data) {
  hsize_t start[2] = {(hsize_t)at, 0}, count[2] = {(hsize_t)rows, (hsize_t)width};
  hsize_t dims[2] = {(hsize_t)(at + rows), (hsize_t)width};
  if (rows == 0) return true;
  if (H5Dset_extent(dataset, dims) < 0) return false;
  hid_t space = H5Dget_space(dataset);
  int rank = width > 0 ? 2 : 1;
  hid_t memory = H5Screate_simple(rank, count, NULL);
  bool ok = H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
            H5Dwrite(dataset, type, memory, space, H5P_DEFAULT, data) >= 0;
  H5Sclose(memory);
  H5Sclose(space);
  return ok;
}

/* ---- outputs --------------------------------------------------------------------------------- */

static const char *class_name(const pred_file *f, const bind_output *b, int64_t k, char *number,
                              size_t size) {
  const char *name = NULL;
  if (b->preparation >= 0 &&
      k < sn_preparation_facts(f->preparation, (size_t)b->preparation)->classes)
    name = sn_preparation_class_name(f->preparation, (size_t)b->preparation, k);
  if (name != NULL) return name;
  snprintf(number, size, "%lld", (long long)k);
  return number;
}

/* Of fixed width: the rest of its place is zero already. */
static void put_name(char *to, const char *name) {
  while (*name != '\0')
    *to++ = *name++;
}

/* The names as one block of fixed width. */
static char *name_block(const pred_file *f, const bind_output *b, size_t *out_size) {
  char number[24];
  size_t longest = 1;
  for (int64_t k = 0; k < b->width; k++) {
    size_t length = strlen(class_name(f, b, k, number, sizeof number));
    if (length > longest) longest = length;
  }
  char *block = sn__calloc((size_t)b->width, longest);
  for (int64_t k = 0; block != NULL && k < b->width; k++) {
    const char *name = class_name(f, b, k, number, sizeof number);
    put_name(block + (size_t)k * longest, name);
  }
  *out_size = longest;
  return block;
}

static bool make_names(pred_file *f, const bind_output *b, pred_output *o, const char *block) {
  o->name_type = H5Tcopy(H5T_C_S1);
  H5Tset_size(o->name_type, o->name_size);
  H5Tset_strpad(o->name_type, H5T_STR_NULLPAD);
  H5Tset_cset(o->name_type, H5T_CSET_UTF8);
  (void)f;
  hid_t list = growing(o->group, "classes", o->name_type, 0);
  bool ok = list >= 0 && append(list, o->name_type, 0, b->width, 0, block);
  if (list >= 0) H5Dclose(list);
  o->names = growing(o->group, "class", o->name_type, 0);
  return ok && o->names >= 0;
}

static bool make_output(pred_file *f, const bind_output *b, pred_output *o, const char *block) {
  hid_t f32 = H5T_IEEE_F32LE;
  o->group = H5Gcreate2(f->file, b->name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  if (o->group < 0) return false;
  if (b->ragged >= 0) o->offsets = growing(o->group, "offsets", H5T_STD_I64LE, 0);
  if (b->kind == METRIC_VALUES) {
    o->values = growing(o->group, "values", f32, b->width > 1 ? b->width : 0);
    return o->values >= 0;
  }
  o->logits = growing(o->group, "logits", f32, b->width);
  o->probabilities = growing(o->group, "probabilities", f32, b->width);
  if (o->logits < 0 || o->probabilities < 0) return false;
  return b->kind == METRIC_MULTILABEL || make_names(f, b, o, block);
}

static sn_status make_outputs(pred_file *f, const bind_set *bind) {
  f->outputs = sn__calloc(bind->n_outputs + 1, sizeof *f->outputs);
  if (f->outputs == NULL) return sn_status_out_of_memory();
  for (size_t i = 0; i < bind->n_outputs; i++) {
    pred_output *o = &f->outputs[f->n_outputs++];
    *o = (pred_output){-1, -1, -1, -1, -1, -1, -1, 0, 0, 0};
    char *block = name_block(f, &bind->outputs[i], &o->name_size);
    if (block == NULL) return sn_status_out_of_memory();
    bool made = make_output(f, &bind->outputs[i], o, block);
    sn__free(block);
    if (!made) return failed(f, "its datasets cannot be made");
  }
  return SN_OK;
}

/* ---- a batch --------------------------------------------------------------------------------- */

static sn_status scratch(pred_file *f, size_t bytes) {
  if (sn__grow(&f->scratch, &f->cap_scratch, bytes + 1, 1)) return SN_OK;
  return sn_status_out_of_memory();
}

static sn_status add_values(pred_file *f, const bind_output *b, pred_output *o, int64_t rows,
                            const float *predictions) {
  size_t width = (size_t)b->width, n = (size_t)rows * width;
  SN_TRY(scratch(f, n * sizeof(float)));
  const double *mean = NULL, *deviation = NULL;
  if (b->preparation >= 0) {
    mean = sn_preparation_mean(f->preparation, (size_t)b->preparation);
    deviation = sn_preparation_deviation(f->preparation, (size_t)b->preparation);
  }
  float *out = f->scratch;
  for (size_t i = 0; i < n; i++)
    out[i] = (float)((double)predictions[i] * (deviation != NULL ? deviation[i % width] : 1) +
                     (mean != NULL ? mean[i % width] : 0));
  int64_t columns = b->width > 1 ? b->width : 0;
  if (append(o->values, H5T_NATIVE_FLOAT, o->rows, rows, columns, out)) return SN_OK;
  return failed(f, "HDF5 cannot write");
}

static sn_status add_probabilities(pred_file *f, const bind_output *b, pred_output *o, int64_t rows,
                                   const float *logits) {
  size_t width = (size_t)b->width, n = (size_t)rows * width;
  SN_TRY(scratch(f, n * sizeof(float) + width * sizeof(double)));
  double *row = f->scratch;
  float *out = (float *)(row + width);
  for (int64_t r = 0; r < rows; r++) {
    const float *z = logits + (size_t)r * width;
    if (b->kind != METRIC_MULTILABEL) metrics_softmax(z, b->width, row);
    for (size_t k = 0; k < width; k++)
      out[(size_t)r * width + k] =
          (float)(b->kind == METRIC_MULTILABEL ? metrics_sigmoid((double)z[k]) : row[k]);
  }
  if (append(o->logits, H5T_NATIVE_FLOAT, o->rows, rows, b->width, logits) &&
      append(o->probabilities, H5T_NATIVE_FLOAT, o->rows, rows, b->width, out))
    return SN_OK;
  return failed(f, "HDF5 cannot write");
}

static sn_status add_names(pred_file *f, const bind_output *b, pred_output *o, int64_t rows,
                           const float *logits) {
  char number[24];
  size_t size = (size_t)rows * o->name_size;
  SN_TRY(scratch(f, size));
  char *out = f->scratch;
  memset(out, 0, size);
  for (int64_t r = 0; r < rows; r++) {
    const float *z = logits + r * b->width;
    int64_t best = 0;
    for (int64_t k = 1; k < b->width; k++)
      if (z[k] > z[best]) best = k;
    const char *name = class_name(f, b, best, number, sizeof number);
    put_name(out + (size_t)r * o->name_size, name);
  }
  if (append(o->names, o->name_type, o->rows, rows, 0, out)) return SN_OK;
  return failed(f, "HDF5 cannot write");
}

/* Where the elements of each row end. */
static sn_status add_offsets(pred_file *f, const bind_output *b, pred_output *o,
                             const sn_batch *batch) {
  const int64_t *offsets = batch->fields[b->ragged].offsets;
  SN_TRY(scratch(f, ((size_t)batch->rows + 1) * sizeof(int64_t)));
  int64_t *out = f->scratch;
  bool first = o->ends == 0 && batch->index == 0;
  for (int64_t r = 0; r <= batch->rows; r++)
    out[r] = o->ends + offsets[r];
  int64_t at = batch->row_numbers[0] + (first ? 0 : 1);
  o->ends = out[batch->rows];
  if (append(o->offsets, H5T_NATIVE_INT64, at, batch->rows + (first ? 1 : 0), 0,
             out + (first ? 0 : 1)))
    return SN_OK;
  return failed(f, "HDF5 cannot write");
}

static sn_status add_output(pred_file *f, const bind_set *bind, size_t i, const sn_batch *batch,
                            const float *predictions) {
  const bind_output *b = &bind->outputs[i];
  pred_output *o = &f->outputs[i];
  int64_t rows = bind_rows(b, batch);
  if (o->values >= 0) SN_TRY(add_values(f, b, o, rows, predictions));
  if (o->logits >= 0) SN_TRY(add_probabilities(f, b, o, rows, predictions));
  if (o->names >= 0) SN_TRY(add_names(f, b, o, rows, predictions));
  if (o->offsets >= 0) SN_TRY(add_offsets(f, b, o, batch));
  o->rows += rows;
  return SN_OK;
}

sn_status pred_file_add(pred_file *f, const bind_set *bind, const sn_batch *batch,
                        const float *const *predictions) {
  h5_section section = h5_section_enter();
  sn_status status = f->outputs == NULL ? make_outputs(f, bind) : SN_OK;
  for (size_t i = 0; status == SN_OK && i < f->n_outputs; i++)
    status = add_output(f, bind, i, batch, predictions[i]);
  h5_section_leave(&section);
  return status;
}

static void close_one(hid_t *id, herr_t (*close_it)(hid_t)) {
  if (*id >= 0) close_it(*id);
  *id = -1;
}

static void close_outputs(pred_file *f) {
  for (size_t i = 0; i < f->n_outputs; i++) {
    pred_output *o = &f->outputs[i];
    close_one(&o->logits, H5Dclose);
    close_one(&o->probabilities, H5Dclose);
    close_one(&o->values, H5Dclose);
    close_one(&o->names, H5Dclose);
    close_one(&o->offsets, H5Dclose);
    close_one(&o->name_type, H5Tclose);
    close_one(&o->group, H5Gclose);
  }
}

sn_status pred_file_finish(pred_file *f) {
  h5_section section = h5_section_enter();
  close_outputs(f);
  herr_t closed = H5Fclose(f->file);
  f->file = -1;
  h5_section_leave(&section);
  if (closed < 0) return failed(f, "HDF5 cannot end it");
  int fd = open(f->temporary, O_RDWR | O_CLOEXEC);
  bool synced = fd >= 0 && fsync(fd) == 0;
  if (fd >= 0) close(fd);
  if (!synced || rename(f->temporary, f->path) != 0) return failed(f, "it cannot take its name");
  f->done = true;
  return SN_OK;
}

void pred_file_free(pred_file *f) {
  if (f == NULL) return;
  h5_section section = h5_section_enter();
  close_outputs(f);
  if (f->file >= 0) H5Fclose(f->file);
  h5_section_leave(&section);
  if (!f->done && f->temporary != NULL) unlink(f->temporary);
  sn__free(f->outputs);
  sn__free(f->scratch);
  sn__free(f->path);
  sn__free(f->temporary);
  sn__free(f);
}
