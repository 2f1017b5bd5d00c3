/* SPDX-License-Identifier: Apache-2.0 */
#include "io/safe_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/alloc.h"

/* ---- the system's calls -------------------------------------------------------------------- */

static int os_create(void *user, const char *path) {
  (void)user;
  return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

static int64_t os_write(void *user, int fd, const void *data, size_t size) {
  (void)user;
  return write(fd, data, size);
}

static int os_fsync(void *user, int fd) {
  (void)user;
  return fsync(fd);
}

static int os_close(void *user, int fd) {
  (void)user;
  return close(fd);
}

static int os_rename(void *user, const char *from, const char *to) {
  (void)user;
  return rename(from, to);
}

static int os_unlink(void *user, const char *path) {
  (void)user;
  return unlink(path);
}

static int os_fsync_folder(void *user, const char *path) {
  (void)user;
  const char *slash = strrchr(path, '/');
  size_t length = slash == NULL || slash == path ? 1 : (size_t)(slash - path);
  char folder[PATH_MAX]; /* the new file is in place: no allocation may fail from here on */
  if (length >= sizeof folder) {
    errno = ENAMETOOLONG;
    return -1;
  }
  memcpy(folder, slash == NULL ? "." : path, length);
  folder[length] = '\0';
  int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return -1;
  int rc = fsync(fd);
  int kept = errno;
  close(fd);
  errno = kept;
  /* Some file systems do not sync folders at all and say EINVAL: nothing more can be done there. */
  return rc != 0 && errno == EINVAL ? 0 : rc;
}

static const sn__file_ops os_ops = {.create = os_create,
                                    .write = os_write,
                                    .fsync = os_fsync,
                                    .close = os_close,
                                    .rename = os_rename,
                                    .fsync_folder = os_fsync_folder,
                                    .unlink = os_unlink};
static sn__file_ops ops;
static bool ops_set;

void sn__file_set_ops(const sn__file_ops *replacement) {
  ops_set = replacement != NULL;
  if (replacement != NULL) ops = *replacement;
}

static const sn__file_ops *current_ops(void) {
  return ops_set ? &ops : &os_ops;
}

/* ---- replacing ----------------------------------------------------------------------------- */

static sn_status fail(const char *what, const char *path) {
  int code = errno;
  char text[128];
  const char *words = strerror_r(code, text, sizeof text);
  const char *advice =
      code == ENOSPC || code == EDQUOT ? "; free space there or choose another folder"
      : code == EROFS || code == EACCES || code == EPERM ? "; choose a folder that can be written"
      : code == ENOENT                                   ? "; the folder must exist"
                                                         : "";
  return sn_status_make(SN_CODE_IO, "%s: cannot %s: %s (errno %d)%s", path, what, words, code,
                        advice);
}

static sn_status write_parts(const sn__file_ops *o, const char *path, int fd,
                             const sn__bytes *parts, size_t n_parts) {
  for (size_t i = 0; i < n_parts; i++) {
    const char *p = parts[i].data;
    size_t left = parts[i].size;
    while (left > 0) {
      /* Pieces, so that a signal or a full disk is noticed in bounded time. */
      int64_t n = o->write(o->user, fd, p, left < (1u << 24) ? left : (1u << 24));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        if (n == 0) errno = ENOSPC;
        return fail("write", path);
      }
      p += n;
      left -= (size_t)n;
    }
  }
  return SN_OK;
}

sn_status sn__file_replace(const char *path, const sn__bytes *parts, size_t n_parts) {
  const sn__file_ops *o = current_ops();
  char *temporary = sn__format("%s.tmp", path);
  if (temporary == NULL) return sn_status_out_of_memory();
  sn_status status = SN_OK;
  int fd = o->create(o->user, temporary);
  if (fd < 0) {
    status = fail("create", temporary);
    sn__free(temporary);
    return status;
  }
  status = write_parts(o, temporary, fd, parts, n_parts);
  if (status == SN_OK && o->fsync(o->user, fd) != 0) status = fail("sync", temporary);
  if (o->close(o->user, fd) != 0 && status == SN_OK) status = fail("close", temporary);
  if (status == SN_OK && o->rename(o->user, temporary, path) != 0) status = fail("rename to", path);
  if (status != SN_OK)
    o->unlink(o->user, temporary);
  else if (o->fsync_folder(o->user, path) != 0)
    status = fail("sync the folder of", path);
  sn__free(temporary);
  return status;
}

sn_status sn__file_open(const char *path, int *out_fd) {
  *out_fd = open(path, O_RDONLY | O_CLOEXEC);
  if (*out_fd >= 0) return SN_OK;
  if (errno == ENOENT)
    return sn_status_make(SN_CODE_NOT_FOUND, "%s: no such file: check the path", path);
  return fail("open", path);
}

sn_status sn__file_read_open(int fd, const char *path, size_t most, void **out_data,
                             size_t *out_size) {
  struct stat st;
  sn_status status = SN_OK;
  char *data = NULL;
  size_t size = 0, used = 0;
  if (fstat(fd, &st) != 0)
    status = fail("examine", path);
  else if (!S_ISREG(st.st_mode))
    status = sn_status_make(SN_CODE_IO, "%s: is not a regular file", path);
  else if ((uint64_t)st.st_size > most)
    status = sn_status_make(SN_CODE_DATA, "%s: has %lld bytes; at most %zu are read", path,
                            (long long)st.st_size, most);
  else
    size = (size_t)st.st_size;
  if (status == SN_OK && (data = sn__alloc(size + 1)) == NULL) status = sn_status_out_of_memory();
  while (status == SN_OK && used < size) {
    ssize_t n = read(fd, data + used, size - used);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) status = fail("read", path);
    if (n <= 0) break;
    used += (size_t)n;
  }
  if (status != SN_OK) {
    sn__free(data);
    return status;
  }
  data[used] = '\0';
  *out_data = data;
  *out_size = used;
  return SN_OK;
}

sn_status sn__file_read(const char *path, size_t most, void **out_data, size_t *out_size) {
  int fd = -1;
  SN_TRY(sn__file_open(path, &fd));
  sn_status status = sn__file_read_open(fd, path, most, out_data, out_size);
  close(fd);
  return status;
}
