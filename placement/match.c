/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/match.h"

#include <fnmatch.h>
#include <string.h>

#include "core/nearest.h"

bool sn__module_matches(const char *pattern, const char *path) {
  size_t n = strlen(pattern);
  if (strcmp(pattern, path) == 0 || (strncmp(path, pattern, n) == 0 && path[n] == '/')) return true;
  if (strpbrk(pattern, "*?[") == NULL) return false;
  if (fnmatch(pattern, path, FNM_PATHNAME) == 0) return true;
  /* A pattern takes what is beneath the modules it matches, too. */
  for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    char head[512];
    size_t length = (size_t)(slash - path);
    if (length >= sizeof head) break;
    memcpy(head, path, length);
    head[length] = '\0';
    if (fnmatch(pattern, head, FNM_PATHNAME) == 0) return true;
  }
  return false;
}

sn_status sn__fail_module(const sn_graph *g, const char *pattern) {
  const char **names = sn__calloc(g->n_modules + 1, sizeof *names);
  if (names == NULL) return sn_status_out_of_memory();
  size_t n = 0;
  for (size_t i = 1; i < g->n_modules; i++)
    names[n++] = g->modules[i].path;
  const char *near = sn__nearest(pattern, names, n);
  sn_status status =
      near != NULL
          ? sn_status_make(SN_CODE_CONFIG, "no module '%s'; did you mean '%s'?", pattern, near)
          : sn_status_make(SN_CODE_CONFIG, "no module '%s'; the model's first is '%s'", pattern,
                           n > 0 ? names[0] : "(none)");
  sn__free(names);
  return status;
}
