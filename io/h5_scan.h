/* SPDX-License-Identifier: Apache-2.0 */
/* Runs libhdf5 over a file in a child process with limits on time and memory.
 *
 * The child is a small program, sennit-h5scan: a fork of the caller would inherit other threads'
 * malloc locks, and a library cannot run itself. It is looked for in the environment (SN_H5SCAN),
 * beside the running program, in the build tree, and where it was installed. */
#ifndef SN_IO_H5_SCAN_H
#define SN_IO_H5_SCAN_H

#include "io/h5_report.h"

typedef struct sn__h5_limits {
  double idle_seconds;  /* without a word from the child: it hangs. 0: 8 (or SN_H5SCAN_SECONDS) */
  double total_seconds; /* 0: 8 x idle_seconds */
  size_t memory_mib; /* address space, and shared memory, of the child. 0: 2048 (SN_H5SCAN_MIB) */
} sn__h5_limits;

/* Scans `path`. `limits` may be NULL. Whatever the file did to the child (refused, crashed, hung,
 * grew too large), this returns SN_OK and a report whose `failure` says it in one line beginning
 * with the path, with all that was found before. A status means that no scan took place: no such
 * file, no scanner, no memory. */
SN_MUST_USE sn_status sn__h5_scan(const char *path, const sn__h5_limits *limits,
                                  sn__h5_report **out_report);

/* The same of a file that is open for reading as `fd`, which messages call `path`: whatever that
 * name leads to by now. */
SN_MUST_USE sn_status sn__h5_scan_open(int fd, const char *path, const sn__h5_limits *limits,
                                       sn__h5_report **out_report);

/* Reports on `dataset` alone and has libhdf5 convert it. `out_fd`: the shared memory that its
 * `converted` positions mean, sealed against change; the caller closes it. */
SN_MUST_USE sn_status sn__h5_scan_convert(const char *path, const char *dataset,
                                          const sn__h5_limits *limits, sn__h5_report **out_report,
                                          int *out_fd);

#endif
