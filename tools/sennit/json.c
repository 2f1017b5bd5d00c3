/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/json.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"

void json_hooks(void) {
  cJSON_Hooks hooks = {sn__alloc, sn__free};
  cJSON_InitHooks(&hooks);
}

sn_status json_create(json_report *out_report) {
  json_hooks();
  *out_report = (json_report){.root = cJSON_CreateObject()};
  return out_report->root != NULL ? SN_OK : sn_status_out_of_memory();
}

void json_free(json_report *report) {
  cJSON_Delete(report->root);
  report->root = NULL;
}

/* Takes `item` whatever happens; NULL is a failure. */
static cJSON *put(json_report *report, cJSON *into, const char *key, cJSON *item) {
  bool done = item != NULL && into != NULL &&
              (key != NULL ? cJSON_AddItemToObject(into, key, item) != 0
                           : cJSON_AddItemToArray(into, item) != 0);
  if (done) return item;
  cJSON_Delete(item);
  report->failed = true;
  return NULL;
}

cJSON *json_object(json_report *report, cJSON *into, const char *key) {
  return put(report, into, key, cJSON_CreateObject());
}

cJSON *json_list(json_report *report, cJSON *into, const char *key) {
  return put(report, into, key, cJSON_CreateArray());
}

void json_text(json_report *report, cJSON *into, const char *key, const char *value) {
  put(report, into, key, value != NULL ? cJSON_CreateString(value) : cJSON_CreateNull());
}

void json_number(json_report *report, cJSON *into, const char *key, double value) {
  put(report, into, key, isfinite(value) ? cJSON_CreateNumber(value) : cJSON_CreateNull());
}

void json_int(json_report *report, cJSON *into, const char *key, int64_t value) {
  char text[32];
  snprintf(text, sizeof text, "%lld", (long long)value);
  put(report, into, key, cJSON_CreateRaw(text));
}

void json_raw(json_report *report, cJSON *into, const char *key, const char *text) {
  put(report, into, key, cJSON_CreateRaw(text));
}

void json_bool(json_report *report, cJSON *into, const char *key, bool value) {
  put(report, into, key, cJSON_CreateBool(value));
}

sn_status json_print(json_report *report, FILE *out) {
  char *text = report->failed ? NULL : cJSON_PrintUnformatted(report->root);
  if (text == NULL) return sn_status_out_of_memory();
  bool wrote = fprintf(out, "%s\n", text) >= 0 && fflush(out) == 0;
  cJSON_free(text);
  if (wrote) return SN_OK;
  return sn_status_make(SN_CODE_IO, "cannot write to standard output: %s", strerror(errno));
}
