/* SPDX-License-Identifier: Apache-2.0 */
/* sennit-h5scan: run by sennit itself, not by people.
 *
 *   sennit-h5scan REPORT_FD SHARED_FD|-1 MEMORY_MIB CPU_SECONDS FILE [DATASET]
 *
 * Without DATASET: reports on the whole file. With it: on that dataset alone, and converts its
 * elements into the shared memory. The report goes to REPORT_FD (h5_wire.h). */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "io/h5_lzf.h"
#include "io/h5_scan_child.h"

static void limit(int resource, rlim_t value) {
  struct rlimit r = {value, value};
  struct rlimit old;
  if (getrlimit((__rlimit_resource_t)resource, &old) == 0 && old.rlim_max < value)
    r.rlim_cur = r.rlim_max = old.rlim_max;
  setrlimit((__rlimit_resource_t)resource, &r);
}

static void set_limits(unsigned long memory_mib, unsigned long cpu_seconds) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, cpu_seconds);
#ifndef __SANITIZE_ADDRESS__ /* whose shadow needs address space without end */
  limit(RLIMIT_AS, (rlim_t)memory_mib << 20);
#endif
  limit(RLIMIT_FSIZE, (rlim_t)memory_mib << 20); /* bounds the shared memory */
  signal(SIGXFSZ, SIG_IGN);
}

/* h5py's own filter: rows of variable length may lie under it. */
static size_t lzf(unsigned flags, size_t count, const unsigned params[], size_t size, size_t *room,
                  void **bytes) {
  if ((flags & H5Z_FLAG_REVERSE) == 0) return 0;
  size_t capacity = count >= 3 && params[2] > 0 ? params[2] : 16 * size;
  uint8_t *to = malloc(capacity);
  size_t made = to != NULL ? sn__h5_lzf_decode(*bytes, size, to, capacity) : SIZE_MAX;
  if (made == SIZE_MAX) {
    free(to);
    return 0;
  }
  free(*bytes);
  *bytes = to;
  *room = capacity;
  return made;
}

static void register_lzf(void) {
  static const H5Z_class2_t filter = {
      .version = H5Z_CLASS_T_VERS, .id = 32000, .decoder_present = 1, .name = "lzf", .filter = lzf};
  H5Zregister(&filter);
}

static hid_t open_file(const char *path) {
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  /* Chunks are read whole once each; a small cache would decode some twice. */
  H5Pset_cache(access, 0, 521, (size_t)64 << 20, 1.0);
  /* The default driver asks for the real path behind a link, which a descriptor of a file that was
   * replaced has no more; stdio's does not. */
  if (strncmp(path, "/proc/", 6) == 0) H5Pset_fapl_stdio(access);
  hid_t file = H5Fopen(path, H5F_ACC_RDONLY, access);
  H5Pclose(access);
  return file;
}

static uint64_t say_file(hid_t file) {
  H5F_info2_t info;
  memset(&info, 0, sizeof info);
  hsize_t userblock = 0, size = 0;
  haddr_t end = 0;
  hid_t plist = H5Fget_create_plist(file);
  if (plist >= 0) {
    H5Pget_userblock(plist, &userblock);
    H5Pclose(plist);
  }
  H5Fget_info2(file, &info);
  H5Fget_filesize(file, &size);
  H5Fget_eoa(file, &end);
  unsigned major = 0, minor = 0, release = 0;
  char library[64];
  H5get_libversion(&major, &minor, &release);
  snprintf(library, sizeof library, "libhdf5 %u.%u.%u", major, minor, release);
  sn__say_begin(SN__WIRE_FILE);
  sn__say_u32(info.super.version);
  sn__say_u64(userblock);
  sn__say_u64(size);
  sn__say_u64(end);
  sn__say_str(library);
  sn__say_end();
  return userblock;
}

int main(int argc, char **argv) {
  if (argc < 6) {
    fprintf(stderr, "sennit-h5scan is run by sennit itself; people want: sennit inspect FILE\n");
    return SN__SCAN_EXIT_USAGE;
  }
  set_limits(strtoul(argv[3], NULL, 10), strtoul(argv[4], NULL, 10));
  sn__say_start(atoi(argv[1]), atoi(argv[2]));
  const char *path = argv[5];
  setenv("HDF5_USE_FILE_LOCKING", "BEST_EFFORT", 0); /* read-only and network file systems */
  sn__say_keep_errors();
  register_lzf();
  sn__say_at("", "opening the file");
  hid_t file = open_file(path);
  if (file < 0) {
    sn__say_begin(SN__WIRE_FAILED);
    sn__say_str(sn__say_why());
    sn__say_end();
  } else {
    uint64_t userblock = say_file(file);
    int fd = userblock > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (argc > 6)
      sn__scan_dataset(file, argv[6], 0, userblock, fd, true);
    else
      sn__scan_walk(file, userblock, fd);
  }
  sn__say_begin(SN__WIRE_END);
  sn__say_end();
  _exit(0); /* closing a damaged file is one more way to crash */
}
