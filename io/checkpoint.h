/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: one HDF5 file of logical tensors by name and the texts that say what they mean.
 *
 * The file begins with a 512-byte HDF5 user block: a line of text, then format, least reader,
 * length and the SHA-256 of everything behind it, which is verified before any of it is opened.
 * HDF5 tools read the file as it is: /tensors/<name> holds tensors ("variables/trunk/dense/weight",
 * "slots/..."), /texts/<name> byte strings ("graph", "config", "preparation", "state"). Placement
 * is not in it, so it resumes on any devices. A save replaces the old file atomically. */
#ifndef SN_IO_CHECKPOINT_H
#define SN_IO_CHECKPOINT_H

#include "core/allocator.h"
#include "core/graph.h"

SN_BEGIN_DECLS

#define SN_CHECKPOINT_FORMAT     1 /* what this version writes */
#define SN_CHECKPOINT_MIN_READER 1 /* the oldest format version whose reader understands it */

typedef struct sn_named_tensor {
  const char *name; /* letters, digits, "_-." and '/' between parts */
  sn_dtype dtype;
  sn_shape shape; /* fixed */
  const void *data;
} sn_named_tensor;

typedef struct sn_named_text {
  const char *name;
  const char *text;
  size_t length;
} sn_named_text;

/* IO names the path and what the system said; the old file is then still there, whole. */
SN_API SN_MUST_USE sn_status sn_checkpoint_write(const char *path, const sn_named_tensor *tensors,
                                                 size_t n_tensors, const sn_named_text *texts,
                                                 size_t n_texts);

typedef struct sn_checkpoint sn_checkpoint;

/* NOT_FOUND; CORRUPT when it is no checkpoint, is cut short or its checksum does not hold;
 * UNSUPPORTED when a newer sennit wrote it. Everything is read into memory. libhdf5 sees the file
 * in a process of its own alone (sennit-h5scan), so one that is made to crash it is CORRUPT too. */
SN_API SN_MUST_USE sn_status sn_checkpoint_open(const char *path, sn_checkpoint **out_checkpoint);
SN_API void sn_checkpoint_free(sn_checkpoint *checkpoint);
/* Whether the file begins as a checkpoint does: for commands that take either a checkpoint or data.
 */
SN_API bool sn_checkpoint_probe(const char *path);

/* All borrowed from the checkpoint. */
SN_API size_t sn_checkpoint_tensor_count(const sn_checkpoint *checkpoint);
SN_API const sn_named_tensor *sn_checkpoint_tensor(const sn_checkpoint *checkpoint, size_t i);
SN_API const sn_named_tensor *sn_checkpoint_find(const sn_checkpoint *checkpoint, const char *name);
SN_API const sn_named_text *sn_checkpoint_text(const sn_checkpoint *checkpoint, const char *name);

/* ---- the forward graph as text --------------------------------------------------------------- */

/* JSON, as a checkpoint's text "graph" holds it; the caller's own, for sn_text_free(). */
SN_API SN_MUST_USE sn_status sn_graph_to_json(const sn_graph *graph, char **out_text);
/* Trusts nothing in the text: CORRUPT where it is not what sn_graph_to_json() writes, UNSUPPORTED
 * for a newer format or an op that is not known. How variables start is not in it: a store has
 * them. */
SN_API SN_MUST_USE sn_status sn_graph_from_json(const char *text, size_t length,
                                                sn_graph **out_graph);

/* ---- safetensors --------------------------------------------------------------------------- */

/* The safetensors format: 8 bytes of header length, a JSON header, raw little-endian bytes. Slashes
 * in names become dots, as PyTorch users expect. Metadata (may be NULL/0) goes to "__metadata__".
 */
SN_API SN_MUST_USE sn_status sn_safetensors_write(const char *path, const sn_named_tensor *tensors,
                                                  size_t n_tensors, const sn_named_text *metadata,
                                                  size_t n_metadata);
/* Read strictly: header at most 100 MB, offsets inside the file, without overlap or holes. f32,
 * f64, bf16, i32, i64, u8 and bool; f16 is widened to f32. Names stay as they are in the file. */
SN_API SN_MUST_USE sn_status sn_safetensors_read(const char *path, sn_checkpoint **out_tensors);

SN_END_DECLS

#endif
