/* SPDX-License-Identifier: Apache-2.0 */
/* What the scanning child writes and the parent reads: the report's encoding.
 *
 * magic, then records: u8 tag, u32 payload bytes, payload. Numbers are in the machine's own byte
 * order (both ends are one build on one machine). `str` is u32 length + bytes, no terminator;
 * `blob` the same. A report without SN__WIRE_END is one whose writer died. */
#ifndef SN_IO_H5_WIRE_H
#define SN_IO_H5_WIRE_H

#define SN__WIRE_MAGIC "SNH5RPT1" /* 8 bytes */

typedef enum sn__wire_tag {
  SN__WIRE_FILE =
      1,           /* u32 superblock, u64 userblock, u64 size, u64 end of allocation, str library */
  SN__WIRE_AT,     /* str path, str stage: what comes next, for when it is the last thing said */
  SN__WIRE_FAILED, /* str words: the file as a whole cannot be opened */
  SN__WIRE_GROUP,  /* str path */
  SN__WIRE_DATASET, /* see write_dataset() in h5_scan_dataset.c and read_dataset() in h5_report.c */
  SN__WIRE_CHUNKS,  /* u32 count, count x {u64 linear index, u64 address, u64 size, u32 mask} */
  SN__WIRE_DONE,    /* the dataset's chunk table is whole */
  SN__WIRE_ALIAS,   /* str path, u64 object address: another name of a dataset */
  SN__WIRE_LINK,    /* str path, str words: a link that leads nowhere we go */
  SN__WIRE_PROBLEM, /* str path, str words: an object that cannot be opened */
  SN__WIRE_CONVERTED, /* u8 form, u8 kind, u64 rows, u64 count, u64 values at, u64 offsets at */
  SN__WIRE_END
} sn__wire_tag;

typedef enum sn__h5_class {
  SN__H5_CLASS_OTHER = 0, /* compound, reference, opaque, time: not for training */
  SN__H5_CLASS_INTEGER,
  SN__H5_CLASS_FLOAT,
  SN__H5_CLASS_STRING,
  SN__H5_CLASS_ENUM,
  SN__H5_CLASS_VLEN,
  SN__H5_CLASS_COUNT
} sn__h5_class;

typedef enum sn__h5_layout {
  SN__H5_CONTIGUOUS = 0,
  SN__H5_COMPACT,
  SN__H5_CHUNKED,
  SN__H5_VIRTUAL,
  SN__H5_EXTERNAL,
  SN__H5_LAYOUT_COUNT
} sn__h5_layout;

/* Type flags. */
#define SN__H5_BIG_ENDIAN  1u
#define SN__H5_VLEN_STRING 2u
#define SN__H5_BOOLEAN     4u /* an enum of FALSE and TRUE */
#define SN__H5_UTF8        8u
#define SN__H5_SPACE_PAD   16u /* fixed strings end in blanks */

/* Forms of what the child converted. */
typedef enum sn__h5_form {
  SN__H5_FORM_NUMBERS = 1, /* `count` elements */
  SN__H5_FORM_STRINGS,     /* `count` bytes, rows + 1 offsets into them */
  SN__H5_FORM_RAGGED       /* `count` elements, rows + 1 offsets into them */
} sn__h5_form;

#define SN__H5_MAX_RANK       32u
#define SN__H5_MAX_ARRAY_RANK 8u
#define SN__H5_MAX_FILTERS    32u
#define SN__H5_MAX_ENUM       65536u

#define SN__H5_NO_ADDRESS UINT64_MAX /* nothing was ever written */

#endif
