/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints and safetensors: what was written comes back; what was damaged is refused; a save
 * that is cut off anywhere leaves the old file or the new one, whole. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/sha256.h"
#include "io/checkpoint.h"
#include "io/checkpoint_impl.h"
#include "io/safe_file.h"
#include "tests/check_sn.h"

static char folder[256];

static const char *in_folder(const char *name) {
  static char path[8][512];
  static int next;
  char *p = path[next++ % 8];
  snprintf(p, sizeof path[0], "%s/%s", folder, name);
  return p;
}

static void setup(void) {
  snprintf(folder, sizeof folder, "/tmp/sennit-checkpoint-XXXXXX");
  ck_assert(mkdtemp(folder) != NULL);
}

static void teardown(void) {
  sn__file_set_ops(NULL);
  char command[300];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  ck_assert_int_eq(system(command), 0);
}

static const float weights[6] = {1, -2, 0.5f, 3e38f, 1e-40f, 0};
static const int64_t steps[1] = {123456789012345};
static const uint8_t flags[3] = {1, 0, 255};

static const sn_named_tensor tensors[] = {
    {"variables/trunk/dense/weight", SN_F32, {2, {2, 3}}, weights},
    {"slots/trunk/dense/weight/adam.m", SN_F32, {2, {2, 3}}, weights},
    {"state/steps", SN_I64, {0, {0}}, steps},
    {"variables/empty", SN_F32, {2, {0, 4}}, NULL},
    {"variables/flags", SN_U8, {1, {3}}, flags},
};
static const sn_named_text texts[] = {{"graph", "{\"nodes\": []}", 13}, {"config", "", 0}};
enum { N_TENSORS = 5, N_TEXTS = 2 };

static sn_status save(const char *path) {
  return sn_checkpoint_write(path, tensors, N_TENSORS, texts, N_TEXTS);
}

static void check_content(const sn_checkpoint *c) {
  ck_assert_uint_eq(sn_checkpoint_tensor_count(c), N_TENSORS);
  for (int i = 0; i < N_TENSORS; i++) {
    const sn_named_tensor *t = sn_checkpoint_find(c, tensors[i].name);
    ck_assert_msg(t != NULL, "%s", tensors[i].name);
    ck_assert_int_eq(t->dtype, tensors[i].dtype);
    ck_assert(sn_shape_equal(&t->shape, &tensors[i].shape));
    size_t bytes = (size_t)sn__shape_size(&t->shape) * sn_dtype_size(t->dtype);
    if (bytes > 0) ck_assert_mem_eq(t->data, tensors[i].data, bytes);
  }
  const sn_named_text *g = sn_checkpoint_text(c, "graph");
  ck_assert(g != NULL && g->length == 13 && memcmp(g->text, texts[0].text, 13) == 0);
  ck_assert(sn_checkpoint_text(c, "nothing") == NULL);
}

START_TEST(test_round_trip) {
  const char *path = in_folder("a.h5");
  ck_sn_ok(save(path));
  ck_assert(sn_checkpoint_probe(path));
  sn_checkpoint *c = NULL;
  ck_sn_ok(sn_checkpoint_open(path, &c));
  check_content(c);
  sn_checkpoint_free(c);
  ck_assert_int_eq(access(in_folder("a.h5.tmp"), F_OK), -1);
}
END_TEST

START_TEST(test_same_bytes) {
  const char *a = in_folder("a.h5"), *b = in_folder("b.h5");
  ck_sn_ok(save(a));
  ck_sn_ok(save(b));
  void *x, *y;
  size_t nx, ny;
  ck_sn_ok(sn__file_read(a, 1 << 20, &x, &nx));
  ck_sn_ok(sn__file_read(b, 1 << 20, &y, &ny));
  ck_assert_uint_eq(nx, ny);
  ck_assert_mem_eq(x, y, nx);
  sn__free(x);
  sn__free(y);
}
END_TEST

static void write_bytes(const char *path, const void *data, size_t size) {
  FILE *f = fopen(path, "wb");
  ck_assert(f != NULL);
  ck_assert_uint_eq(fwrite(data, 1, size, f), size);
  fclose(f);
}

START_TEST(test_damage) {
  const char *path = in_folder("a.h5"), *bad = in_folder("bad.h5");
  ck_sn_ok(save(path));
  void *data;
  size_t size;
  ck_sn_ok(sn__file_read(path, 1 << 24, &data, &size));
  sn_checkpoint *c = NULL;
  /* Any flipped bit behind the user block, and any in what the block says. */
  for (size_t at = 0; at < size; at += at < 200 ? 1 : 997) {
    char was = ((char *)data)[at];
    ((char *)data)[at] = (char)(was ^ 0x10);
    write_bytes(bad, data, size);
    sn_status s = sn_checkpoint_open(bad, &c);
    ck_assert_msg(s != SN_OK, "byte %zu of %zu changed unnoticed", at, size);
    sn_status_free(s);
    ((char *)data)[at] = was;
  }
  for (size_t cut = 0; cut < size; cut += 1 + size / 40) {
    write_bytes(bad, data, cut);
    ck_sn_fails(sn_checkpoint_open(bad, &c), SN_CODE_CORRUPT, "bad.h5");
  }
  char *reader = strstr(data, "min_reader 1");
  ck_assert(reader != NULL);
  reader[strlen("min_reader ")] = '9';
  write_bytes(bad, data, size);
  ck_sn_fails(sn_checkpoint_open(bad, &c), SN_CODE_UNSUPPORTED, "use a newer sennit");
  ck_sn_fails(sn_checkpoint_open(in_folder("none.h5"), &c), SN_CODE_NOT_FOUND, "no such file");
  sn__free(data);
}
END_TEST

/* ---- a disk that forgets what was not synced ------------------------------------------------ */

typedef enum event_kind { CREATE, WRITE, FSYNC, RENAME, SYNC_FOLDER } event_kind;

typedef struct event {
  event_kind what;
  char from[512], to[512];
  char *data;
  size_t size;
} event;

static event events[256];
static int n_events, fail_at, calls;

static event *record(event_kind what) {
  ck_assert_int_lt(n_events, 256);
  event *e = &events[n_events++];
  memset(e, 0, sizeof *e);
  e->what = what;
  return e;
}

static bool failing(void) {
  if (calls++ != fail_at) return false;
  errno = ENOSPC;
  return true;
}

static int log_create(void *user, const char *path) {
  (void)user;
  if (failing()) return -1;
  snprintf(record(CREATE)->to, 512, "%s", path);
  return open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
}

static int64_t log_write(void *user, int fd, const void *data, size_t size) {
  (void)user;
  if (failing()) return -1;
  size = size > 4096 ? 4096 : size; /* many short writes: many prefixes */
  event *e = record(WRITE);
  e->data = malloc(size);
  memcpy(e->data, data, size);
  e->size = size;
  return write(fd, data, size);
}

static int log_fsync(void *user, int fd) {
  (void)user;
  if (failing()) return -1;
  record(FSYNC);
  return fsync(fd);
}

static int log_close(void *user, int fd) {
  (void)user;
  return close(fd);
}

static int log_rename(void *user, const char *from, const char *to) {
  (void)user;
  if (failing()) return -1;
  event *e = record(RENAME);
  snprintf(e->from, 512, "%s", from);
  snprintf(e->to, 512, "%s", to);
  return rename(from, to);
}

static int log_sync_folder(void *user, const char *path) {
  (void)user;
  (void)path;
  if (failing()) return -1;
  record(SYNC_FOLDER);
  return 0;
}

static int log_unlink(void *user, const char *path) {
  (void)user;
  return unlink(path);
}

static const sn__file_ops log_ops = {NULL,      log_create, log_write,       log_fsync,
                                     log_close, log_rename, log_sync_folder, log_unlink};

/* The worst disk after the first `n` events: content counts only when synced; a rename may or may
 * not have reached the disk until the folder is synced (`kept`: it did). Writes what is then at
 * `path`. */
static void replay(int n, bool renamed, const void *old, size_t old_size, const char *path) {
  char *content = calloc(1, 1 << 20);
  size_t size = 0, synced = 0;
  bool in_place = false, durable = false;
  for (int i = 0; i < n; i++) {
    if (events[i].what == CREATE) size = synced = 0;
    if (events[i].what == WRITE) {
      memcpy(content + size, events[i].data, events[i].size);
      size += events[i].size;
    }
    if (events[i].what == FSYNC) synced = size;
    if (events[i].what == RENAME) in_place = true;
    if (events[i].what == SYNC_FOLDER) durable = in_place;
  }
  if (durable || (in_place && renamed))
    write_bytes(path, content, synced);
  else
    write_bytes(path, old, old_size);
  free(content);
}

/* Writes `data` with its first 512 bytes as a checkpoint's, whose checksum holds. */
static void sign(const char *path, char *data, size_t size) {
  sn_sha256 hash;
  uint8_t digest[32];
  char hex[65];
  sn_sha256_begin(&hash);
  sn_sha256_add(&hash, data + 512, size - 512);
  sn_sha256_end(&hash, digest);
  sn_sha256_hex(digest, hex);
  memset(data, 0, 512);
  snprintf(data, 512, "sennit checkpoint\nformat_version 1\nmin_reader 1\nbytes %zu\nsha256 %s\n",
           size - 512, hex);
  sn__bytes all = {data, size};
  ck_sn_ok(sn__file_replace(path, &all, 1));
}

/* A file whose checksum holds, made by hand: one dataset that claims `rows` x `columns` bytes of
 * which none was ever written. */
static const char *claims(hsize_t rows, hsize_t columns) {
  const char *path = in_folder("claims");
  hid_t create = H5Pcreate(H5P_FILE_CREATE), chunked = H5Pcreate(H5P_DATASET_CREATE);
  ck_assert_int_ge(H5Pset_userblock(create, 512), 0);
  ck_assert_int_ge(H5Pset_chunk(chunked, 2, (const hsize_t[]){1, 1}), 0);
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, create, H5P_DEFAULT);
  hid_t group = H5Gcreate2(file, "tensors", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  hid_t space = H5Screate_simple(2, (const hsize_t[]){rows, columns}, NULL);
  hid_t set = H5Dcreate2(group, "w", H5T_STD_U8LE, space, H5P_DEFAULT, chunked, H5P_DEFAULT);
  ck_assert_int_ge(set, 0);
  H5Dclose(set);
  H5Sclose(space);
  H5Gclose(group);
  H5Fclose(file);
  H5Pclose(chunked);
  H5Pclose(create);
  void *data = NULL;
  size_t size = 0;
  ck_sn_ok(sn__file_read(path, 1 << 20, &data, &size));
  sign(path, data, size);
  sn__free(data);
  return path;
}

START_TEST(test_claims) {
  sn_checkpoint *c = NULL;
  ck_sn_fails(sn_checkpoint_open(claims(4, 8), &c), SN_CODE_CORRUPT,
              "'/tensors/w' is not stored as checkpoints store it");
  static const hsize_t sizes[][2] = {{1 << 20, 1 << 20}, {64, 4096}};
  for (int i = 0; i < 2; i++)
    ck_sn_fails(sn_checkpoint_open(claims(sizes[i][0], sizes[i][1]), &c), SN_CODE_CORRUPT,
                "'/tensors/w' claims more bytes than the file has");
  ck_sn_fails(sn_checkpoint_open(claims((hsize_t)1 << 62, 1), &c), SN_CODE_CORRUPT,
              "the file is hostile");
}
END_TEST

/* Files that crash libhdf5, signed as checkpoints: it meets them in a process of its own. */
START_TEST(test_hostile_content) {
  char strangers[512];
  const char *shared = getenv("SN_SHARED"), *path = in_folder("hostile");
  snprintf(strangers, sizeof strangers, "%s/data/cve", shared != NULL ? shared : "../shared");
  DIR *d = opendir(strangers);
  if (d == NULL) {
    printf("skipped: no %s\n", strangers);
    return;
  }
  int files = 0, refused = 0;
  for (const struct dirent *e; (e = readdir(d)) != NULL;) {
    char name[1024];
    snprintf(name, sizeof name, "%s/%s", strangers, e->d_name);
    void *data = NULL;
    size_t size = 0;
    sn_status read = e->d_name[0] == '.' ? NULL : sn__file_read(name, 1 << 24, &data, &size);
    if (read != SN_OK || data == NULL) {
      sn_status_free(read);
      continue;
    }
    char *all = calloc(1, size + 512);
    memcpy(all + 512, data, size);
    sign(path, all, size + 512);
    free(all);
    sn__free(data);
    sn_checkpoint *c = NULL;
    sn_status status = sn_checkpoint_open(path, &c);
    /* Some are crashed by nothing that a checkpoint has, and hold none of it. */
    if (status == SN_OK)
      ck_assert_msg(sn_checkpoint_tensor_count(c) == 0, "%s: holds tensors", name);
    else
      ck_assert_msg(sn_status_code(status) == SN_CODE_CORRUPT, "%s: %s", name,
                    sn_status_message(status));
    refused += status != SN_OK;
    sn_checkpoint_free(c);
    sn_status_free(status);
    files++;
  }
  closedir(d);
  ck_assert_int_gt(files, 0);
  ck_assert_int_gt(refused * 4, files * 3);
}
END_TEST

START_TEST(test_every_prefix_of_a_save) {
  const char *path = in_folder("a.h5"), *after = in_folder("after.h5");
  const sn_named_text old_text[] = {{"old", "old", 3}};
  ck_sn_ok(sn_checkpoint_write(path, tensors, 1, old_text, 1));
  void *old;
  size_t old_size;
  ck_sn_ok(sn__file_read(path, 1 << 20, &old, &old_size));
  fail_at = -1;
  sn__file_set_ops(&log_ops);
  ck_sn_ok(save(path));
  sn__file_set_ops(NULL);
  ck_assert_int_gt(n_events, 5);
  for (int n = 0; n <= n_events; n++)
    for (int renamed = 0; renamed < 2; renamed++) {
      replay(n, renamed != 0, old, old_size, after);
      sn_checkpoint *c = NULL;
      ck_sn_ok(sn_checkpoint_open(after, &c));
      if (sn_checkpoint_text(c, "old") == NULL) check_content(c);
      if (n == n_events) ck_assert(sn_checkpoint_text(c, "old") == NULL);
      sn_checkpoint_free(c);
    }
  for (int i = 0; i < n_events; i++)
    free(events[i].data);
  sn__free(old);
}
END_TEST

START_TEST(test_every_call_fails) {
  const char *path = in_folder("a.h5"), *temporary = in_folder("a.h5.tmp");
  const sn_named_text old_text[] = {{"old", "old", 3}};
  ck_sn_ok(sn_checkpoint_write(path, tensors, 1, old_text, 1));
  bool saved = false;
  for (fail_at = 0; !saved; fail_at++) {
    ck_assert_int_lt(fail_at, 200);
    n_events = calls = 0;
    sn__file_set_ops(&log_ops);
    sn_status s = save(path);
    sn__file_set_ops(NULL);
    saved = s == SN_OK;
    if (!saved) {
      ck_assert_int_eq(sn_status_code(s), SN_CODE_IO);
      ck_assert(strstr(sn_status_message(s), "a.h5") != NULL);
      ck_assert(strstr(sn_status_message(s), "errno 28") != NULL);
      ck_assert_int_eq(access(temporary, F_OK), -1);
    }
    sn_status_free(s);
    sn_checkpoint *c = NULL;
    ck_sn_ok(sn_checkpoint_open(path, &c));
    sn_checkpoint_free(c);
    for (int i = 0; i < n_events; i++)
      free(events[i].data);
  }
}
END_TEST

START_TEST(test_places_that_cannot_be_written) {
  ck_sn_fails(save(in_folder("no/such/folder/a.h5")), SN_CODE_IO, "the folder must exist");
  ck_sn_fails(save("/proc/a.h5"), SN_CODE_IO, "/proc/a.h5");
}
END_TEST

/* ---- safetensors ---------------------------------------------------------------------------- */

START_TEST(test_safetensors_round_trip) {
  const char *path = in_folder("a.safetensors");
  const sn_named_text metadata[] = {{"format", "pt", 2}};
  ck_sn_ok(sn_safetensors_write(path, tensors, N_TENSORS, metadata, 1));
  sn_checkpoint *c = NULL;
  ck_sn_ok(sn_safetensors_read(path, &c));
  ck_assert_uint_eq(sn_checkpoint_tensor_count(c), N_TENSORS);
  const sn_named_tensor *t = sn_checkpoint_find(c, "variables.trunk.dense.weight");
  ck_assert(t != NULL && t->shape.rank == 2 && t->shape.dims[1] == 3);
  ck_assert_mem_eq(t->data, weights, sizeof weights);
  sn_checkpoint_free(c);
}
END_TEST

static sn_status parse(const char *header, size_t data_bytes, sn_checkpoint **out) {
  size_t n = strlen(header);
  uint8_t *bytes = calloc(1, 8 + n + data_bytes + 1);
  bytes[0] = (uint8_t)n;
  bytes[1] = (uint8_t)(n >> 8);
  memcpy(bytes + 8, header, n);
  sn_status s = sn__safetensors_parse(bytes, 8 + n + data_bytes, out);
  free(bytes);
  return s;
}

START_TEST(test_safetensors_refusals) {
  sn_checkpoint *c = NULL;
  ck_sn_ok(parse("{\"a\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, &c));
  ck_assert_int_eq(sn_checkpoint_tensor(c, 0)->dtype, SN_F32);
  sn_checkpoint_free(c);
  static const struct {
    const char *header;
    size_t bytes;
    sn_code code;
    const char *words;
  } bad[] = {
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, SN_CODE_CORRUPT,
       "do not fit"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 8, SN_CODE_CORRUPT,
       "behind its last"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, SN_CODE_CORRUPT,
       "hole"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,400]}}", 8, SN_CODE_CORRUPT,
       "do not fit"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, SN_CODE_CORRUPT,
       "no size"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1e300],\"data_offsets\":[0,4]}}", 4, SN_CODE_CORRUPT,
       "no size"},
      {"{\"a\":{\"dtype\":\"C64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8, SN_CODE_UNSUPPORTED,
       "C64"},
      {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1,
       SN_CODE_CORRUPT, "dimensions"},
      {"{\"a\":3}", 0, SN_CODE_UNSUPPORTED, "type"},
      {"[1]", 0, SN_CODE_CORRUPT, "JSON object"},
      {"{", 0, SN_CODE_CORRUPT, "JSON"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    ck_sn_fails(parse(bad[i].header, bad[i].bytes, &c), bad[i].code, bad[i].words);
  uint8_t huge[8] = {255, 255, 255, 255, 255, 255, 255, 127};
  ck_sn_fails(sn__safetensors_parse(huge, 8, &c), SN_CODE_CORRUPT, "cut short");
  ck_sn_fails(sn__safetensors_parse(huge, 3, &c), SN_CODE_CORRUPT, "cut short");
}
END_TEST

/* One of two checkpoints whose values lie in different places: `big` has as many 2s as the other
 * has 1s, and as many again. */
static sn_status save_one_of_two(const char *path, bool big) {
  enum { FEW = 1000 };
  static float values[2 * FEW];
  for (int i = 0; i < 2 * FEW; i++)
    values[i] = big ? 2 : 1;
  const int64_t n = big ? 2 * FEW : FEW;
  const sn_named_tensor two[] = {{"a", SN_F32, {1, {n}}, values}, {"b", SN_F32, {1, {n}}, values}};
  return sn_checkpoint_write(path, two, 2, NULL, 0);
}

/* A server reads what a training run is replacing: the old one or the new one, never half of each.
 */
START_TEST(test_read_while_replaced) {
  const char *path = in_folder("last.h5");
  ck_sn_ok(save_one_of_two(path, false));
  pid_t writer = fork();
  ck_assert_int_ge(writer, 0);
  if (writer == 0) {
    for (bool big = true; getppid() != 1; big = !big)
      sn_status_free(save_one_of_two(path, big));
    _exit(0);
  }
  int seen[2] = {0, 0};
  for (int i = 0; i < 200; i++) {
    sn_checkpoint *c = NULL;
    sn_status status = sn_checkpoint_open(path, &c);
    if (status != SN_OK) kill(writer, SIGKILL);
    ck_sn_ok(status);
    const sn_named_tensor *t = sn_checkpoint_find(c, "b");
    ck_assert_ptr_nonnull(t);
    const float *values = t->data;
    bool big = t->shape.dims[0] == 2000;
    for (int64_t k = 0; k < t->shape.dims[0]; k++)
      if (values[k] != (big ? 2 : 1)) kill(writer, SIGKILL);
    for (int64_t k = 0; k < t->shape.dims[0]; k++)
      ck_assert_msg(values[k] == (big ? 2 : 1), "read %d: value %d is %g", i, (int)k, values[k]);
    seen[big]++;
    sn_checkpoint_free(c);
  }
  kill(writer, SIGKILL);
  waitpid(writer, NULL, 0);
  ck_assert_int_gt(seen[0] * seen[1], 0);
}
END_TEST

START_TEST(test_sha256) {
  /* FIPS 180-4's own examples, and one longer than a block fed in odd pieces. */
  static const struct {
    const char *text, *hex;
  } cases[] = {
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
  };
  for (size_t i = 0; i < 3; i++)
    for (size_t piece = 1; piece < 70; piece += 23) {
      sn_sha256 h;
      uint8_t digest[32];
      char hex[65];
      size_t n = strlen(cases[i].text);
      sn_sha256_begin(&h);
      for (size_t at = 0; at < n; at += piece)
        sn_sha256_add(&h, cases[i].text + at, n - at < piece ? n - at : piece);
      sn_sha256_end(&h, digest);
      sn_sha256_hex(digest, hex);
      ck_assert_str_eq(hex, cases[i].hex);
    }
}
END_TEST

static Suite *make_suite(void) {
  Suite *suite = suite_create("checkpoint");
  TCase *c = tcase_create("files");
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_add_test(c, test_round_trip);
  tcase_add_test(c, test_same_bytes);
  tcase_add_test(c, test_damage);
  tcase_add_test(c, test_claims);
  tcase_add_test(c, test_hostile_content);
  tcase_add_test(c, test_every_prefix_of_a_save);
  tcase_add_test(c, test_every_call_fails);
  tcase_add_test(c, test_places_that_cannot_be_written);
  tcase_add_test(c, test_safetensors_round_trip);
  tcase_add_test(c, test_safetensors_refusals);
  tcase_add_test(c, test_read_while_replaced);
  tcase_add_test(c, test_sha256);
  suite_add_tcase(suite, c);
  return suite;
}

SN_TEST_MAIN(make_suite)
