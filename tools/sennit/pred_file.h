/* SPDX-License-Identifier: Apache-2.0 */
/* The file that predict writes: for each output a group,
 *
 *   classes     logits [rows, K], probabilities [rows, K], class [rows] (names), classes [K]
 *   multilabel  logits [rows, K], probabilities [rows, K]
 *   values      values [rows] or [rows, D], in the data's own units
 *
 * rows in the order of the data. Where an output has a prediction for each element of ragged rows,
 * rows are elements, and `offsets` [rows + 1] says whose. Written beside and renamed at the end. */
#ifndef SN_TOOLS_SENNIT_PRED_FILE_H
#define SN_TOOLS_SENNIT_PRED_FILE_H

#include "tools/sennit/bind.h"

typedef struct pred_file pred_file;

sn_status pred_file_create(const char *path, const sn_preparation *preparation, pred_file **out);
/* The next batch. */
sn_status pred_file_add(pred_file *file, const bind_set *bind, const sn_batch *batch,
                        const float *const *predictions);
/* Makes the file appear under its name. */
sn_status pred_file_finish(pred_file *file);
/* Without pred_file_finish() before, nothing is left of it. */
void pred_file_free(pred_file *file);

#endif
