/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4): for checkpoints' checksums and for comparing parameters to the bit. */
#ifndef SN_CORE_SHA256_H
#define SN_CORE_SHA256_H

#include "core/api.h"

SN_BEGIN_DECLS

typedef struct sn_sha256 {
  uint32_t state[8];
  uint64_t bytes;
  uint8_t block[64];
} sn_sha256;

/* Begin, add any number of pieces, end. */
SN_API void sn_sha256_begin(sn_sha256 *hash);
SN_API void sn_sha256_add(sn_sha256 *hash, const void *data, size_t size);
/* Ends the hash; `hash` may begin again afterwards. */
SN_API void sn_sha256_end(sn_sha256 *hash, uint8_t out[32]);
/* A digest as 64 small hexadecimal digits and a zero. */
SN_API void sn_sha256_hex(const uint8_t digest[32], char out[65]);

SN_END_DECLS

#endif
