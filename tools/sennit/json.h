/* SPDX-License-Identifier: Apache-2.0 */
/* The object that --json prints: cJSON under our allocator, with the first failure kept, so that a
 * report is built straight through and asked once at the end. */
#ifndef SN_TOOLS_SENNIT_JSON_H
#define SN_TOOLS_SENNIT_JSON_H

#include <stdio.h>

#include <cJSON.h>

#include "core/status.h"

typedef struct json_report {
  cJSON *root;
  bool failed;
} json_report;

/* Before cJSON is called by itself. */
void json_hooks(void);
sn_status json_create(json_report *out_report);
void json_free(json_report *report);

/* Objects and lists belong to the report. `object` may be NULL after a failure; `key` is NULL when
 * the item goes into a list. A number that is not finite becomes null. */
cJSON *json_object(json_report *report, cJSON *into, const char *key);
cJSON *json_list(json_report *report, cJSON *into, const char *key);
void json_text(json_report *report, cJSON *into, const char *key, const char *value);
void json_number(json_report *report, cJSON *into, const char *key, double value);
/* Exact, whatever its size. */
void json_int(json_report *report, cJSON *into, const char *key, int64_t value);
/* A JSON value as text, as it is. */
void json_raw(json_report *report, cJSON *into, const char *key, const char *text);
void json_bool(json_report *report, cJSON *into, const char *key, bool value);

/* One line on `out`, and whether it got there. */
sn_status json_print(json_report *report, FILE *out);

#endif
