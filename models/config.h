/* SPDX-License-Identifier: Apache-2.0 */
/* The model file: what is read, how it is encoded, what is predicted, how it is trained.
 *
 * A YAML file becomes one plain struct, checked key by key against one table (config_table.c): an
 * unknown key, a wrong type, a value out of range or a key given twice is SN_CODE_CONFIG with file,
 * line, column and what to do, in one line. `--set key.path=value` goes through the same table.
 *
 *     sn_model_config *config = NULL;
 *     SN_TRY(sn_model_config_load("model.yaml", &config));          each key by itself
 *     SN_TRY(sn_model_config_set(config, "train.learning_rate=0.01"));
 *     SN_TRY(sn_model_config_check(config, 0));                     keys against each other
 *
 * Everything a config points to belongs to it and lives until sn_model_config_free(). Fields may be
 * written directly; strings and lists put there by a caller must outlive the config. */
#ifndef SN_MODELS_CONFIG_H
#define SN_MODELS_CONFIG_H

#include "core/allocator.h"
#include "core/status.h"

SN_BEGIN_DECLS

typedef enum sn_config_kind {
  SN_CONFIG_KIND_NONE, /* not said yet; sn_model_config_check() refuses it */
  SN_CONFIG_KIND_DENSE,
  SN_CONFIG_KIND_SEQUENCE,
  SN_CONFIG_KIND_SET,
  SN_CONFIG_KIND_CATEGORY,
  SN_CONFIG_KIND_STREAM,
  SN_CONFIG_KIND_IMAGE
} sn_config_kind;

typedef enum sn_config_task {
  SN_CONFIG_TASK_NONE,
  SN_CONFIG_TASK_CLASSIFICATION,
  SN_CONFIG_TASK_REGRESSION,
  SN_CONFIG_TASK_MULTILABEL
} sn_config_task;

typedef enum sn_config_normalize {
  SN_CONFIG_NORMALIZE_NONE,
  SN_CONFIG_NORMALIZE_STANDARD
} sn_config_normalize;

typedef enum sn_config_encoder {
  SN_CONFIG_ENCODER_LSTM,
  SN_CONFIG_ENCODER_GRU,
  SN_CONFIG_ENCODER_MEAN, /* no recurrence: the steps themselves are averaged */
  SN_CONFIG_ENCODER_DEEPSETS,
  SN_CONFIG_ENCODER_CONV,     /* images */
  SN_CONFIG_ENCODER_INCEPTION /* images: blocks of four paths */
} sn_config_encoder;

typedef enum sn_config_pool {
  SN_CONFIG_POOL_MEAN,
  SN_CONFIG_POOL_LAST, /* sequences only */
  SN_CONFIG_POOL_MAX,
  SN_CONFIG_POOL_SUM, /* sets only */
  SN_CONFIG_POOL_ATTENTION,
  SN_CONFIG_POOL_FLATTEN /* images only: every pixel stays */
} sn_config_pool;

typedef enum sn_config_activation {
  SN_CONFIG_ACTIVATION_NONE,
  SN_CONFIG_ACTIVATION_RELU,
  SN_CONFIG_ACTIVATION_LEAKY_RELU,
  SN_CONFIG_ACTIVATION_GELU,
  SN_CONFIG_ACTIVATION_GELU_TANH,
  SN_CONFIG_ACTIVATION_SILU,
  SN_CONFIG_ACTIVATION_TANH,
  SN_CONFIG_ACTIVATION_SIGMOID,
  SN_CONFIG_ACTIVATION_SOFTPLUS
} sn_config_activation;

typedef enum sn_config_norm {
  SN_CONFIG_NORM_NONE,
  SN_CONFIG_NORM_LAYER,
  SN_CONFIG_NORM_BATCH
} sn_config_norm;

typedef enum sn_config_loss {
  SN_CONFIG_LOSS_CROSS_ENTROPY,        /* classification */
  SN_CONFIG_LOSS_BINARY_CROSS_ENTROPY, /* multilabel */
  SN_CONFIG_LOSS_MSE,                  /* regression: mse, mae, huber */
  SN_CONFIG_LOSS_MAE,
  SN_CONFIG_LOSS_HUBER
} sn_config_loss;

typedef enum sn_config_optimizer {
  SN_CONFIG_OPTIMIZER_SGD,
  SN_CONFIG_OPTIMIZER_ADAM,
  SN_CONFIG_OPTIMIZER_ADAMW,
  SN_CONFIG_OPTIMIZER_RMSPROP,
  SN_CONFIG_OPTIMIZER_ADAGRAD
} sn_config_optimizer;

typedef enum sn_config_schedule {
  SN_CONFIG_SCHEDULE_CONSTANT,
  SN_CONFIG_SCHEDULE_STEP,
  SN_CONFIG_SCHEDULE_COSINE,
  SN_CONFIG_SCHEDULE_EXPONENTIAL,
  SN_CONFIG_SCHEDULE_ONE_CYCLE
} sn_config_schedule;

typedef enum sn_config_precision {
  SN_CONFIG_PRECISION_F32,
  SN_CONFIG_PRECISION_BF16,
  SN_CONFIG_PRECISION_FP16
} sn_config_precision;

typedef struct sn_config_ints {
  size_t count;
  int64_t *items;
} sn_config_ints;

typedef struct sn_config_texts {
  size_t count;
  char **items;
} sn_config_texts;

/* A length of training: "500 steps" or "2 epochs" (parts of an epoch are fine). 0 means off. */
typedef struct sn_config_span {
  double count;
  bool epochs;
} sn_config_span;

typedef enum sn_config_class_weights_mode {
  SN_CONFIG_CLASS_WEIGHTS_NONE,
  SN_CONFIG_CLASS_WEIGHTS_BALANCED, /* rows / (classes * rows of the class), on the training split
                                     */
  SN_CONFIG_CLASS_WEIGHTS_LIST,     /* items[i] is class i's */
  SN_CONFIG_CLASS_WEIGHTS_MAP       /* items[i] is for the class called names[i]; others weigh 1 */
} sn_config_class_weights_mode;

typedef struct sn_config_class_weights {
  sn_config_class_weights_mode mode;
  size_t count;
  double *items; /* finite, >= 0 */
  char **names;  /* MAP only */
} sn_config_class_weights;

/* First in every part of a config: which keys were given (bits are rows of the part's table), and
 * where the part begins in the file (1-based; 0 when it is not from a file). */
typedef struct sn_config_mark {
  uint64_t given;
  int line, column;
} sn_config_mark;

typedef struct sn_model_input {
  sn_config_mark mark;
  char *name; /* also the module's name */
  sn_config_kind kind;
  char *path;    /* dataset, absolute; "/<name>" unless given */
  char *lengths; /* sequence, set: dataset of true lengths of a padded one; NULL: none */
  sn_config_normalize normalize;
  sn_config_ints hidden; /* dense layers at the end of the branch */
  sn_config_activation activation;
  sn_config_norm norm;
  bool sync; /* norm batch: statistics of the whole batch, not of each micro-batch */
  double dropout;
  int64_t embedding; /* width; 0: chosen (category), not embedded (sequence) */
  sn_config_encoder encoder;
  int64_t units, layers; /* recurrent encoders */
  bool bidirectional;
  sn_config_pool pool;
  sn_config_ints phi, rho; /* set */
  int64_t window;          /* stream: elements in a row */
  bool next;               /* stream: the next element is the target */
  /* image: [i] is of convolution (or block) i; a list of one is for all */
  sn_config_ints filters, kernel, stride, max_pool;
  int64_t stem;   /* inception: channels of a 3 x 3 convolution before the first block; 0: none */
  int64_t reduce; /* inception: channels before 3 x 3 and 5 x 5; 0: none */
} sn_model_input;

typedef struct sn_model_output {
  sn_config_mark mark;
  char *name;
  char *path; /* NULL: the next element of the stream input (sn_model_config_check() sees to it) */
  sn_config_task task;
  double weight;
  sn_config_class_weights class_weights;
  char *missing;                 /* label that means "not known", as written; NULL: none */
  double missing_number;         /* the same as a number; NaN when it is no number */
  sn_config_normalize normalize; /* regression targets; metrics are in the data's own units */
  sn_config_ints hidden;
  sn_config_activation activation;
  double dropout;
  sn_config_loss loss;
  double huber_delta;
  sn_config_texts labels; /* names of the classes, in order; empty: from the data */
} sn_model_output;

typedef struct sn_model_trunk {
  sn_config_mark mark;
  sn_config_ints hidden;
  sn_config_activation activation;
  sn_config_norm norm;
  bool sync;
  double dropout;
} sn_model_trunk;

typedef struct sn_model_train {
  sn_config_mark mark;
  sn_config_optimizer optimizer;
  double learning_rate, momentum, weight_decay, beta1, beta2, alpha, epsilon;
  bool nesterov;
  sn_config_schedule schedule;
  sn_config_span warmup, step_size;
  double gamma, min_learning_rate;
  double clip_norm, clip_value; /* 0: off */
  double ema;                   /* 0: off */
  int64_t batch, micro_batches, epochs;
  char *monitor;    /* "valid.loss", "valid.digit.accuracy"; never NULL after the check */
  int64_t patience; /* epochs without a better monitor; 0: never stops early */
  int64_t keep;     /* checkpoints kept beside the best and the last */
  sn_config_span save_every;
  int64_t seed;
  bool shuffle;
  double valid_fraction; /* 0: no validation split is taken from the training data */
  bool stratify;
  sn_config_precision precision;
  sn_config_texts recompute; /* modules; "auto" or "none" alone; empty: auto */
} sn_model_train;

/* A pin: modules that match `module` (a path such as "visits/lstm", or a pattern) stay on `device`.
 */
typedef struct sn_model_pin {
  char *module;
  char *device;
  int line, column;
} sn_model_pin;

typedef enum sn_config_split {
  SN_CONFIG_SPLIT_TRAIN,
  SN_CONFIG_SPLIT_VALID,
  SN_CONFIG_SPLIT_TEST,
  SN_CONFIG_SPLIT_COUNT
} sn_config_split;

/* Where an input or output lies for one split, when that differs from its own path. */
typedef struct sn_model_source {
  char *name;
  char *path;
  char *lengths; /* NULL: none */
  int line, column;
} sn_model_source;

typedef struct sn_model_split {
  size_t count;
  sn_model_source *sources;
} sn_model_split;

typedef struct sn_model_config {
  char *file; /* where it was read, for messages */
  size_t input_count;
  sn_model_input *inputs;
  size_t output_count;
  sn_model_output *outputs;
  sn_model_trunk trunk;
  sn_model_train train;
  size_t pin_count;
  sn_model_pin *pins;
  sn_model_split data[SN_CONFIG_SPLIT_COUNT];
  void *memory; /* the config's own */
} sn_model_config;

/* An empty config with every default in place; inputs and outputs are added below. */
SN_API SN_MUST_USE sn_status sn_model_config_create(sn_model_config **out_config);
SN_API void sn_model_config_free(sn_model_config *config);

/* Reads a model file (at most 1 MiB, UTF-8, one document). Keys that depend on each other are
 * judged by sn_model_config_check(), after the overrides. */
SN_API SN_MUST_USE sn_status sn_model_config_load(const char *path, sn_model_config **out_config);
/* The same from memory; `name` stands for the file in messages. */
SN_API SN_MUST_USE sn_status sn_model_config_read(const char *text, size_t size, const char *name,
                                                  sn_model_config **out_config);

/* Applies "train.batch=32", "inputs.strokes.units=128", "trunk.hidden=[64, 64]",
 * "placement.strokes=cpu:1", "data.valid.profile=/x_valid". The value is YAML. */
SN_API SN_MUST_USE sn_status sn_model_config_set(sn_model_config *config, const char *assignment);

/* Adds one by name (letters, digits, '_' and '-', at most 64), with its kind's defaults. The
 * pointer is good until the next is added. */
SN_API SN_MUST_USE sn_status sn_model_config_add_input(sn_model_config *config, const char *name,
                                                       sn_config_kind kind,
                                                       sn_model_input **out_input);
SN_API SN_MUST_USE sn_status sn_model_config_add_output(sn_model_config *config, const char *name,
                                                        sn_config_task task,
                                                        sn_model_output **out_output);

/* For sn_model_config_check(): the model is written in C, so inputs and outputs need not be here.
 */
#define SN_CONFIG_MODEL_IN_C 1u

/* Judges the keys against each other and fills in what follows from them (paths, the output of a
 * stream, the monitor). Call it once, after the overrides. */
SN_API SN_MUST_USE sn_status sn_model_config_check(sn_model_config *config, unsigned flags);

/* The dataset of an input or output in a split; `out_lengths` (may be NULL) gets NULL when there is
 * none. NULL when the name is not known. Borrowed. */
SN_API const char *sn_model_config_source(const sn_model_config *config, sn_config_split split,
                                          const char *name, const char **out_lengths);

#define SN_CONFIG_COMMENTS 1u /* each key with what it means */
#define SN_CONFIG_ALL      2u /* also keys that were not given and stand at their default */

/* The config as canonical YAML, which reads back to the same config; ALL pins the defaults of this
 * version (what a checkpoint stores). Free the text with sn_text_free(). */
SN_API SN_MUST_USE sn_status sn_model_config_write(const sn_model_config *config, unsigned flags,
                                                   char **out_text);

/* "classification" and the like, for reports. */
SN_API const char *sn_config_kind_name(sn_config_kind kind);
SN_API const char *sn_config_task_name(sn_config_task task);

SN_END_DECLS

#endif
