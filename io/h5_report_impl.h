/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that parse a report: a cursor that cannot run past its record. */
#ifndef SN_IO_H5_REPORT_IMPL_H
#define SN_IO_H5_REPORT_IMPL_H

#include "io/h5_report.h"

/* Once `bad`, everything taken is zero; check it at the end of a group of takes. */
typedef struct sn__cursor {
  const uint8_t *at, *end;
  bool bad, no_memory;
} sn__cursor;

bool sn__cursor_take(sn__cursor *c, void *out, size_t size);
uint8_t sn__cursor_u8(sn__cursor *c);
uint32_t sn__cursor_u32(sn__cursor *c);
uint64_t sn__cursor_u64(sn__cursor *c);
char *sn__cursor_str(sn__cursor *c); /* owned, control characters replaced; NULL when bad */
uint8_t *sn__cursor_blob(sn__cursor *c, size_t *out_size);
/* Zeroed array of `count` items of `item` bytes that take at least `least` bytes each in the
 * record. */
void *sn__cursor_array(sn__cursor *c, size_t count, size_t item, size_t least);

/* One dataset's record; whatever was filled in is freed by sn__h5_dataset_clear(). */
void sn__h5_dataset_read(sn__h5_dataset *dataset, sn__cursor *c);
void sn__h5_dataset_clear(sn__h5_dataset *dataset);
/* After its chunk table: sorts it and judges what lies where. Sets `problem`, or c->bad. */
void sn__h5_dataset_check(sn__h5_dataset *dataset, uint64_t file_size, sn__cursor *c);

#endif
