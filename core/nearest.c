/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nearest.h"

#include <ctype.h>
#include <string.h>

enum { WORD_MAX = 64 };

static size_t word_length(const char *word) {
  return strnlen(word, WORD_MAX);
}

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

static bool same_letter(char a, char b) {
  return tolower((unsigned char)a) == tolower((unsigned char)b);
}

size_t sn__edit_distance(const char *a, const char *b) {
  /* Three rows of the optimal string alignment table: a swap looks two rows back. */
  size_t rows[3][WORD_MAX + 1];
  size_t n = word_length(a), m = word_length(b);
  for (size_t j = 0; j <= m; j++) {
    rows[0][j] = j;
  }
  for (size_t i = 1; i <= n; i++) {
    const size_t *before = rows[(i + 1) % 3], *above = rows[(i - 1) % 3];
    size_t *row = rows[i % 3];
    row[0] = i;
    for (size_t j = 1; j <= m; j++) {
      size_t cost = same_letter(a[i - 1], b[j - 1]) ? 0 : 1;
      row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + cost);
      bool swapped =
          i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]);
      if (swapped) row[j] = least(row[j], before[j - 2] + 1);
    }
  }
  return rows[n % 3][m];
}

/* A third of the longer word may be wrong; a word that the other begins with is near as well. */
static size_t allowed(const char *a, const char *b) {
  size_t n = word_length(a), m = word_length(b);
  size_t longer = n > m ? n : m;
  return longer < 3 ? 1 : (longer + 1) / 3;
}

static bool begins(const char *word, const char *start) {
  size_t n = word_length(start);
  return n >= 3 && strncasecmp(word, start, n) == 0;
}

bool sn__is_near(const char *a, const char *b) {
  return sn__edit_distance(a, b) <= allowed(a, b) || begins(a, b) || begins(b, a);
}

const char *sn__nearest(const char *word, const char *const *known, size_t count) {
  const char *best = NULL;
  size_t best_distance = SIZE_MAX;
  for (size_t i = 0; i < count; i++) {
    if (known[i] == NULL || !sn__is_near(word, known[i])) continue;
    size_t distance = sn__edit_distance(word, known[i]);
    if (distance < best_distance) {
      best = known[i];
      best_distance = distance;
    }
  }
  return best;
}
