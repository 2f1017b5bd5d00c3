/* SPDX-License-Identifier: Apache-2.0 */
/* Replacing a file so that at every instant either the old or the new one is there, whole
 * (internal): write beside it, fsync, rename over it, fsync the folder. */
#ifndef SN_IO_SAFE_FILE_H
#define SN_IO_SAFE_FILE_H

#include "core/status.h"

typedef struct sn__bytes {
  const void *data;
  size_t size;
} sn__bytes;

/* What the system is asked for, replaceable so that tests can log, fail and cut off every step.
 * Each returns -1 with errno on failure, as the calls of the same name do. */
typedef struct sn__file_ops {
  void *user;
  int (*create)(void *user, const char *path); /* truncated, for writing; -> descriptor */
  int64_t (*write)(void *user, int fd, const void *data, size_t size);
  int (*fsync)(void *user, int fd);
  int (*close)(void *user, int fd);
  int (*rename)(void *user, const char *from, const char *to);
  int (*fsync_folder)(void *user, const char *path); /* of the folder that holds `path` */
  int (*unlink)(void *user, const char *path);
} sn__file_ops;

SN_BEGIN_DECLS
/* NULL restores the system's. Not thread-safe: for tests. */
SN_API void sn__file_set_ops(const sn__file_ops *ops);

/* The new content goes to "<path>.tmp" first (one name, so that a killed run leaves at most one).
 * IO with path and errno's words on failure; the old file is then untouched and the temporary one
 * is gone. */
SN_API SN_MUST_USE sn_status sn__file_replace(const char *path, const sn__bytes *parts,
                                              size_t n_parts);

/* The whole file, at most `most` bytes; free with sn__free. NOT_FOUND, IO. */
SN_API SN_MUST_USE sn_status sn__file_read(const char *path, size_t most, void **out_data,
                                           size_t *out_size);
/* The two halves of it: a descriptor for the caller to close, and all of what it is open on, which
 * messages call `path`. */
SN_API SN_MUST_USE sn_status sn__file_open(const char *path, int *out_fd);
SN_API SN_MUST_USE sn_status sn__file_read_open(int fd, const char *path, size_t most,
                                                void **out_data, size_t *out_size);
SN_END_DECLS

#endif
