/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and reading checkpoints. Files are read, verified and replaced by our own calls: libhdf5
 * makes an image in memory, and says where in a file the data lies from a process of its own, as
 * for any file from a stranger. */
#include "io/checkpoint.h"

#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/alloc.h"
#include "core/sha256.h"
#include "io/checkpoint_impl.h"
#include "io/h5_quiet.h"
#include "io/h5_scan.h"
#include "io/safe_file.h"

enum { USER_BLOCK = 512 };
static const char magic[] = "sennit checkpoint\n";
/* A checkpoint is held in memory whole; what is larger than this is not one of ours. */
static const size_t most_bytes = (size_t)1 << 38;

/* ---- types --------------------------------------------------------------------------------- */

static hid_t file_type(sn_dtype dtype) {
  switch (dtype) {
  case SN_F32: return H5T_IEEE_F32LE;
  case SN_F64: return H5T_IEEE_F64LE;
  case SN_BF16: return H5T_STD_U16LE; /* the bits; the name says so: see tensor_dtype */
  case SN_I32: return H5T_STD_I32LE;
  case SN_I64: return H5T_STD_I64LE;
  case SN_U8:
  case SN_BOOL: return H5T_STD_U8LE;
  default: return H5I_INVALID_HID;
  }
}

static hid_t memory_type(sn_dtype dtype) {
  switch (dtype) {
  case SN_F32: return H5T_NATIVE_FLOAT;
  case SN_F64: return H5T_NATIVE_DOUBLE;
  case SN_BF16: return H5T_NATIVE_UINT16;
  case SN_I32: return H5T_NATIVE_INT32;
  case SN_I64: return H5T_NATIVE_INT64;
  case SN_U8:
  case SN_BOOL: return H5T_NATIVE_UINT8;
  default: return H5I_INVALID_HID;
  }
}

/* ---- writing ------------------------------------------------------------------------------- */

static sn_status h5_failed(const char *what, const char *name) {
  return sn_status_make(SN_CODE_INTERNAL, "checkpoint: libhdf5 could not %s '%s'", what, name);
}

static sn_status put_dataset(hid_t file, const char *path, hid_t stored, hid_t memory, int rank,
                             const hsize_t *dims, const void *data) {
  sn_status status = SN_OK;
  bool empty = false;
  for (int i = 0; i < rank; i++)
    empty = empty || dims[i] == 0;
  hid_t links = H5Pcreate(H5P_LINK_CREATE), create = H5Pcreate(H5P_DATASET_CREATE);
  hid_t space = rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(rank, dims, NULL);
  hid_t set = H5I_INVALID_HID;
  /* No times: the same content is the same bytes. */
  if (links >= 0 && space >= 0 && create >= 0 && H5Pset_create_intermediate_group(links, 1) >= 0 &&
      H5Pset_obj_track_times(create, 0) >= 0)
    set = H5Dcreate2(file, path, stored, space, links, create, H5P_DEFAULT);
  if (set < 0 || (!empty && H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0))
    status = h5_failed("write", path);
  if (set >= 0) H5Dclose(set);
  if (space >= 0) H5Sclose(space);
  if (links >= 0) H5Pclose(links);
  if (create >= 0) H5Pclose(create);
  return status;
}

static sn_status put_tensor(hid_t file, const sn_named_tensor *t) {
  hsize_t dims[SN_MAX_RANK];
  for (int i = 0; i < t->shape.rank; i++)
    dims[i] = (hsize_t)t->shape.dims[i];
  char *path = sn__format("/tensors/%s", t->name);
  if (path == NULL) return sn_status_out_of_memory();
  sn_status status = put_dataset(file, path, file_type(t->dtype), memory_type(t->dtype),
                                 t->shape.rank, dims, t->data);
  sn__free(path);
  return status;
}

static sn_status put_text(hid_t file, const sn_named_text *t) {
  char *path = sn__format("/texts/%s", t->name);
  if (path == NULL) return sn_status_out_of_memory();
  hsize_t dims[1] = {t->length};
  sn_status status = put_dataset(file, path, H5T_STD_U8LE, H5T_NATIVE_UINT8, 1, dims, t->text);
  sn__free(path);
  return status;
}

/* The HDF5 image of it all, in memory from libhdf5's allocator seen through ours. */
static sn_status make_image(const sn_named_tensor *tensors, size_t n_tensors,
                            const sn_named_text *texts, size_t n_texts, void **out_image,
                            size_t *out_size) {
  sn_status status = SN_OK;
  /* The oldest format: what H5Fget_file_image() gives of newer ones fails its own superblock
   * checksum. */
  hid_t access = H5Pcreate(H5P_FILE_ACCESS), file = H5I_INVALID_HID;
  if (access >= 0 && H5Pset_fapl_core(access, (size_t)1 << 20, 0) >= 0)
    file = H5Fcreate("sennit-checkpoint-in-memory", H5F_ACC_TRUNC, H5P_DEFAULT, access);
  if (file < 0) status = h5_failed("begin", "image");
  for (size_t i = 0; status == SN_OK && i < n_tensors; i++)
    status = put_tensor(file, &tensors[i]);
  for (size_t i = 0; status == SN_OK && i < n_texts; i++)
    status = put_text(file, &texts[i]);
  if (status == SN_OK && H5Fflush(file, H5F_SCOPE_LOCAL) < 0) status = h5_failed("flush", "image");
  ssize_t size = status == SN_OK ? H5Fget_file_image(file, NULL, 0) : 0;
  void *image = NULL;
  if (status == SN_OK && size <= 0) status = h5_failed("measure", "image");
  if (status == SN_OK && (image = sn__alloc((size_t)size)) == NULL)
    status = sn_status_out_of_memory();
  if (status == SN_OK && H5Fget_file_image(file, image, (size_t)size) != size)
    status = h5_failed("copy", "image");
  if (file >= 0) H5Fclose(file);
  if (access >= 0) H5Pclose(access);
  if (status != SN_OK) {
    sn__free(image);
    return status;
  }
  *out_image = image;
  *out_size = (size_t)size;
  return SN_OK;
}

typedef struct user_block {
  unsigned long long format, reader, bytes;
  char sha256[65];
} user_block;

static void print_user_block(char block[USER_BLOCK], const user_block *b) {
  memset(block, 0, USER_BLOCK);
  snprintf(block, USER_BLOCK, "%sformat_version %llu\nmin_reader %llu\nbytes %llu\nsha256 %s\n",
           magic, b->format, b->reader, b->bytes, b->sha256);
}

static void hash_content(const void *content, size_t size, char hex[65]) {
  sn_sha256 hash;
  uint8_t digest[32];
  sn_sha256_begin(&hash);
  sn_sha256_add(&hash, content, size);
  sn_sha256_end(&hash, digest);
  sn_sha256_hex(digest, hex);
}

static sn_status check_tensors(const sn_named_tensor *tensors, size_t n) {
  for (size_t i = 0; i < n; i++) {
    int64_t count;
    if (tensors[i].name == NULL || file_type(tensors[i].dtype) < 0 || tensors[i].shape.rank < 0 ||
        !sn_shape_is_fixed(&tensors[i].shape) || !sn__shape_count(&tensors[i].shape, &count))
      return sn_status_make(SN_CODE_INVALID,
                            "checkpoint: tensor %zu ('%s') has no fixed shape or type", i,
                            tensors[i].name == NULL ? "" : tensors[i].name);
  }
  return SN_OK;
}

sn_status sn_checkpoint_write(const char *path, const sn_named_tensor *tensors, size_t n_tensors,
                              const sn_named_text *texts, size_t n_texts) {
  SN_TRY(check_tensors(tensors, n_tensors));
  void *image = NULL;
  size_t size = 0;
  sn__h5_quiet quiet = sn__h5_enter();
  sn_status status = make_image(tensors, n_tensors, texts, n_texts, &image, &size);
  sn__h5_leave(&quiet);
  if (status != SN_OK) return sn_status_context(status, "%s", path);
  char block[USER_BLOCK];
  user_block b = {SN_CHECKPOINT_FORMAT, SN_CHECKPOINT_MIN_READER, size, ""};
  hash_content(image, size, b.sha256);
  print_user_block(block, &b);
  sn__bytes parts[] = {{block, USER_BLOCK}, {image, size}};
  status = sn__file_replace(path, parts, 2);
  sn__free(image);
  return status;
}

/* ---- reading ------------------------------------------------------------------------------- */

bool sn_checkpoint_probe(const char *path) {
  FILE *f = fopen(path, "rb");
  char head[sizeof magic - 1];
  bool yes = f != NULL && fread(head, 1, sizeof head, f) == sizeof head &&
             memcmp(head, magic, sizeof head) == 0;
  if (f != NULL) fclose(f);
  return yes;
}

static sn_status verify(const char *path, const char *data, size_t size) {
  if (size < USER_BLOCK || memcmp(data, magic, sizeof magic - 1) != 0)
    return sn_status_make(SN_CODE_CORRUPT, "%s: is not a sennit checkpoint", path);
  char block[USER_BLOCK + 1], again[USER_BLOCK], have[65];
  memcpy(block, data, USER_BLOCK);
  block[USER_BLOCK] = '\0';
  user_block b = {0};
  int found =
      sscanf(block + sizeof magic - 1, "format_version %llu min_reader %llu bytes %llu sha256 %64s",
             &b.format, &b.reader, &b.bytes, b.sha256);
  print_user_block(again, &b);
  if (found != 4 || memcmp(block, again, USER_BLOCK) != 0)
    return sn_status_make(SN_CODE_CORRUPT,
                          "%s: its first 512 bytes are damaged; use an older checkpoint", path);
  if (b.reader > SN_CHECKPOINT_FORMAT)
    return sn_status_make(SN_CODE_UNSUPPORTED,
                          "%s: was written in format %llu, which needs a reader of at least %llu; "
                          "this one reads up to %d: use a newer sennit",
                          path, b.format, b.reader, SN_CHECKPOINT_FORMAT);
  if (b.bytes != size - USER_BLOCK)
    return sn_status_make(SN_CODE_CORRUPT,
                          "%s: has %zu bytes of content where %llu were written; it was cut short "
                          "or grown; use an older checkpoint",
                          path, size - USER_BLOCK, b.bytes);
  hash_content(data + USER_BLOCK, size - USER_BLOCK, have);
  if (strcmp(b.sha256, have) != 0)
    return sn_status_make(SN_CODE_CORRUPT,
                          "%s: its checksum does not hold: the content was changed after it was "
                          "written; use an older checkpoint",
                          path);
  return SN_OK;
}

static sn_status add_text(sn_checkpoint *c, const char *name, char *text, size_t length) {
  if (!sn__grow((void **)&c->texts, &c->cap_texts, c->n_texts + 1, sizeof *c->texts))
    return sn_status_out_of_memory();
  char *kept = sn__arena_strdup(&c->arena, name);
  if (kept == NULL) return sn_status_out_of_memory();
  c->texts[c->n_texts++] = (sn_named_text){.name = kept, .text = text, .length = length};
  return SN_OK;
}

sn_status sn__checkpoint_add(sn_checkpoint *c, const char *name, sn_dtype dtype,
                             const sn_shape *shape, void **out_data, size_t *out_bytes) {
  int64_t count;
  size_t bytes;
  if (!sn__shape_count(shape, &count) || !sn__size_mul((size_t)count, sn_dtype_size(dtype), &bytes))
    return sn_status_make(SN_CODE_CORRUPT, "tensor '%s' has more bytes than can be counted", name);
  if (!sn__grow((void **)&c->tensors, &c->cap_tensors, c->n_tensors + 1, sizeof *c->tensors))
    return sn_status_out_of_memory();
  char *kept = sn__arena_strdup(&c->arena, name);
  void *data = sn__arena_alloc(&c->arena, bytes + 1);
  if (kept == NULL || data == NULL) return sn_status_out_of_memory();
  c->tensors[c->n_tensors++] =
      (sn_named_tensor){.name = kept, .dtype = dtype, .shape = *shape, .data = data};
  *out_data = data;
  *out_bytes = bytes;
  return SN_OK;
}

static sn_dtype stored_dtype(const sn__h5_dataset *d) {
  if ((d->type.flags & SN__H5_BIG_ENDIAN) != 0) return SN_DTYPE_NONE;
  switch (d->type.kind) {
  case SN__H5_F32: return SN_F32;
  case SN__H5_F64: return SN_F64;
  case SN__H5_U8: return SN_U8;
  case SN__H5_U16: return SN_BF16; /* the bits */
  case SN__H5_I32: return SN_I32;
  case SN__H5_I64: return SN_I64;
  default: return SN_DTYPE_NONE;
  }
}

/* The dataset's bytes within the file, which must be stored plainly and whole; NULL when they are
 * not. */
static const char *stored_bytes(const sn__h5_dataset *d, const char *file, size_t size,
                                size_t bytes) {
  if (d->filter_count > 0) return NULL;
  if (d->layout == SN__H5_COMPACT && d->compact_size == bytes) return (const char *)d->compact;
  if (d->layout != SN__H5_CONTIGUOUS || d->data_address > size || bytes > size - d->data_address)
    return NULL;
  return file + d->data_address;
}

static sn_status read_dataset(sn_checkpoint *c, const sn__h5_dataset *d, const char *file,
                              size_t size) {
  const char *name = d->path + (d->path[0] == '/');
  sn_dtype dtype = d->problem == NULL ? stored_dtype(d) : SN_DTYPE_NONE;
  bool tensor = strncmp(name, "tensors/", 8) == 0, text = strncmp(name, "texts/", 6) == 0;
  if (d->null_space || d->rank > SN_MAX_RANK || dtype == SN_DTYPE_NONE || (!tensor && !text) ||
      (text && (d->rank != 1 || dtype != SN_U8)))
    return sn_status_make(SN_CODE_CORRUPT, "holds '/%s', which no checkpoint has", name);
  sn_shape shape = {(int32_t)d->rank, {0}};
  size_t total = sn_dtype_size(dtype);
  bool fits = true;
  for (unsigned i = 0; i < d->rank; i++) {
    fits = fits && d->dims[i] <= size && sn__size_mul(total, (size_t)d->dims[i], &total);
    shape.dims[i] = (int64_t)d->dims[i];
  }
  if (!fits || total > size)
    return sn_status_make(SN_CODE_CORRUPT, "'/%s' claims more bytes than the file has", name);
  const char *from = total > 0 ? stored_bytes(d, file, size, total) : NULL;
  if (total > 0 && from == NULL)
    return sn_status_make(SN_CODE_CORRUPT, "'/%s' is not stored as checkpoints store it", name);
  void *data = NULL;
  if (tensor) {
    SN_TRY(sn__checkpoint_add(c, name + 8, dtype, &shape, &data, &total));
  } else {
    data = sn__arena_alloc(&c->arena, total + 1);
    if (data == NULL) return sn_status_out_of_memory();
    SN_TRY(add_text(c, name + 6, data, total));
  }
  if (from != NULL && data != NULL) memcpy(data, from, total);
  return SN_OK;
}

/* libhdf5 looks at the file in a process of its own, as at any file from a stranger; bytes are
 * taken from `file`, whose checksum holds. */
static sn_status read_content(sn_checkpoint *c, int fd, const char *path, const char *file,
                              size_t size) {
  sn__h5_report *report = NULL;
  SN_TRY(sn__h5_scan_open(fd, path, NULL, &report));
  sn_status status = SN_OK;
  if (report->failure != NULL)
    status =
        sn_status_make(SN_CODE_CORRUPT, "its HDF5 content cannot be opened: %s", report->failure);
  else if (report->problem_count > 0)
    status = sn_status_make(SN_CODE_CORRUPT, "its HDF5 content cannot be listed: %s: %s",
                            report->problems[0].path, report->problems[0].words);
  for (size_t i = 0; status == SN_OK && i < report->dataset_count; i++)
    status = read_dataset(c, &report->datasets[i], file, size);
  sn__h5_report_free(report);
  return sn_status_context(status, "%s", path);
}

/* One open file is what is read, verified and scanned: a save may put another under its name at
 * any moment. */
static sn_status open_file(int fd, const char *path, sn_checkpoint **out_checkpoint) {
  void *data = NULL;
  size_t size = 0;
  SN_TRY(sn__file_read_open(fd, path, most_bytes, &data, &size));
  sn_status status = verify(path, data, size);
  sn_checkpoint *c = NULL;
  if (status == SN_OK && (c = sn__calloc(1, sizeof *c)) == NULL) status = sn_status_out_of_memory();
  if (status == SN_OK) status = read_content(c, fd, path, data, size);
  sn__free(data);
  if (status != SN_OK) {
    sn_checkpoint_free(c);
    return status;
  }
  *out_checkpoint = c;
  return SN_OK;
}

sn_status sn_checkpoint_open(const char *path, sn_checkpoint **out_checkpoint) {
  int fd = -1;
  SN_TRY(sn__file_open(path, &fd));
  sn_status status = open_file(fd, path, out_checkpoint);
  close(fd);
  return status;
}

void sn_checkpoint_free(sn_checkpoint *c) {
  if (c == NULL) return;
  sn__free(c->tensors);
  sn__free(c->texts);
  sn__arena_free(&c->arena);
  sn__free(c);
}

size_t sn_checkpoint_tensor_count(const sn_checkpoint *c) {
  return c->n_tensors;
}

const sn_named_tensor *sn_checkpoint_tensor(const sn_checkpoint *c, size_t i) {
  return i < c->n_tensors ? &c->tensors[i] : NULL;
}

const sn_named_tensor *sn_checkpoint_find(const sn_checkpoint *c, const char *name) {
  for (size_t i = 0; i < c->n_tensors; i++)
    if (strcmp(c->tensors[i].name, name) == 0) return &c->tensors[i];
  return NULL;
}

const sn_named_text *sn_checkpoint_text(const sn_checkpoint *c, const char *name) {
  for (size_t i = 0; i < c->n_texts; i++)
    if (strcmp(c->texts[i].name, name) == 0) return &c->texts[i];
  return NULL;
}
