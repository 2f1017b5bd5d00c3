/* SPDX-License-Identifier: Apache-2.0 */
/* LZF, h5py's quick compression: decoding alone. */
#ifndef SN_IO_H5_LZF_H
#define SN_IO_H5_LZF_H

#include <stddef.h>
#include <stdint.h>

/* Returns the bytes written, or SIZE_MAX when the input is not LZF or does not fit. */
size_t sn__h5_lzf_decode(const uint8_t *in, size_t size, uint8_t *out, size_t capacity);

#endif
