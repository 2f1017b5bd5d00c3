/* SPDX-License-Identifier: Apache-2.0 */
/* Drives a fuzz target without libFuzzer: runs every seed file, then mutations of them until the
 * time is up. A crash, a sanitizer's report or 20 s without an end leaves the input in
 * fuzz-crash.bin.
 *
 *     fuzz_yaml --seconds 60 --seed 1 model.yaml
 *
 * A target defines LLVMFuzzerTestOneInput(), so `clang -fsanitize=fuzzer` takes it without this
 * file, and may define sn__fuzz_words, tokens worth inserting. */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/api.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern const char *const sn__fuzz_words[] __attribute__((weak)); /* NULL at the end */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

enum { INPUT_MOST = 1 << 16, SEEDS_MOST = 1024, RUN_LIMIT_S = 20 };

static struct {
  uint8_t *bytes;
  size_t size;
} seeds[SEEDS_MOST];
static size_t seed_count;
static uint8_t input[INPUT_MOST];
static size_t input_size;
static uint64_t state;

static void keep_input(void) {
  int file = open("fuzz-crash.bin", O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0) return;
  ssize_t wrote = write(file, input, input_size);
  close(file);
  static const char words[] = "the input is in fuzz-crash.bin\n";
  if (wrote >= 0) wrote = write(STDERR_FILENO, words, sizeof words - 1);
  (void)wrote;
}

static void on_signal(int number) {
  keep_input();
  signal(number, SIG_DFL);
  raise(number);
}

static uint64_t draw(uint64_t below) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return below == 0 ? 0 : state % below;
}

static bool add_seed(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL || seed_count == SEEDS_MOST) {
    if (file != NULL) fclose(file);
    return false;
  }
  uint8_t *bytes = malloc(INPUT_MOST);
  if (bytes == NULL) abort();
  seeds[seed_count].bytes = bytes;
  seeds[seed_count++].size = fread(bytes, 1, INPUT_MOST, file);
  fclose(file);
  return true;
}

/* Replaces `cut` bytes at `at` by `count` bytes. */
static void replace_bytes(size_t at, size_t cut, const uint8_t *bytes, size_t count) {
  if (input_size - cut + count > INPUT_MOST) return;
  memmove(input + at + count, input + at + cut, input_size - at - cut);
  if (count > 0) memcpy(input + at, bytes, count);
  input_size = input_size - cut + count;
}

static void mutate_once(void) {
  size_t at = draw(input_size + 1), left = input_size - at;
  size_t count = draw((left < 64 ? left : 64) + 1);
  uint8_t copy[64], byte = (uint8_t)draw(256);
  memcpy(copy, input + at, count);
  switch (draw(7)) {
  case 0:
    if (left > 0) input[at] = byte;
    break;
  case 1:
    if (left > 0) input[at] ^= (uint8_t)(1u << draw(8));
    break;
  case 2: replace_bytes(at, count, NULL, 0); break;
  case 3: replace_bytes(draw(input_size + 1), 0, copy, count); break;
  case 4: replace_bytes(at, 0, &byte, 1); break;
  case 5: {
    if (seed_count == 0) break;
    size_t other = draw(seed_count), from = draw(seeds[other].size + 1);
    size_t room = seeds[other].size - from;
    replace_bytes(at, count, seeds[other].bytes + from, draw((room < 256 ? room : 256) + 1));
    break;
  }
  default: {
    if (sn__fuzz_words == NULL) break;
    size_t words = 0;
    while (sn__fuzz_words[words] != NULL) {
      words++;
    }
    const char *word = sn__fuzz_words[draw(words)];
    replace_bytes(at, draw(2) * count, (const uint8_t *)word, strlen(word));
  }
  }
}

static void run_one(void) {
  alarm(RUN_LIMIT_S);
  LLVMFuzzerTestOneInput(input, input_size);
  alarm(0);
}

static void load(size_t seed) {
  input_size = seeds[seed].size;
  memcpy(input, seeds[seed].bytes, input_size);
}

int main(int argc, char **argv) {
  double seconds = 10;
  state = 1;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
      seconds = atof(argv[++i]);
    else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
      state = strtoull(argv[++i], NULL, 10);
    else if (!add_seed(argv[i]))
      fprintf(stderr, "fuzz: cannot read %s\n", argv[i]);
  }
  state = state * UINT64_C(0x9E3779B97F4A7C15) | 1;
  if (__sanitizer_set_death_callback != NULL) __sanitizer_set_death_callback(keep_input);
  signal(SIGABRT, on_signal);
  signal(SIGALRM, on_signal);
  if (__sanitizer_set_death_callback == NULL) signal(SIGSEGV, on_signal);
  uint64_t runs = 0;
  for (size_t i = 0; i < seed_count; i++, runs++) {
    load(i);
    run_one();
  }
  if (seed_count == 0) seeds[seed_count++].bytes = calloc(1, 1);
  time_t end = time(NULL) + (time_t)seconds;
  for (; time(NULL) < end; runs++) {
    load(draw(seed_count));
    for (uint64_t m = 1 + draw(8); m > 0; m--) {
      mutate_once();
    }
    run_one();
  }
  printf("fuzz: %llu runs, nothing found\n", (unsigned long long)runs);
  for (size_t i = 0; i < seed_count; i++) {
    free(seeds[i].bytes);
  }
  return 0;
}
