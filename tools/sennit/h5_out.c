/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/h5_out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <hdf5.h>

#include "core/alloc.h"
#include "io/h5_lock.h"

struct h5_out {
  char *path, *temporary;
  hid_t file;
  hid_t links; /* property list: groups on the way are made */
  bool made, done;
};

/* libhdf5 says little about why; the system may have said it. */
static sn_status failed(const h5_out *f, const char *what, const char *name) {
  return sn_status_make(SN_CODE_IO, "%s: cannot write%s%s%s%s", f->path, what, name,
                        errno != 0 ? ": " : "", errno != 0 ? strerror(errno) : "");
}

h5_section h5_section_enter(void) {
  h5_section s = {NULL, NULL};
  sn_hdf5_lock();
  H5Eget_auto2(H5E_DEFAULT, &s.handler, &s.data);
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  errno = 0;
  return s;
}

void h5_section_leave(const h5_section *s) {
  H5Eset_auto2(H5E_DEFAULT, s->handler, s->data);
  sn_hdf5_unlock();
}

static sn_status make_file(h5_out *f) {
  errno = 0;
  int fd = open(f->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return failed(f, "", "");
  close(fd);
  f->made = true;
  h5_section section = h5_section_enter();
  f->file = H5Fcreate(f->temporary, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  f->links = H5Pcreate(H5P_LINK_CREATE);
  bool ok = f->file >= 0 && f->links >= 0 && H5Pset_create_intermediate_group(f->links, 1) >= 0;
  h5_section_leave(&section);
  return ok ? SN_OK : failed(f, "", "");
}

sn_status h5_out_create(const char *path, h5_out **out_file) {
  h5_out *f = sn__calloc(1, sizeof *f);
  if (f == NULL) return sn_status_out_of_memory();
  f->file = f->links = -1;
  f->path = sn__strdup(path);
  f->temporary = sn__format("%s.%ld.tmp", path, (long)getpid());
  sn_status status =
      f->path == NULL || f->temporary == NULL ? sn_status_out_of_memory() : make_file(f);
  if (status != SN_OK) {
    h5_out_free(f);
    return status;
  }
  *out_file = f;
  return SN_OK;
}

static bool types_of(sn_dtype dtype, hid_t *out_file, hid_t *out_memory) {
  switch (dtype) {
  case SN_F32: *out_file = H5T_IEEE_F32LE, *out_memory = H5T_NATIVE_FLOAT; return true;
  case SN_F64: *out_file = H5T_IEEE_F64LE, *out_memory = H5T_NATIVE_DOUBLE; return true;
  case SN_I32: *out_file = H5T_STD_I32LE, *out_memory = H5T_NATIVE_INT32; return true;
  case SN_I64: *out_file = H5T_STD_I64LE, *out_memory = H5T_NATIVE_INT64; return true;
  case SN_U8:
  case SN_BOOL: *out_file = H5T_STD_U8LE, *out_memory = H5T_NATIVE_UINT8; return true;
  default: return false;
  }
}

static bool write_dataset(const h5_out *f, const char *path, hid_t type, hid_t memory,
                          sn_shape shape, const void *data) {
  hsize_t dims[SN_MAX_RANK];
  bool empty = false;
  for (int32_t i = 0; i < shape.rank; i++) {
    dims[i] = (hsize_t)shape.dims[i];
    empty = empty || dims[i] == 0;
  }
  hid_t space = shape.rank > 0 ? H5Screate_simple(shape.rank, dims, NULL) : H5Screate(H5S_SCALAR);
  hid_t set = H5Dcreate2(f->file, path, type, space, f->links, H5P_DEFAULT, H5P_DEFAULT);
  bool ok = set >= 0 && (empty || H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
  if (set >= 0) ok = H5Dclose(set) >= 0 && ok;
  if (space >= 0) H5Sclose(space);
  return ok;
}

/* bf16 has no type in HDF5 that tools would show. */
static sn_status widen(sn_shape shape, const uint16_t *from, float **out_wide) {
  size_t count = 1;
  for (int32_t i = 0; i < shape.rank; i++)
    count *= (size_t)shape.dims[i];
  float *wide = sn__alloc((count + 1) * sizeof *wide);
  if (wide == NULL) return sn_status_out_of_memory();
  for (size_t i = 0; i < count; i++) {
    uint32_t bits = (uint32_t)from[i] << 16;
    memcpy(&wide[i], &bits, sizeof bits);
  }
  *out_wide = wide;
  return SN_OK;
}

sn_status h5_out_tensor(h5_out *f, const char *path, sn_dtype dtype, sn_shape shape,
                        const void *data) {
  float *wide = NULL;
  if (dtype == SN_BF16) {
    SN_TRY(widen(shape, data, &wide));
    dtype = SN_F32;
    data = wide;
  }
  h5_section section = h5_section_enter();
  hid_t type = -1, memory = -1;
  bool ok = types_of(dtype, &type, &memory) && write_dataset(f, path, type, memory, shape, data);
  sn_status status = ok ? SN_OK : failed(f, " ", path);
  h5_section_leave(&section);
  sn__free(wide);
  return status;
}

sn_status h5_out_group(h5_out *f, const char *path) {
  h5_section section = h5_section_enter();
  hid_t group = H5Gcreate2(f->file, path, f->links, H5P_DEFAULT, H5P_DEFAULT);
  if (group >= 0) H5Gclose(group);
  sn_status status = group >= 0 ? SN_OK : failed(f, " ", path);
  h5_section_leave(&section);
  return status;
}

sn_status h5_out_text(h5_out *f, const char *path, const char *text) {
  h5_section section = h5_section_enter();
  size_t length = strlen(text);
  hid_t type = H5Tcopy(H5T_C_S1);
  bool ok = type >= 0 && H5Tset_size(type, length > 0 ? length : 1) >= 0 &&
            H5Tset_strpad(type, H5T_STR_NULLPAD) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0 &&
            write_dataset(f, path, type, type, (sn_shape){0, {0}}, text);
  if (type >= 0) H5Tclose(type);
  sn_status status = ok ? SN_OK : failed(f, " ", path);
  h5_section_leave(&section);
  return status;
}

static bool close_file(h5_out *f) {
  h5_section section = h5_section_enter();
  bool ok = f->file < 0 || H5Fclose(f->file) >= 0;
  if (f->links >= 0) H5Pclose(f->links);
  f->file = f->links = -1;
  h5_section_leave(&section);
  return ok;
}

sn_status h5_out_finish(h5_out *f) {
  if (!close_file(f)) return failed(f, "", "");
  errno = 0;
  int fd = open(f->temporary, O_RDWR | O_CLOEXEC);
  bool synced = fd >= 0 && fsync(fd) == 0;
  if (fd >= 0) close(fd);
  if (!synced || rename(f->temporary, f->path) != 0) return failed(f, "", "");
  f->done = true;
  return SN_OK;
}

void h5_out_free(h5_out *f) {
  if (f == NULL) return;
  close_file(f);
  if (f->made && !f->done && f->temporary != NULL) unlink(f->temporary);
  sn__free(f->path);
  sn__free(f->temporary);
  sn__free(f);
}
