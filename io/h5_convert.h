/* SPDX-License-Identifier: Apache-2.0 */
/* From a file's element types to the ones that training uses, checked. */
#ifndef SN_IO_H5_CONVERT_H
#define SN_IO_H5_CONVERT_H

#include "core/dtype.h"
#include "io/h5_kind.h"

/* Reverses the bytes of each of `count` elements of `size` bytes, in place. */
void sn__h5_swap(uint8_t *bytes, size_t count, size_t size);

/* True when elements of `kind` can be converted to `dtype` at all: f32, f64, i64, i32, u8, bool. */
bool sn__h5_convertible(sn__h5_kind kind, sn_dtype dtype);

/* Converts `count` elements in native byte order from `in` to `out`. Returns `count`, or the index
 * of the first one that `dtype` cannot hold: an integer out of range, or a fraction, NaN or inf
 * where an integer is asked for. Floats never fail: f64 beyond f32's range becomes inf, which the
 * check of the data reports; i64 to a float rounds. bool wants 0 or 1. */
size_t sn__h5_convert(sn__h5_kind kind, const void *in, size_t count, sn_dtype dtype, void *out);

/* `count` runs of `length` elements, each so many bytes after the one before: what chunks narrower
 * than a row are made of. */
typedef struct sn__h5_runs {
  size_t count, length;
  size_t from_step, to_step; /* bytes */
} sn__h5_runs;

/* Converts runs to f32 or f64, or copies what is stored as `dtype` already; false, and nothing
 * done, for other dtypes, whose elements may not fit. */
bool sn__h5_convert_runs(sn__h5_kind kind, sn__h5_runs runs, const void *in, sn_dtype dtype,
                         void *out);
/* Runs of `bytes` bytes, as they are. `runs.length` is not looked at. */
void sn__h5_copy_runs(size_t bytes, sn__h5_runs runs, const void *in, void *out);

/* One element, for a message. */
double sn__h5_value(sn__h5_kind kind, const void *in, size_t index);

float sn__h5_half_to_float(uint16_t half);

#endif
