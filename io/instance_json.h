/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of JSON instances share (internal). */
#ifndef SN_IO_INSTANCE_JSON_H
#define SN_IO_INSTANCE_JSON_H

#include <cjson/cJSON.h>

#include "io/instance_impl.h"

/* Where a number stands, for messages: "node 3". */
typedef struct sn__json_place {
  const char *path, *what;
  uint32_t index;
} sn__json_place;

/* A number (true is 1); `otherwise` when it is not there, NAN: it must be. */
SN_MUST_USE sn_status sn__json_number(const sn__json_place *at, const cJSON *object,
                                      const char *key, double otherwise, double *out);
/* Finite and 0 at least. */
SN_MUST_USE sn_status sn__json_amount(const sn__json_place *at, const cJSON *object,
                                      const char *key, double otherwise, double *out);
/* Rounded up. */
SN_MUST_USE sn_status sn__json_bytes(const sn__json_place *at, const cJSON *object, const char *key,
                                     double otherwise, uint64_t *out);
SN_MUST_USE sn_status sn__json_whole(const sn__json_place *at, const cJSON *object, const char *key,
                                     double otherwise, double most, double *out);
const char *sn__json_id_text(sn_instance *instance, double id);

SN_MUST_USE sn_status sn__instance_read_own(sn_instance *instance, const char *path,
                                            const cJSON *root);

#endif
