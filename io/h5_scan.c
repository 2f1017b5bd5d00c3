/* SPDX-License-Identifier: Apache-2.0 */
#include "io/h5_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"

#define MAX_REPORT_BYTES ((size_t)512 << 20)
#define REPORT_FD        3
#define SHARED_FD        4
#define FILE_FD          5

extern char **environ;

typedef struct child {
  const char *path;
  sn__h5_limits limits;
  pid_t pid;
  int report_fd, shared_fd; /* the parent's ends; -1 when closed */
  int file_fd;              /* the file, when it is open already; else -1 */
  uint8_t *bytes;
  size_t size, capacity;
  double hung; /* seconds waited in vain; 0: not */
  bool too_long;
  int status; /* waitpid's; -1: somebody else reaped it */
} child;

/* ---- the scanner's place ------------------------------------------------------------------- */

static bool runnable(const char *path) {
  return access(path, X_OK) == 0;
}

static sn_status find_scanner(char *out, size_t size) {
  const char *asked = getenv("SN_H5SCAN");
  if (asked != NULL && *asked != '\0') {
    snprintf(out, size, "%s", asked);
    if (runnable(out)) return SN_OK;
    return sn_status_make(SN_CODE_CONFIG, "SN_H5SCAN names %s, which is no program that can be run",
                          asked);
  }
  char self[3072];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  static const char *const places[] = {"sennit-h5scan", "../io/sennit-h5scan",
                                       "../../io/sennit-h5scan", "../libexec/sennit/sennit-h5scan"};
  if (n > 0) {
    self[n] = '\0';
    char *slash = strrchr(self, '/');
    if (slash != NULL) *slash = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
      snprintf(out, size, "%s/%s", self, places[i]);
      if (runnable(out)) return SN_OK;
    }
  }
  snprintf(out, size, "%s", SN_LIBEXECDIR "/sennit-h5scan");
  if (runnable(out)) return SN_OK;
  return sn_status_make(SN_CODE_NOT_FOUND,
                        "HDF5 files are opened by the program sennit-h5scan, which is not in %s: "
                        "install sennit, or name it in SN_H5SCAN",
                        SN_LIBEXECDIR);
}

/* ---- starting it --------------------------------------------------------------------------- */

static double from_environment(const char *name, double otherwise) {
  const char *text = getenv(name);
  double v = text != NULL ? strtod(text, NULL) : 0;
  return v > 0 ? v : otherwise;
}

static void fill_limits(sn__h5_limits *l) {
  if (l->idle_seconds <= 0) l->idle_seconds = from_environment("SN_H5SCAN_SECONDS", 8);
  if (l->total_seconds <= 0) l->total_seconds = 8 * l->idle_seconds;
  if (l->memory_mib == 0) l->memory_mib = (size_t)from_environment("SN_H5SCAN_MIB", 2048);
}

/* Descriptors that the child's own numbers cannot collide with. */
static int high(int fd) {
  if (fd < 0) return -1;
  int moved = fcntl(fd, F_DUPFD_CLOEXEC, 16);
  close(fd);
  return moved;
}

static int plan_files(posix_spawn_file_actions_t *actions, int report_end, int shared, int file) {
  int e = 0;
  for (int fd = 0; fd < 3 && e == 0; ++fd)
    e = posix_spawn_file_actions_addopen(actions, fd, "/dev/null", O_RDWR, 0);
  if (e == 0) e = posix_spawn_file_actions_adddup2(actions, report_end, REPORT_FD);
  if (e == 0 && shared >= 0) e = posix_spawn_file_actions_adddup2(actions, shared, SHARED_FD);
  if (e == 0 && file >= 0) e = posix_spawn_file_actions_adddup2(actions, file, FILE_FD);
  /* All is marked to be closed but these; the caller's other threads may have been careless. */
  if (e == 0) e = posix_spawn_file_actions_addclosefrom_np(actions, FILE_FD + (file >= 0));
  return e;
}

static int spawn(child *c, const char *scanner, const char *only, int report_end) {
  char memory[32], cpu[32], report[8], shared[8], file[32];
  snprintf(memory, sizeof memory, "%zu", c->limits.memory_mib);
  snprintf(cpu, sizeof cpu, "%.0f", c->limits.total_seconds + 1);
  snprintf(report, sizeof report, "%d", REPORT_FD);
  snprintf(shared, sizeof shared, "%d", c->shared_fd >= 0 ? SHARED_FD : -1);
  snprintf(file, sizeof file, "/proc/self/fd/%d", FILE_FD);
  char *argv[] = {(char *)scanner, report, shared,
                  memory,          cpu,    c->file_fd >= 0 ? file : (char *)c->path,
                  (char *)only,    NULL};
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  int e = posix_spawn_file_actions_init(&actions);
  if (e != 0) return e;
  e = posix_spawnattr_init(&attributes);
  if (e == 0) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0); /* a Ctrl-C is for us to handle */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
    e = plan_files(&actions, report_end, c->shared_fd, c->file_fd);
    if (e == 0) e = posix_spawn(&c->pid, scanner, &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
  }
  posix_spawn_file_actions_destroy(&actions);
  return e;
}

static sn_status start(child *c, const char *only) {
  char scanner[4096];
  SN_TRY(find_scanner(scanner, sizeof scanner));
  int ends[2];
  if (only != NULL) {
    c->shared_fd = high(memfd_create("sennit-h5", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (c->shared_fd < 0)
      return sn_status_make(SN_CODE_IO, "%s: no shared memory for converting %s: %s", c->path, only,
                            strerror(errno));
  }
  if (pipe2(ends, O_CLOEXEC) != 0)
    return sn_status_make(SN_CODE_IO, "%s: no pipe to its scanner: %s", c->path, strerror(errno));
  c->report_fd = high(ends[0]);
  int report_end = high(ends[1]);
  int e = c->report_fd < 0 || report_end < 0 ? errno : spawn(c, scanner, only, report_end);
  if (report_end >= 0) close(report_end);
  if (e != 0)
    return sn_status_make(SN_CODE_IO, "%s: %s cannot be started: %s", c->path, scanner,
                          strerror(e));
  return SN_OK;
}

/* ---- listening ----------------------------------------------------------------------------- */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static sn_status listen_to(child *c) {
  double begun = now(), heard = begun;
  for (;;) {
    double idle_left = heard + c->limits.idle_seconds - now();
    double total_left = begun + c->limits.total_seconds - now();
    double left = idle_left < total_left ? idle_left : total_left;
    if (left <= 0) {
      c->hung = idle_left <= 0 ? c->limits.idle_seconds : c->limits.total_seconds;
      return SN_OK;
    }
    struct pollfd p = {.fd = c->report_fd, .events = POLLIN};
    int ready = poll(&p, 1, (int)(left * 1000) + 1);
    if (ready < 0 && errno != EINTR)
      return sn_status_make(SN_CODE_IO, "%s: waiting for its scanner: %s", c->path,
                            strerror(errno));
    if (ready <= 0) continue;
    if (c->size == MAX_REPORT_BYTES) {
      c->too_long = true;
      return SN_OK;
    }
    if (!sn__grow((void **)&c->bytes, &c->capacity, c->size + 65536, 1))
      return sn_status_out_of_memory();
    size_t room = c->capacity - c->size;
    if (room > MAX_REPORT_BYTES - c->size) room = MAX_REPORT_BYTES - c->size;
    ssize_t n = read(c->report_fd, c->bytes + c->size, room);
    if (n == 0) return SN_OK;
    if (n > 0) {
      c->size += (size_t)n;
      heard = now();
    } else if (errno != EINTR && errno != EAGAIN) {
      return sn_status_make(SN_CODE_IO, "%s: reading from its scanner: %s", c->path,
                            strerror(errno));
    }
  }
}

static void reap(child *c) {
  if (c->pid <= 0) return;
  kill(c->pid, SIGKILL); /* it has said all, or must not say more */
  int status = -1;
  while (waitpid(c->pid, &status, 0) < 0)
    if (errno != EINTR) {
      status = -1;
      break;
    }
  c->status = status;
}

/* A child that has closed its pipe is about to end by itself: give it the moment that its exit
 * status is worth. */
static void reap_gently(child *c) {
  for (int i = 0; i < 200; ++i) {
    pid_t done = waitpid(c->pid, &c->status, WNOHANG);
    if (done == c->pid) return;
    if (done < 0 && errno != EINTR) {
      c->status = -1;
      return;
    }
    struct timespec pause = {0, i < 50 ? 200000 : 5000000};
    nanosleep(&pause, NULL);
  }
  reap(c);
}

/* ---- judging ------------------------------------------------------------------------------- */

/* The driver's name stands in clear near the superblock: "NCSAfami", "NCSAmult". */
static bool names_driver(const char *path, const char *name) {
  char head[1024];
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t n = pread(fd, head, sizeof head, 0);
  close(fd);
  return n > 0 && memmem(head, (size_t)n, name, strlen(name)) != NULL;
}

/* What libhdf5's words on opening mean to a user. */
static char *explain(const char *path, const char *words) {
  static const struct {
    const char *has, *means;
  } known[] = {
      {"signature not found", "not an HDF5 file: check the path, and that a download is whole"},
      {"truncated file", "cut short, it once was longer: copy or download it again"},
      {"unable to lock", "being written by another program: try again when that has finished"},
  };
  if (names_driver(path, "NCSAfami"))
    return sn__format("%s: one member of a family of files, which are one file only together: join "
                      "them with h5repart (libhdf5: %s)",
                      path, words);
  if (names_driver(path, "NCSAmult"))
    return sn__format(
        "%s: one part of a file split by kinds of data: where all parts are, join them "
        "with h5repack (libhdf5: %s)",
        path, words);
  if (strstr(words, "already open for write") != NULL || strstr(words, "consistency flag") != NULL)
    return sn__format(
        "%s: marked as open by a writer, which may have crashed: if nothing writes to it "
        "now, mend it with: h5clear -s %s",
        path, path);
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
    if (strstr(words, known[i].has) != NULL)
      return sn__format("%s: %s (libhdf5: %s)", path, known[i].means, words);
  return sn__format("%s: libhdf5 cannot open it (%s): it is damaged or no HDF5 file; get it again "
                    "from where it came",
                    path, words);
}

static char *describe_death(const child *c, const sn__h5_report *r) {
  static const char remedy[] = "the file is damaged or made to do this; get it again from where it "
                               "came, or have its maker write it anew";
  const char *stage = r->at_stage != NULL ? r->at_stage : "starting";
  const char *at = r->at_path != NULL && *r->at_path != '\0' ? r->at_path : "the file";
  if (c->hung > 0)
    return sn__format(
        "%s: libhdf5 did not end within %.0f s while at %s (%s): %s (SN_H5SCAN_SECONDS "
        "raises the limit)",
        c->path, c->hung, at, stage, remedy);
  if (c->too_long)
    return sn__format("%s: a description of it takes more than %zu MiB: %s", c->path,
                      MAX_REPORT_BYTES >> 20, remedy);
  if (c->status != -1 && WIFSIGNALED(c->status))
    return sn__format("%s: libhdf5 crashed (%s) while at %s (%s): %s", c->path,
                      strsignal(WTERMSIG(c->status)), at, stage, remedy);
  if (c->status != -1 && WIFEXITED(c->status) && WEXITSTATUS(c->status) == 3)
    return sn__format("%s: it takes more than the %zu MiB allowed while at %s (%s): %s "
                      "(SN_H5SCAN_MIB raises the limit)",
                      c->path, c->limits.memory_mib, at, stage, remedy);
  return sn__format("%s: libhdf5 stopped without a word while at %s (%s): %s", c->path, at, stage,
                    remedy);
}

static sn_status judge(const child *c, sn__h5_report *r) {
  r->file = sn__strdup(c->path);
  if (r->file == NULL) return sn_status_out_of_memory();
  char *words = NULL;
  if (r->failure != NULL)
    words = explain(c->path, r->failure);
  else if (!r->ended)
    words = describe_death(c, r);
  else
    return SN_OK;
  if (words == NULL) return sn_status_out_of_memory();
  sn__free(r->failure);
  r->failure = words;
  r->failure_code = SN_CODE_CORRUPT;
  return SN_OK;
}

static sn_status check_file(const child *c, uint64_t *out_size) {
  const char *path = c->path;
  struct stat s;
  if ((c->file_fd >= 0 ? fstat(c->file_fd, &s) : stat(path, &s)) != 0)
    return sn_status_make(errno == ENOENT ? SN_CODE_NOT_FOUND : SN_CODE_IO, "%s: %s", path,
                          errno == ENOENT ? "no such file: check the path" : strerror(errno));
  if (!S_ISREG(s.st_mode))
    return sn_status_make(SN_CODE_IO, "%s: a %s, not a file: give the path of an HDF5 file", path,
                          S_ISDIR(s.st_mode) ? "folder" : "device or pipe");
  if (c->file_fd < 0 && access(path, R_OK) != 0)
    return sn_status_make(SN_CODE_IO, "%s: %s", path, strerror(errno));
  *out_size = (uint64_t)s.st_size;
  return SN_OK;
}

static sn_status bounds_of(const child *c, sn__h5_bounds *b) {
  SN_TRY(check_file(c, &b->file_size));
  if (c->shared_fd < 0) return SN_OK;
  struct stat s;
  if (fcntl(c->shared_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) !=
          0 ||
      fstat(c->shared_fd, &s) != 0)
    return sn_status_make(SN_CODE_IO, "%s: sealing what was converted: %s", c->path,
                          strerror(errno));
  b->shared_size = (uint64_t)s.st_size;
  return SN_OK;
}

static sn_status scan(const char *path, int file_fd, const char *only, const sn__h5_limits *limits,
                      sn__h5_report **out_report, int *out_fd) {
  child c = {.path = path, .report_fd = -1, .shared_fd = -1, .file_fd = file_fd, .status = -1};
  if (limits != NULL) c.limits = *limits;
  fill_limits(&c.limits);
  sn__h5_bounds bounds = {0};
  sn__h5_report *report = NULL;
  sn_status s;
  SN_TRY_GOTO(s, check_file(&c, &bounds.file_size), end);
  if (bounds.file_size == 0) {
    s = sn_status_make(SN_CODE_CORRUPT,
                       "%s: an empty file: its writer ended before writing, or the "
                       "copy failed; get it again",
                       path);
    goto end;
  }
  SN_TRY_GOTO(s, start(&c, only), end);
  s = listen_to(&c);
  if (s != SN_OK || c.hung > 0 || c.too_long)
    reap(&c);
  else
    reap_gently(&c);
  if (s == SN_OK) s = bounds_of(&c, &bounds);
  if (s == SN_OK)
    s = sn_status_context(sn__h5_report_parse(c.bytes, c.size, bounds, &report), "%s", path);
  if (s == SN_OK) s = judge(&c, report);
end:
  if (c.report_fd >= 0) close(c.report_fd);
  sn__free(c.bytes);
  if (s != SN_OK) {
    sn__h5_report_free(report);
    if (c.shared_fd >= 0) close(c.shared_fd);
    return s;
  }
  *out_report = report;
  if (out_fd != NULL) *out_fd = c.shared_fd;
  return SN_OK;
}

sn_status sn__h5_scan(const char *path, const sn__h5_limits *limits, sn__h5_report **out_report) {
  return scan(path, -1, NULL, limits, out_report, NULL);
}

sn_status sn__h5_scan_open(int fd, const char *path, const sn__h5_limits *limits,
                           sn__h5_report **out_report) {
  int file = fcntl(fd, F_DUPFD_CLOEXEC, 16); /* see high() */
  if (file < 0) return sn_status_make(SN_CODE_IO, "%s: %s", path, strerror(errno));
  sn_status status = scan(path, file, NULL, limits, out_report, NULL);
  close(file);
  return status;
}

sn_status sn__h5_scan_convert(const char *path, const char *dataset, const sn__h5_limits *limits,
                              sn__h5_report **out_report, int *out_fd) {
  return scan(path, -1, dataset, limits, out_report, out_fd);
}
