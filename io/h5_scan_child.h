/* SPDX-License-Identifier: Apache-2.0 */
/* Inside sennit-h5scan, the program that runs libhdf5 over a stranger's file in a process of its
 * own.
 *
 * It may crash, hang or be killed at any point; what it has said by then stands. Everything it says
 * goes through the functions here as whole records (h5_wire.h). */
#ifndef SN_IO_H5_SCAN_CHILD_H
#define SN_IO_H5_SCAN_CHILD_H

#define H5_USE_110_API /* one set of calls for 1.10, 1.12 and 1.14 */
#include <hdf5.h>

#include "io/h5_kind.h"
#include "io/h5_wire.h"

/* Exit codes beside 0. */
#define SN__SCAN_EXIT_USAGE  2
#define SN__SCAN_EXIT_MEMORY 3
#define SN__SCAN_EXIT_PIPE   4

#define SN__SCAN_MAX_DEPTH   64
#define SN__SCAN_MAX_OBJECTS 100000

/* ---- saying (h5_scan_out.c) ---------------------------------------------------------------- */

void sn__say_start(int report_fd, int shared_fd);
void sn__say_begin(sn__wire_tag tag); /* one record at a time */
void sn__say_u8(unsigned value);
void sn__say_u32(uint32_t value);
void sn__say_u64(uint64_t value);
void sn__say_str(const char *text);
void sn__say_blob(const void *bytes, size_t size);
void sn__say_end(void); /* the record goes out */
void sn__say_at(const char *path, const char *stage);
void sn__say_words(sn__wire_tag tag, const char *path, const char *words);

/* From here on libhdf5 prints nothing and the cause of its last failure is kept. */
void sn__say_keep_errors(void);
/* That cause, libhdf5's deepest message, or "unknown error". Valid until the next call; forgotten
 * by it. */
const char *sn__say_why(void);

void *sn__scan_alloc(size_t size); /* never NULL: ends the process when memory is short */

/* Appends to the shared memory, in order. False when it is full or there is none. */
bool sn__shared_write(const void *bytes, size_t size);
bool sn__shared_align(void);    /* to 8 bytes */
uint64_t sn__shared_size(void); /* so far */

/* ---- types (h5_scan_type.c) ---------------------------------------------------------------- */

typedef struct sn__scan_type {
  sn__h5_class cls;
  sn__h5_kind kind;    /* what the bytes are, when we decode them ourselves */
  sn__h5_kind convert; /* what libhdf5 should convert them to, or the elements of a vlen */
  unsigned flags;
  size_t size;
  char text[240];
  unsigned array_rank;
  hsize_t array_dims[SN__H5_MAX_ARRAY_RANK];
  hid_t enumeration; /* of an enum: the type, borrowed from `type`'s owner or owned; see release */
} sn__scan_type;

void sn__scan_type_read(hid_t type, sn__scan_type *out);
void sn__scan_type_release(sn__scan_type *type);
void sn__scan_type_say(const sn__scan_type *type);
hid_t sn__scan_native(sn__h5_kind kind); /* a libhdf5 constant: never close it */

/* ---- objects ------------------------------------------------------------------------------- */

/* Says all about one dataset; with `convert`, converts it into the shared memory too. */
void sn__scan_dataset(hid_t file, const char *path, uint64_t address, uint64_t userblock,
                      int file_fd, bool convert);
void sn__scan_convert(hid_t dataset, hid_t space, hid_t type, const sn__scan_type *t,
                      const char *path);
void sn__scan_walk(hid_t file, uint64_t userblock, int file_fd);
void sn__scan_attributes_say(hid_t object);

#endif
