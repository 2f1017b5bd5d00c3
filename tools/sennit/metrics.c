/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

static const size_t scores_most = (size_t)1 << 28; /* floats */

struct metrics {
  metric_kind kind;
  int64_t width;
  const double *mean, *deviation;
  int64_t rows;                       /* that counted */
  int64_t right;                      /* rows */
  double nats;                        /* sum of -log p */
  int64_t *hits, *predicted, *actual; /* [width]: of classes or labels */
  /* values, by column: running mean and squared distances of the targets, and the errors */
  double *target_mean, *target_m2, *squares, *absolutes;
  /* for AUC: by row, a number that orders as the probability does. Two classes need one column. */
  float *scores;
  int32_t *labels; /* [rows], or [rows, width] of multilabel */
  size_t cap_scores, cap_labels;
  bool too_many;
};

static const char *const class_names[] = {"accuracy", "balanced_accuracy", "f1",
                                          "auc",      "log_loss",          NULL};
static const char *const label_names[] = {"accuracy", "f1", "auc", "log_loss", NULL};
static const char *const value_names[] = {"r2", "mae", "rmse", NULL};
static const char *const next_names[] = {"nats", "accuracy", NULL};

const char *const *metric_names(metric_kind kind) {
  static const char *const *const names[METRIC_KINDS] = {class_names, label_names, value_names,
                                                         next_names};
  return names[kind];
}

bool metric_smaller_is_better(const char *name) {
  static const char *const small[] = {"loss", "log_loss", "mae", "rmse", "nats"};
  for (size_t i = 0; i < sizeof small / sizeof *small; i++)
    if (strcmp(name, small[i]) == 0) return true;
  return false;
}

sn_status metrics_create(metric_kind kind, int64_t width, const double *mean,
                         const double *deviation, metrics **out_metrics) {
  metrics *m = sn__calloc(1, sizeof *m);
  if (m == NULL) return sn_status_out_of_memory();
  *m = (metrics){.kind = kind, .width = width, .mean = mean, .deviation = deviation};
  size_t n = (size_t)width;
  bool values = kind == METRIC_VALUES;
  int64_t **counts[] = {&m->hits, &m->predicted, &m->actual};
  double **sums[] = {&m->target_mean, &m->target_m2, &m->squares, &m->absolutes};
  bool whole = true;
  for (size_t i = 0; !values && i < sizeof counts / sizeof *counts; i++)
    whole = (*counts[i] = sn__calloc(n, sizeof **counts[i])) != NULL && whole;
  for (size_t i = 0; values && i < sizeof sums / sizeof *sums; i++)
    whole = (*sums[i] = sn__calloc(n, sizeof **sums[i])) != NULL && whole;
  if (!whole) {
    metrics_free(m);
    return sn_status_out_of_memory();
  }
  *out_metrics = m;
  return SN_OK;
}

void metrics_free(metrics *m) {
  if (m == NULL) return;
  sn__free(m->hits);
  sn__free(m->predicted);
  sn__free(m->actual);
  sn__free(m->target_mean);
  sn__free(m->target_m2);
  sn__free(m->squares);
  sn__free(m->absolutes);
  sn__free(m->scores);
  sn__free(m->labels);
  sn__free(m);
}

int64_t metrics_rows(const metrics *m) {
  return m->rows;
}

/* ---- probabilities ------------------------------------------------------------------------- */

double metrics_log_sum_exp(const float *logits, int64_t n) {
  double most = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; i++)
    if ((double)logits[i] > most) most = (double)logits[i];
  for (int64_t i = 0; i < n; i++)
    sum += exp((double)logits[i] - most);
  return most + log(sum);
}

void metrics_softmax(const float *logits, int64_t n, double *out) {
  double total = metrics_log_sum_exp(logits, n);
  for (int64_t i = 0; i < n; i++)
    out[i] = exp((double)logits[i] - total);
}

double metrics_sigmoid(double x) {
  return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

/* log(1 + e^x) */
static double softplus(double x) {
  return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* ---- adding -------------------------------------------------------------------------------- */

/* Room for the scores and labels of one more row; false when they would be too many. */
static sn_status room(metrics *m, size_t scores, size_t labels) {
  size_t rows = (size_t)m->rows + 1;
  if (m->too_many || rows * scores > scores_most) {
    m->too_many = true;
    return SN_OK;
  }
  if (sn__grow((void **)&m->scores, &m->cap_scores, rows * scores, sizeof *m->scores) &&
      sn__grow((void **)&m->labels, &m->cap_labels, rows * labels, sizeof *m->labels))
    return SN_OK;
  return sn_status_out_of_memory();
}

static int64_t best_class(const float *logits, int64_t n) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; i++)
    if (logits[i] > logits[best]) best = i;
  return best;
}

static sn_status add_class(metrics *m, const float *logits, int64_t label) {
  if (label < 0 || label >= m->width)
    return sn_status_make(SN_CODE_DATA, "label %lld is not one of the model's %lld classes",
                          (long long)label, (long long)m->width);
  int64_t guess = best_class(logits, m->width);
  double total = metrics_log_sum_exp(logits, m->width);
  m->nats += total - (double)logits[label];
  m->right += guess == label;
  m->hits[label] += guess == label;
  m->predicted[guess]++;
  m->actual[label]++;
  if (m->kind == METRIC_NEXT) return SN_OK;
  size_t columns = m->width == 2 ? 1 : (size_t)m->width;
  SN_TRY(room(m, columns, 1));
  if (m->too_many) return SN_OK;
  float *scores = m->scores + (size_t)m->rows * columns;
  for (size_t k = 0; k < columns; k++) {
    /* Log-odds keep apart what f32 probabilities near 1 would not. */
    double log_p = (double)logits[columns == 1 ? 1 : k] - total;
    scores[k] = (float)(log_p - log1p(-exp(log_p)));
  }
  m->labels[m->rows] = (int32_t)label;
  return SN_OK;
}

static sn_status add_labels(metrics *m, const float *logits, const float *labels) {
  size_t n = (size_t)m->width;
  SN_TRY(room(m, n, n));
  bool all = true;
  double nats = 0;
  for (size_t k = 0; k < n; k++) {
    bool guess = logits[k] > 0, label = labels[k] > 0.5f;
    all = all && guess == label;
    m->hits[k] += guess && label;
    m->predicted[k] += guess;
    m->actual[k] += label;
    nats += softplus((double)logits[k]) - (double)labels[k] * (double)logits[k];
    if (m->too_many) continue;
    m->scores[(size_t)m->rows * n + k] = logits[k];
    m->labels[(size_t)m->rows * n + k] = label;
  }
  m->nats += nats / (double)n;
  m->right += all;
  return SN_OK;
}

static void add_values(metrics *m, const float *predictions, const float *targets) {
  double count = (double)m->rows + 1;
  for (int64_t k = 0; k < m->width; k++) {
    double scale = m->deviation != NULL ? m->deviation[k] : 1;
    double target = (double)targets[k] * scale + (m->mean != NULL ? m->mean[k] : 0);
    double error = ((double)predictions[k] - (double)targets[k]) * scale;
    m->squares[k] += error * error;
    m->absolutes[k] += fabs(error);
    double away = target - m->target_mean[k];
    m->target_mean[k] += away / count;
    m->target_m2[k] += away * (target - m->target_mean[k]);
  }
}

sn_status metrics_add(metrics *m, int64_t rows, const float *predictions, const void *labels,
                      sn_dtype label_dtype, const float *weights) {
  for (int64_t r = 0; r < rows; r++) {
    if (weights != NULL && !(weights[r] > 0)) continue;
    const float *row = predictions + r * m->width;
    const float *values = (const float *)labels + r * m->width;
    if (m->kind == METRIC_VALUES)
      add_values(m, row, values);
    else if (m->kind == METRIC_MULTILABEL)
      SN_TRY(add_labels(m, row, values));
    else
      SN_TRY(add_class(m, row,
                       label_dtype == SN_I64 ? ((const int64_t *)labels)[r]
                                             : (int64_t)((const int32_t *)labels)[r]));
    m->rows++;
  }
  return SN_OK;
}

/* ---- results ------------------------------------------------------------------------------- */

typedef struct scored {
  float score;
  bool positive;
} scored;

static int by_score(const void *a, const void *b) {
  float x = ((const scored *)a)->score, y = ((const scored *)b)->score;
  return (x > y) - (x < y);
}

/* Share of (positive, other) pairs in the right order, ties counting half. NaN without pairs. */
static double auc_of(scored *list, size_t n) {
  qsort(list, n, sizeof *list, by_score);
  double positives = 0, others = 0, won = 0;
  for (size_t i = 0; i < n;) {
    double tied[2] = {0, 0};
    size_t j = i;
    for (; j < n && !(list[j].score > list[i].score); j++)
      tied[list[j].positive]++;
    won += tied[1] * (others + 0.5 * tied[0]);
    positives += tied[1];
    others += tied[0];
    i = j;
  }
  return positives > 0 && others > 0 ? won / (positives * others) : NAN;
}

static double auc(const metrics *m) {
  size_t n = (size_t)m->rows;
  bool many = m->kind == METRIC_MULTILABEL;
  size_t columns = !many && m->width == 2 ? 1 : (size_t)m->width;
  scored *list = m->too_many || n == 0 ? NULL : sn__alloc(n * sizeof *list);
  if (list == NULL) return NAN;
  double sum = 0;
  int64_t count = 0;
  for (size_t k = 0; k < columns; k++) {
    for (size_t r = 0; r < n; r++) {
      int32_t positive = columns == 1 && !many ? 1 : (int32_t)k;
      list[r].score = m->scores[r * columns + k];
      list[r].positive = many ? m->labels[r * columns + k] != 0 : m->labels[r] == positive;
    }
    double one = auc_of(list, n);
    if (!(one >= 0)) continue;
    sum += one;
    count++;
  }
  sn__free(list);
  return count > 0 ? sum / (double)count : NAN;
}

static double f1(const metrics *m) {
  double sum = 0, count = 0;
  for (int64_t k = 0; k < m->width; k++) {
    double both = (double)(m->predicted[k] + m->actual[k]);
    if (both == 0 && m->kind != METRIC_MULTILABEL) continue;
    if (both > 0) sum += 2 * (double)m->hits[k] / both;
    count++;
  }
  return count > 0 ? sum / count : NAN;
}

static double balanced(const metrics *m) {
  double sum = 0, count = 0;
  for (int64_t k = 0; k < m->width; k++) {
    if (m->actual[k] == 0) continue;
    sum += (double)m->hits[k] / (double)m->actual[k];
    count++;
  }
  return count > 0 ? sum / count : NAN;
}

/* A constant target: 1 when it was met, else 0. */
static double r2(const metrics *m) {
  double sum = 0;
  for (int64_t k = 0; k < m->width; k++) {
    if (m->target_m2[k] > 0)
      sum += 1 - m->squares[k] / m->target_m2[k];
    else
      sum += m->squares[k] > 0 ? 0 : 1;
  }
  return sum / (double)m->width;
}

static double value_of(const metrics *m, const char *name) {
  double rows = (double)m->rows, width = (double)m->width, sum = 0;
  if (m->rows == 0) return NAN;
  if (strcmp(name, "accuracy") == 0) return (double)m->right / rows;
  if (strcmp(name, "balanced_accuracy") == 0) return balanced(m);
  if (strcmp(name, "f1") == 0) return f1(m);
  if (strcmp(name, "auc") == 0) return auc(m);
  if (strcmp(name, "r2") == 0) return r2(m);
  if (strcmp(name, "mae") == 0) {
    for (int64_t k = 0; k < m->width; k++)
      sum += m->absolutes[k] / rows;
    return sum / width;
  }
  if (strcmp(name, "rmse") == 0) {
    for (int64_t k = 0; k < m->width; k++)
      sum += sqrt(m->squares[k] / rows);
    return sum / width;
  }
  return m->nats / rows; /* log_loss, nats */
}

size_t metrics_values(const metrics *m, metric_value out[METRICS_MOST]) {
  const char *const *names = metric_names(m->kind);
  size_t n = 0;
  for (; names[n] != NULL; n++)
    out[n] = (metric_value){names[n], value_of(m, names[n])};
  return n;
}
