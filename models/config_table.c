/* SPDX-License-Identifier: Apache-2.0 */
/* Every key of the model file: name, type, default, range, choices, and what it means. */
#include <assert.h>
#include <string.h>

#include "models/config_internal.h"

static_assert(sizeof(sn_config_kind) == sizeof(int), "choices are stored as int");
static_assert(sizeof(bool) == 1, "booleans are stored as bool");

#define ALL      (~0u)
#define BIT(k)   (1u << (k))
#define COUNT(a) (sizeof(a) / sizeof(*(a)))

#define DENSE    BIT(SN_CONFIG_KIND_DENSE)
#define SEQUENCE BIT(SN_CONFIG_KIND_SEQUENCE)
#define SET      BIT(SN_CONFIG_KIND_SET)
#define CATEGORY BIT(SN_CONFIG_KIND_CATEGORY)
#define STREAM   BIT(SN_CONFIG_KIND_STREAM)
#define IMAGE    BIT(SN_CONFIG_KIND_IMAGE)

#define CLASSES    BIT(SN_CONFIG_TASK_CLASSIFICATION)
#define REGRESSION BIT(SN_CONFIG_TASK_REGRESSION)
#define MULTILABEL BIT(SN_CONFIG_TASK_MULTILABEL)

#define SGD     BIT(SN_CONFIG_OPTIMIZER_SGD)
#define ADAM    BIT(SN_CONFIG_OPTIMIZER_ADAM)
#define ADAMW   BIT(SN_CONFIG_OPTIMIZER_ADAMW)
#define RMSPROP BIT(SN_CONFIG_OPTIMIZER_RMSPROP)
#define ADAGRAD BIT(SN_CONFIG_OPTIMIZER_ADAGRAD)

static const sn__choice kinds[] = {{"dense", SN_CONFIG_KIND_DENSE},
                                   {"sequence", SN_CONFIG_KIND_SEQUENCE},
                                   {"set", SN_CONFIG_KIND_SET},
                                   {"category", SN_CONFIG_KIND_CATEGORY},
                                   {"stream", SN_CONFIG_KIND_STREAM},
                                   {"image", SN_CONFIG_KIND_IMAGE},
                                   {NULL, 0}};
static const sn__choice tasks[] = {{"classification", SN_CONFIG_TASK_CLASSIFICATION},
                                   {"regression", SN_CONFIG_TASK_REGRESSION},
                                   {"multilabel", SN_CONFIG_TASK_MULTILABEL},
                                   {NULL, 0}};
static const sn__choice normalizes[] = {
    {"standard", SN_CONFIG_NORMALIZE_STANDARD}, {"none", SN_CONFIG_NORMALIZE_NONE}, {NULL, 0}};
static const sn__choice recurrent_encoders[] = {
    {"lstm", SN_CONFIG_ENCODER_LSTM}, {"gru", SN_CONFIG_ENCODER_GRU}, {NULL, 0}};
static const sn__choice sequence_encoders[] = {{"lstm", SN_CONFIG_ENCODER_LSTM},
                                               {"gru", SN_CONFIG_ENCODER_GRU},
                                               {"mean", SN_CONFIG_ENCODER_MEAN},
                                               {NULL, 0}};
static const sn__choice set_encoders[] = {{"deepsets", SN_CONFIG_ENCODER_DEEPSETS}, {NULL, 0}};
static const sn__choice image_encoders[] = {
    {"conv", SN_CONFIG_ENCODER_CONV}, {"inception", SN_CONFIG_ENCODER_INCEPTION}, {NULL, 0}};
static const sn__choice image_pools[] = {{"mean", SN_CONFIG_POOL_MEAN},
                                         {"max", SN_CONFIG_POOL_MAX},
                                         {"flatten", SN_CONFIG_POOL_FLATTEN},
                                         {NULL, 0}};
static const sn__choice sequence_pools[] = {{"mean", SN_CONFIG_POOL_MEAN},
                                            {"last", SN_CONFIG_POOL_LAST},
                                            {"max", SN_CONFIG_POOL_MAX},
                                            {"attention", SN_CONFIG_POOL_ATTENTION},
                                            {NULL, 0}};
static const sn__choice set_pools[] = {{"sum", SN_CONFIG_POOL_SUM},
                                       {"mean", SN_CONFIG_POOL_MEAN},
                                       {"max", SN_CONFIG_POOL_MAX},
                                       {"attention", SN_CONFIG_POOL_ATTENTION},
                                       {NULL, 0}};
static const sn__choice activations[] = {
    {"relu", SN_CONFIG_ACTIVATION_RELU},       {"leaky_relu", SN_CONFIG_ACTIVATION_LEAKY_RELU},
    {"gelu", SN_CONFIG_ACTIVATION_GELU},       {"gelu_tanh", SN_CONFIG_ACTIVATION_GELU_TANH},
    {"silu", SN_CONFIG_ACTIVATION_SILU},       {"tanh", SN_CONFIG_ACTIVATION_TANH},
    {"sigmoid", SN_CONFIG_ACTIVATION_SIGMOID}, {"softplus", SN_CONFIG_ACTIVATION_SOFTPLUS},
    {"none", SN_CONFIG_ACTIVATION_NONE},       {NULL, 0}};
static const sn__choice norms[] = {{"none", SN_CONFIG_NORM_NONE},
                                   {"layer", SN_CONFIG_NORM_LAYER},
                                   {"batch", SN_CONFIG_NORM_BATCH},
                                   {NULL, 0}};
static const sn__choice class_losses[] = {{"cross_entropy", SN_CONFIG_LOSS_CROSS_ENTROPY},
                                          {NULL, 0}};
static const sn__choice multilabel_losses[] = {
    {"binary_cross_entropy", SN_CONFIG_LOSS_BINARY_CROSS_ENTROPY}, {NULL, 0}};
static const sn__choice regression_losses[] = {{"mse", SN_CONFIG_LOSS_MSE},
                                               {"mae", SN_CONFIG_LOSS_MAE},
                                               {"huber", SN_CONFIG_LOSS_HUBER},
                                               {NULL, 0}};
static const sn__choice optimizers[] = {
    {"sgd", SN_CONFIG_OPTIMIZER_SGD},         {"adam", SN_CONFIG_OPTIMIZER_ADAM},
    {"adamw", SN_CONFIG_OPTIMIZER_ADAMW},     {"rmsprop", SN_CONFIG_OPTIMIZER_RMSPROP},
    {"adagrad", SN_CONFIG_OPTIMIZER_ADAGRAD}, {NULL, 0}};
static const sn__choice schedules[] = {
    {"constant", SN_CONFIG_SCHEDULE_CONSTANT},   {"step", SN_CONFIG_SCHEDULE_STEP},
    {"cosine", SN_CONFIG_SCHEDULE_COSINE},       {"exponential", SN_CONFIG_SCHEDULE_EXPONENTIAL},
    {"one_cycle", SN_CONFIG_SCHEDULE_ONE_CYCLE}, {NULL, 0}};
static const sn__choice precisions[] = {{"f32", SN_CONFIG_PRECISION_F32},
                                        {"bf16", SN_CONFIG_PRECISION_BF16},
                                        {"fp16", SN_CONFIG_PRECISION_FP16},
                                        {NULL, 0}};

static const sn__choice recomputes[] = {{"auto", 0}, {"none", 1}, {NULL, 0}};

/* Rows: the macros only fill in what all rows of a type share. AT names the field; WIDE is the
 * largest width, UNITS the range of a layer's width. */
#define WIDE        1048576.0
#define BIG         1e9
#define HUGE_NUMBER 1e30

#define KEY(struct_, field, type_, kinds_, fallback_, doc_, ...)                                   \
  {                                                                                                \
    .name = #field, .type = SN__KEY_##type_, .offset = offsetof(struct_, field),                   \
    .kinds = (kinds_), .fallback = (fallback_), .doc = (doc_), __VA_ARGS__                         \
  }
#define RANGE(a, b)  .min = (a), .max = (b)
#define CHOOSE(list) .choices = (list), .min = 0
#define ANY          .min = -HUGE_NUMBER, .max = HUGE_NUMBER
#define FRACTION     .min = 0, .max = 1, .open_max = true
#define POSITIVE     .min = 0, .max = HUGE_NUMBER, .open_min = true
#define NOT_NEGATIVE .min = 0, .max = HUGE_NUMBER

#define IN(field, type, k, fallback, doc, ...)                                                     \
  KEY(sn_model_input, field, type, k, fallback, doc, __VA_ARGS__)
static const sn__key input_keys[] = {
    IN(kind, CHOICE, ALL, NULL,
       "what a row is: one vector, a sequence, a set, a category, a stream, an image",
       CHOOSE(kinds)),
    IN(path, PATH, ALL, NULL, "dataset or group in the file; /<name> unless given", ANY),
    IN(lengths, PATH, SEQUENCE | SET, NULL, "dataset with the true lengths of a padded one", ANY),
    IN(normalize, CHOICE, DENSE | SEQUENCE | SET, "standard",
       "floats to mean 0 and deviation 1, fitted on the training split", CHOOSE(normalizes)),
    IN(normalize, CHOICE, IMAGE, "standard",
       "each channel to mean 0 and deviation 1, fitted on the training split", CHOOSE(normalizes)),
    IN(embedding, INT, CATEGORY, "0", "width of the learned vectors; 0 picks one", RANGE(0, WIDE)),
    IN(embedding, INT, SEQUENCE, "0", "width of the learned vectors of ids; 0: values are numbers",
       RANGE(0, WIDE)),
    IN(embedding, INT, STREAM, "32", "width of the learned vectors of ids", RANGE(1, WIDE)),
    IN(encoder, CHOICE, SEQUENCE, "lstm", "lstm, gru, or mean of the steps alone",
       CHOOSE(sequence_encoders)),
    IN(encoder, CHOICE, STREAM, "lstm", "lstm or gru", CHOOSE(recurrent_encoders)),
    IN(encoder, CHOICE, SET, "deepsets", "phi on each element, pool, rho", CHOOSE(set_encoders)),
    IN(encoder, CHOICE, IMAGE, "conv", "conv, or inception: blocks of paths 1x1, 3x3, 5x5, pool",
       CHOOSE(image_encoders)),
    IN(filters, INTS, IMAGE, "32, 64", "channels of each convolution, or of each block",
       RANGE(1, WIDE)),
    IN(kernel, INTS, IMAGE, "3", "conv: pixels a side, odd; one for all or one for each",
       RANGE(1, 1023)),
    IN(stride, INTS, IMAGE, "1", "conv: pixels from one to the next; one for all or one for each",
       RANGE(1, 1024)),
    IN(max_pool, INTS, IMAGE, "2", "pixels a side of the max pooling after each; 1: none",
       RANGE(1, 1024)),
    IN(stem, INT, IMAGE, "0", "inception: channels of a 3x3 before the first block; 0: none",
       RANGE(0, WIDE)),
    IN(reduce, INT, IMAGE, "0", "inception: channels of a 1x1 before 3x3 and 5x5; 0: none",
       RANGE(0, WIDE)),
    IN(pool, CHOICE, IMAGE, "mean", "how the pixels become one vector", CHOOSE(image_pools)),
    IN(units, INT, SEQUENCE | STREAM, "64", "width of the recurrent state", RANGE(1, WIDE)),
    IN(layers, INT, SEQUENCE | STREAM, "1", "recurrent layers on top of each other", RANGE(1, 16)),
    IN(bidirectional, BOOL, SEQUENCE, "false", "also read from the end to the beginning", ANY),
    IN(pool, CHOICE, SEQUENCE, "mean", "how the steps become one vector", CHOOSE(sequence_pools)),
    IN(phi, INTS, SET, "64, 64", "widths of the layers on each element", RANGE(1, WIDE)),
    IN(pool, CHOICE, SET, "mean", "how the elements become one vector", CHOOSE(set_pools)),
    IN(rho, INTS, SET, "64", "widths of the layers after pooling", RANGE(1, WIDE)),
    IN(window, INT, STREAM, "64", "elements in one row", RANGE(1, WIDE)),
    IN(next, BOOL, STREAM, "true", "the target is the next element", ANY),
    IN(hidden, INTS, DENSE | SEQUENCE | CATEGORY | IMAGE, NULL,
       "widths of the dense layers of this branch", RANGE(1, WIDE)),
    IN(activation, CHOICE, ALL & ~STREAM, "relu", "after each dense layer", CHOOSE(activations)),
    IN(norm, CHOICE, ALL & ~STREAM, "none", "before each activation: layer or batch",
       CHOOSE(norms)),
    IN(sync, BOOL, ALL & ~STREAM, "false",
       "norm batch: statistics of all micro-batches, not of each", ANY),
    IN(dropout, NUMBER, ALL, "0", "part of the features zeroed while training", FRACTION),
};

#define OUT(field, type, k, fallback, doc, ...)                                                    \
  KEY(sn_model_output, field, type, k, fallback, doc, __VA_ARGS__)
static const sn__key output_keys[] = {
    OUT(path, PATH, ALL, NULL, "dataset of labels or targets; /<name> unless given", ANY),
    OUT(task, CHOICE, ALL, NULL, "classification, regression or multilabel", CHOOSE(tasks)),
    OUT(weight, NUMBER, ALL, "1", "this output's share in the loss", NOT_NEGATIVE),
    OUT(class_weights, WEIGHTS, CLASSES, NULL,
        "balanced, a list in class order, or a map from class to weight", NOT_NEGATIVE),
    OUT(missing, LABEL, ALL, NULL, "the value that means: not known, does not count", ANY,
        .offset2 = offsetof(sn_model_output, missing_number)),
    OUT(normalize, CHOICE, REGRESSION, "standard",
        "targets to mean 0 and deviation 1; metrics stay in the data's units", CHOOSE(normalizes)),
    OUT(hidden, INTS, ALL, NULL, "widths of dense layers of this output alone", RANGE(1, WIDE)),
    OUT(activation, CHOICE, ALL, "relu", "after each of those layers", CHOOSE(activations)),
    OUT(dropout, NUMBER, ALL, "0", "part of the features zeroed while training", FRACTION),
    OUT(loss, CHOICE, CLASSES, "cross_entropy", "softmax cross-entropy", CHOOSE(class_losses)),
    OUT(loss, CHOICE, MULTILABEL, "binary_cross_entropy", "sigmoid cross-entropy of each label",
        CHOOSE(multilabel_losses)),
    OUT(loss, CHOICE, REGRESSION, "mse", "squared, absolute or Huber error",
        CHOOSE(regression_losses)),
    OUT(huber_delta, NUMBER, REGRESSION, "1", "error where Huber's loss turns linear", POSITIVE),
    OUT(labels, TEXTS, CLASSES | MULTILABEL, NULL, "names of the classes, in order", ANY),
};

#define TRUNK(field, type, fallback, doc, ...)                                                     \
  KEY(sn_model_trunk, field, type, ALL, fallback, doc, __VA_ARGS__)
static const sn__key trunk_keys[] = {
    TRUNK(hidden, INTS, NULL, "widths of the dense layers over all branches", RANGE(1, WIDE)),
    TRUNK(activation, CHOICE, "relu", "after each of them", CHOOSE(activations)),
    TRUNK(norm, CHOICE, "none", "before each activation: layer or batch", CHOOSE(norms)),
    TRUNK(sync, BOOL, "false", "norm batch: statistics of all micro-batches, not of each", ANY),
    TRUNK(dropout, NUMBER, "0", "part of the features zeroed while training", FRACTION),
};

#define TRAIN(field, type, k, fallback, doc, ...)                                                  \
  KEY(sn_model_train, field, type, k, fallback, doc, __VA_ARGS__)
static const sn__key train_keys[] = {
    TRAIN(optimizer, CHOICE, ALL, "adam", "sgd, adam, adamw, rmsprop or adagrad",
          CHOOSE(optimizers)),
    TRAIN(learning_rate, NUMBER, ALL, "0.001", "step size at its highest", POSITIVE),
    TRAIN(momentum, NUMBER, SGD | RMSPROP, "0", "part of the last step kept", FRACTION),
    TRAIN(nesterov, BOOL, SGD, "false", "look ahead along the momentum", ANY),
    TRAIN(alpha, NUMBER, RMSPROP, "0.99", "smoothing of the squared gradient", FRACTION),
    TRAIN(beta1, NUMBER, ADAM | ADAMW, "0.9", "smoothing of the gradient", FRACTION),
    TRAIN(beta2, NUMBER, ADAM | ADAMW, "0.999", "smoothing of the squared gradient", FRACTION),
    TRAIN(epsilon, NUMBER, ADAM | ADAMW | RMSPROP, "1e-08", "keeps the divisor from zero",
          POSITIVE),
    TRAIN(epsilon, NUMBER, ADAGRAD, "1e-10", "keeps the divisor from zero", POSITIVE),
    TRAIN(weight_decay, NUMBER, ALL & ~ADAMW, "0", "added to the gradient, times the weight",
          NOT_NEGATIVE),
    TRAIN(weight_decay, NUMBER, ADAMW, "0.01", "weights shrink by this times the rate",
          NOT_NEGATIVE),
    TRAIN(schedule, CHOICE, ALL, "constant",
          "how the rate goes: constant, step, cosine, exponential, one_cycle", CHOOSE(schedules)),
    TRAIN(warmup, SPAN, ALL, "0", "the rate grows from 0 for so long: 500 steps, 2 epochs",
          RANGE(0, BIG)),
    TRAIN(step_size, SPAN, ALL, "0", "schedule step: time between two steps down", RANGE(0, BIG)),
    TRAIN(gamma, NUMBER, ALL, "0.1", "step: factor at each step; exponential: factor per epoch",
          .min = 0, .max = 1, .open_min = true),
    TRAIN(min_learning_rate, NUMBER, ALL, "0", "the rate never falls below", NOT_NEGATIVE),
    TRAIN(clip_norm, NUMBER, ALL, "0", "largest norm of the whole gradient; 0: off", NOT_NEGATIVE),
    TRAIN(clip_value, NUMBER, ALL, "0", "largest size of one gradient element; 0: off",
          NOT_NEGATIVE),
    TRAIN(ema, NUMBER, ALL, "0", "decay of the moving average of the weights; 0: off", FRACTION),
    TRAIN(batch, INT, ALL, "64", "rows in a step, over all devices", RANGE(1, 16777216)),
    TRAIN(micro_batches, INT, ALL, "1", "parts a batch is computed in", RANGE(1, 65536)),
    TRAIN(epochs, INT, ALL, "20", "times the data is seen; the schedule's horizon",
          RANGE(1, 1000000)),
    TRAIN(monitor, TEXT, ALL, NULL,
          "metric that picks the best checkpoint: valid.loss, valid.<output>.<metric>", ANY),
    TRAIN(patience, INT, ALL, "0", "epochs without a better monitor before stopping; 0: never",
          RANGE(0, 1000000)),
    TRAIN(keep, INT, ALL, "3", "latest checkpoints kept, beside the best", RANGE(1, 1000000)),
    TRAIN(save_every, SPAN, ALL, "1 epochs", "time between checkpoints", RANGE(0, BIG)),
    TRAIN(seed, INT, ALL, "0", "of initial weights, order and dropout",
          RANGE(0, 9007199254740992.0)),
    TRAIN(shuffle, BOOL, ALL, "true", "a new order each epoch", ANY),
    TRAIN(valid_fraction, NUMBER, ALL, "0.2", "part of the training rows set aside for validation",
          FRACTION),
    TRAIN(stratify, BOOL, ALL, "true", "keep class shares when rows are set aside", ANY),
    TRAIN(precision, CHOICE, ALL, "f32", "f32, bf16 or fp16 for products; weights stay f32",
          CHOOSE(precisions)),
    TRAIN(
        recompute, TEXTS, ALL, NULL,
        "auto: where memory binds; none; or modules whose values the backward pass computes again",
        CHOOSE(recomputes)),
};

static_assert(COUNT(input_keys) <= 64 && COUNT(output_keys) <= 64 && COUNT(train_keys) <= 64,
              "the given-bits of a part are one u64");

static const char *const kind_names[] = {"",         "dense",  "sequence", "set",
                                         "category", "stream", "image",    NULL};
static const char *const task_names[] = {"", "classification", "regression", "multilabel", NULL};
static const char *const optimizer_names[] = {"sgd", "adam", "adamw", "rmsprop", "adagrad", NULL};

const sn__part sn__part_input = {
    .title = "input",
    .selector = "kind",
    .selector_offset = offsetof(sn_model_input, kind),
    .kind_names = kind_names,
    .keys = input_keys,
    .count = COUNT(input_keys),
};
const sn__part sn__part_output = {
    .title = "output",
    .selector = "task",
    .selector_offset = offsetof(sn_model_output, task),
    .kind_names = task_names,
    .keys = output_keys,
    .count = COUNT(output_keys),
};
const sn__part sn__part_trunk = {
    .title = "trunk", .selector = NULL, .keys = trunk_keys, .count = COUNT(trunk_keys)};
const sn__part sn__part_train = {
    .title = "train",
    .selector = "optimizer",
    .selector_offset = offsetof(sn_model_train, optimizer),
    .kind_names = optimizer_names,
    .keys = train_keys,
    .count = COUNT(train_keys),
};

unsigned sn__part_kind(const sn__part *part, const void *object) {
  if (part->selector == NULL) return 0;
  int kind;
  memcpy(&kind, (const char *)object + part->selector_offset, sizeof kind);
  return (unsigned)kind;
}

/* A key may have several rows, for different kinds: the one for `kind`, else the first. */
const sn__key *sn__part_find(const sn__part *part, const char *name, unsigned kind) {
  const sn__key *found = NULL;
  for (size_t i = 0; i < part->count; i++) {
    const sn__key *key = &part->keys[i];
    if (strcmp(key->name, name) != 0) continue;
    if ((key->kinds & BIT(kind)) != 0) return key;
    if (found == NULL) found = key;
  }
  return found;
}

const char *sn_config_kind_name(sn_config_kind kind) {
  return (unsigned)kind < COUNT(kind_names) - 1 ? kind_names[kind] : "";
}

const char *sn_config_task_name(sn_config_task task) {
  return (unsigned)task < COUNT(task_names) - 1 ? task_names[task] : "";
}
