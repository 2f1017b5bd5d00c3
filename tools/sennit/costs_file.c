/* SPDX-License-Identifier: Apache-2.0 */
/* A profile as JSON:
 *
 *   {"format": "sennit profile", "version": 1, "rows": [
 *     {"op": "matmul", "shapes": "f32[*,64] f32[64,128] > f32[*,128]", "device": "cpu/1",
 *      "points": [[work, ns, samples], ...]}, ...]}
 */
#include <errno.h>
#include <string.h>

#include "core/alloc.h"
#include "tools/sennit/costs.h"

static const char format_name[] = "sennit profile";

enum { MOST_BYTES = 64 << 20 };

/* ---- reading ------------------------------------------------------------------------------- */

static sn_status read_text(const char *path, char **out_text) {
  FILE *f = fopen(path, "rb");
  if (f == NULL)
    return sn_status_make(SN_CODE_CONFIG,
                          "cannot read profile %s: %s; give a number to measure so many steps now",
                          path, strerror(errno));
  size_t used = 0, room = 0;
  char *text = NULL;
  sn_status status = SN_OK;
  do {
    if (!sn__grow((void **)&text, &room, used + 65537, 1)) {
      status = sn_status_out_of_memory();
      break;
    }
    size_t n = fread(text + used, 1, 65536, f);
    used += n;
    text[used] = '\0';
    if (n == 0) break;
  } while (used < MOST_BYTES);
  bool bad = ferror(f) != 0;
  fclose(f);
  if (status == SN_OK && bad) status = sn_status_make(SN_CODE_IO, "cannot read profile %s", path);
  if (status != SN_OK) {
    sn__free(text);
    return status;
  }
  *out_text = text;
  return SN_OK;
}

static sn_status no_profile(const char *path, const char *what) {
  return sn_status_make(SN_CODE_CONFIG,
                        "%s: not a profile: %s; write one with --profile N --save-profile FILE",
                        path, what);
}

static bool read_points(const cJSON *list, sn_profile_point *points, size_t *out_n) {
  size_t n = 0;
  const cJSON *item = NULL;
  if (!cJSON_IsArray(list)) return false;
  cJSON_ArrayForEach(item, list) {
    const cJSON *work = cJSON_GetArrayItem(item, 0), *ns = cJSON_GetArrayItem(item, 1),
                *samples = cJSON_GetArrayItem(item, 2);
    if (n == SN_PROFILE_POINTS_MOST || !cJSON_IsNumber(work) || !cJSON_IsNumber(ns) ||
        !cJSON_IsNumber(samples) || !(samples->valuedouble >= 0 && samples->valuedouble < 1e15))
      return false;
    points[n++] =
        (sn_profile_point){work->valuedouble, ns->valuedouble, (int64_t)samples->valuedouble};
  }
  *out_n = n;
  return true;
}

static sn_status read_row(const char *path, const cJSON *item, sn_profile *profile) {
  sn_profile_point points[SN_PROFILE_POINTS_MOST];
  sn_profile_row row = {
      .op = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "op")),
      .shapes = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "shapes")),
      .device = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "device")),
      .points = points};
  if (row.op == NULL || row.shapes == NULL || row.device == NULL)
    return no_profile(path, "a row without op, shapes or device");
  if (!read_points(cJSON_GetObjectItemCaseSensitive(item, "points"), points, &row.n_points))
    return no_profile(path, "a row whose points are no list of [work, ns, samples]");
  sn_status status = sn_profile_put(profile, &row);
  if (sn_status_code(status) != SN_CODE_INVALID) return status;
  sn_status out = no_profile(path, sn_status_message(status));
  sn_status_free(status);
  return out;
}

static sn_status read_rows(const char *path, const cJSON *root, sn_profile *profile) {
  const char *format = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(root, "format"));
  const cJSON *version = cJSON_GetObjectItemCaseSensitive(root, "version");
  const cJSON *rows = cJSON_GetObjectItemCaseSensitive(root, "rows"), *item = NULL;
  if (format == NULL || strcmp(format, format_name) != 0)
    return no_profile(path, "it does not say that it is one");
  if (!cJSON_IsNumber(version) || version->valuedouble != 1)
    return no_profile(path, "another version of the format");
  if (!cJSON_IsArray(rows)) return no_profile(path, "it has no rows");
  cJSON_ArrayForEach(item, rows) SN_TRY(read_row(path, item, profile));
  return SN_OK;
}

sn_status costs_read(const char *path, sn_profile **out_profile) {
  char *text = NULL;
  sn_profile *profile = NULL;
  SN_TRY(read_text(path, &text));
  json_hooks();
  cJSON *root = cJSON_Parse(text);
  sn__free(text);
  sn_status status = root == NULL ? no_profile(path, "not JSON") : sn_profile_create(&profile);
  if (status == SN_OK) status = read_rows(path, root, profile);
  cJSON_Delete(root);
  if (status != SN_OK) {
    sn_profile_free(profile);
    return status;
  }
  *out_profile = profile;
  return SN_OK;
}

/* ---- writing ------------------------------------------------------------------------------- */

static void put_row(json_report *r, cJSON *rows, const sn_profile_row *row) {
  cJSON *item = json_object(r, rows, NULL);
  json_text(r, item, "op", row->op);
  json_text(r, item, "shapes", row->shapes);
  json_text(r, item, "device", row->device);
  cJSON *points = json_list(r, item, "points");
  for (size_t i = 0; i < row->n_points; i++) {
    cJSON *point = json_list(r, points, NULL);
    json_number(r, point, NULL, row->points[i].work);
    json_number(r, point, NULL, row->points[i].ns);
    json_int(r, point, NULL, row->points[i].samples);
  }
}

sn_status costs_write(const char *path, const sn_profile *profile) {
  json_report r;
  SN_TRY(json_create(&r));
  json_text(&r, r.root, "format", format_name);
  json_int(&r, r.root, "version", 1);
  cJSON *rows = json_list(&r, r.root, "rows");
  for (size_t i = 0; i < sn_profile_row_count(profile); i++) {
    sn_profile_row row = sn_profile_row_at(profile, i);
    put_row(&r, rows, &row);
  }
  FILE *f = fopen(path, "w");
  sn_status status = SN_OK;
  if (f == NULL) {
    status = sn_status_make(SN_CODE_IO, "%s: cannot write: %s", path, strerror(errno));
  } else {
    status = json_print(&r, f);
    if (fclose(f) != 0 && status == SN_OK)
      status = sn_status_make(SN_CODE_IO, "%s: cannot write: %s", path, strerror(errno));
  }
  json_free(&r);
  return sn_status_context(status, "profile");
}
