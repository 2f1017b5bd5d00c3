/* SPDX-License-Identifier: Apache-2.0 */
/* How good predictions are: the measures of one output, added up batch by batch.
 *
 * They are scikit-learn's, on rows (of a stream: elements) whose label is known:
 *   classes     accuracy, balanced_accuracy (mean recall of the classes there are), f1 (macro, over
 *               classes that occur or are predicted), auc (two classes: of the second; else the
 * mean of one against the rest), log_loss multilabel  accuracy (all labels of a row right), f1
 * (macro), auc (mean over labels), log_loss values      r2, mae, rmse in the data's own units;
 * means over the columns next        nats (mean of -log p), accuracy Class weights play no part. A
 * measure that is not defined is NaN: auc where one class alone is there, or where the scores would
 * take more than a GiB. */
#ifndef SN_TOOLS_SENNIT_METRICS_H
#define SN_TOOLS_SENNIT_METRICS_H

#include "core/dtype.h"

typedef enum metric_kind {
  METRIC_CLASSES = 0,
  METRIC_MULTILABEL,
  METRIC_VALUES,
  METRIC_NEXT,
  METRIC_KINDS
} metric_kind;

enum { METRICS_MOST = 5 };

typedef struct metric_value {
  const char *name;
  double value;
} metric_value;

typedef struct metrics metrics;

/* `width`: classes, labels or columns of a prediction. `mean` and `deviation` [width] undo what the
 * preparation did to values; NULL: nothing. Borrowed. */
sn_status metrics_create(metric_kind kind, int64_t width, const double *mean,
                         const double *deviation, metrics **out_metrics);
void metrics_free(metrics *m);
/* predictions [rows, width]: logits, or values. labels: i32 or i64 [rows] for classes, f32 [rows,
 * width] else. Rows of weight 0 do not count; weights NULL: all count. DATA: a label that is no
 * class. */
sn_status metrics_add(metrics *m, int64_t rows, const float *predictions, const void *labels,
                      sn_dtype label_dtype, const float *weights);
/* In the order above; how many there are. */
size_t metrics_values(const metrics *m, metric_value out[METRICS_MOST]);
int64_t metrics_rows(const metrics *m); /* that counted */

/* Whether a smaller number is the better one. */
bool metric_smaller_is_better(const char *name);
/* Names of a kind's measures in order, NULL at the end. */
const char *const *metric_names(metric_kind kind);

/* softmax or sigmoid of a row of logits; log of the sum of exponentials. */
void metrics_softmax(const float *logits, int64_t n, double *out);
double metrics_log_sum_exp(const float *logits, int64_t n);
double metrics_sigmoid(double logit);

#endif
