/* SPDX-License-Identifier: Apache-2.0 */
/* What one key cannot know: keys against each other, names against names, and what follows from
 * what was given. */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "core/nearest.h"
#include "models/config_internal.h"

typedef struct where_text {
  char text[300];
} where_text;

static where_text where(const sn_model_config *config, int line, int column) {
  where_text out;
  if (line > 0)
    snprintf(out.text, sizeof out.text, "at %.200s:%d:%d", config->file, line, column);
  else
    snprintf(out.text, sizeof out.text, "in %.200s", config->file);
  return out;
}

#define AT(mark) where(config, (mark).line, (mark).column).text

static bool given(const sn__part *part, const void *object, const char *name) {
  uint64_t bits = ((const sn_config_mark *)object)->given;
  for (size_t i = 0; i < part->count; i++) {
    if ((bits & (UINT64_C(1) << i)) != 0 && strcmp(part->keys[i].name, name) == 0) return true;
  }
  return false;
}

/* --set can change a part's kind under keys that were given for another. */
static sn_status check_applies(const sn_model_config *config, const sn__part *part,
                               const char *name, const void *object) {
  const sn_config_mark *mark = object;
  unsigned kind = sn__part_kind(part, object);
  for (size_t i = 0; i < part->count; i++) {
    const sn__key *key = &part->keys[i];
    if ((mark->given & (UINT64_C(1) << i)) == 0 || (key->kinds & (1u << kind)) != 0) continue;
    char kinds[120];
    sn__kind_words(part, key->kinds, kinds, sizeof kinds);
    return sn_status_make(
        SN_CODE_CONFIG, "key '%s' in %s '%s' %s is for %s %s, not %s; take it out", key->name,
        part->title, name, AT(*mark), part->selector, kinds, part->kind_names[kind]);
  }
  return SN_OK;
}

/* ---- names and paths ------------------------------------------------------------------------ */

static char *own_path(sn_model_config *config, const char *name) {
  char *path = sn__config_alloc(config, strlen(name) + 2, 1);
  if (path == NULL) return NULL;
  path[0] = '/';
  memcpy(path + 1, name, strlen(name) + 1);
  return path;
}

static sn_status check_names(const sn_model_config *config) {
  for (size_t i = 0; i < config->output_count; i++) {
    const sn_model_output *output = &config->outputs[i];
    for (size_t j = 0; j < config->input_count; j++) {
      if (strcmp(output->name, config->inputs[j].name) == 0)
        return sn_status_make(SN_CODE_CONFIG, "'%s' %s is an input and an output; rename one",
                              output->name, AT(output->mark));
    }
    if (strcmp(output->name, "trunk") == 0 || strcmp(output->name, "loss") == 0)
      return sn_status_make(SN_CODE_CONFIG, "an output called '%s' %s would hide the %s; rename it",
                            output->name, AT(output->mark), output->name);
  }
  for (size_t j = 0; j < config->input_count; j++) {
    if (strcmp(config->inputs[j].name, "trunk") == 0)
      return sn_status_make(SN_CODE_CONFIG,
                            "an input called 'trunk' %s would hide the trunk; rename it",
                            AT(config->inputs[j].mark));
  }
  return SN_OK;
}

/* Names of all inputs and outputs; the caller gives room for them. */
static size_t all_names(const sn_model_config *config, const char **names) {
  size_t count = 0;
  for (size_t i = 0; i < config->input_count; i++) {
    names[count++] = config->inputs[i].name;
  }
  for (size_t i = 0; i < config->output_count; i++) {
    names[count++] = config->outputs[i].name;
  }
  return count;
}

static bool is_known(const char *name, const char *const *names, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (strcmp(names[i], name) == 0) return true;
  }
  return false;
}

static sn_status check_data(const sn_model_config *config) {
  static const char *const splits[] = {"train", "valid", "test"};
  const char *names[2 * SN__CONFIG_MODULES_MAX];
  size_t count = all_names(config, names);
  for (size_t s = 0; s < SN_CONFIG_SPLIT_COUNT; s++) {
    for (size_t i = 0; i < config->data[s].count; i++) {
      const sn_model_source *source = &config->data[s].sources[i];
      if (is_known(source->name, names, count)) continue;
      const char *near = sn__nearest(source->name, names, count);
      return sn_status_make(SN_CODE_CONFIG, "'%s' in data.%s %s is no input or output%s%s%s",
                            source->name, splits[s],
                            where(config, source->line, source->column).text,
                            near != NULL ? "; did you mean '" : "; name one of them",
                            near != NULL ? near : "", near != NULL ? "'?" : "");
    }
  }
  return SN_OK;
}

/* A module, a module inside it ("visits/lstm"), or a pattern for either; `what` and `at` say where
 * it stands. */
static sn_status check_module_name(const sn_model_config *config, const char *name,
                                   const char *what, const char *at) {
  const char *names[2 * SN__CONFIG_MODULES_MAX + 1];
  size_t count = all_names(config, names);
  names[count++] = "trunk";
  char first[SN__CONFIG_NAME_MAX + 1];
  snprintf(first, sizeof first, "%.*s", (int)strcspn(name, "/"), name);
  for (size_t j = 0; j < count; j++)
    if (fnmatch(first, names[j], 0) == 0) return SN_OK;
  const char *near = sn__nearest(first, names, count);
  return sn_status_make(SN_CODE_CONFIG, "module '%s' in %s %s is not in the model%s%s%s", name,
                        what, at,
                        near != NULL ? "; did you mean '" : "; name an input, an output or trunk",
                        near != NULL ? near : "", near != NULL ? "'?" : "");
}

static sn_status check_pins(const sn_model_config *config) {
  for (size_t i = 0; i < config->pin_count; i++) {
    const sn_model_pin *pin = &config->pins[i];
    SN_TRY(check_module_name(config, pin->module, "placement",
                             where(config, pin->line, pin->column).text));
  }
  return SN_OK;
}

/* "a+b" names several modules, recomputed as one. */
static sn_status check_recompute(const sn_model_config *config, bool in_c) {
  const sn_config_texts *list = &config->train.recompute;
  for (size_t i = 0; i < list->count; i++) {
    bool word = strcmp(list->items[i], "auto") == 0 || strcmp(list->items[i], "none") == 0;
    if (word && list->count > 1)
      return sn_status_make(SN_CODE_CONFIG,
                            "train %s: recompute has '%s' beside modules; it stands alone",
                            AT(config->train.mark), list->items[i]);
    for (const char *at = list->items[i]; !word && !in_c && at != NULL;) {
      char part[256];
      size_t n = strcspn(at, "+");
      if (n == 0)
        return sn_status_make(SN_CODE_CONFIG,
                              "train %s: recompute: a name in '%.80s' is empty; name a module on "
                              "each side of +",
                              AT(config->train.mark), list->items[i]);
      snprintf(part, sizeof part, "%.*s", (int)(n < sizeof part ? n : sizeof part - 1), at);
      SN_TRY(check_module_name(config, part, "train.recompute", AT(config->train.mark)));
      at = at[n] == '+' ? at + n + 1 : NULL;
    }
  }
  return SN_OK;
}

/* ---- inputs and outputs --------------------------------------------------------------------- */

static sn_status check_stream(const sn_model_config *config, const sn_model_input *input) {
  if (config->input_count > 1)
    return sn_status_make(SN_CODE_CONFIG,
                          "stream '%s' %s stands beside other inputs; its rows are "
                          "windows, so let it stand alone",
                          input->name, AT(input->mark));
  if (!input->next)
    return sn_status_make(SN_CODE_CONFIG,
                          "stream '%s' %s has next: false, and no other target is "
                          "known for a window; take it out",
                          input->name, AT(input->mark));
  if (config->output_count > 1)
    return sn_status_make(SN_CODE_CONFIG,
                          "stream '%s' %s has one output, its next element; keep one", input->name,
                          AT(input->mark));
  return SN_OK;
}

/* A list of one stands for all convolutions or blocks. */
static sn_status check_each(const sn_model_config *config, const sn_model_input *input,
                            const char *key, const sn_config_ints *list) {
  if (list->count == 1 || list->count == input->filters.count) return SN_OK;
  return sn_status_make(SN_CODE_CONFIG,
                        "input '%s' %s has %zu filters and %zu %s; give one for all, or one for "
                        "each",
                        input->name, AT(input->mark), input->filters.count, list->count, key);
}

static bool is_just(const sn_config_ints *list, int64_t number) {
  return list->count == 1 && list->items[0] == number;
}

/* Keys of the other encoder may stand at their defaults, as they do in a file with all keys. */
static const char *stray_image_key(const sn_model_input *input) {
  if (input->encoder == SN_CONFIG_ENCODER_INCEPTION)
    return !is_just(&input->kernel, 3) ? "kernel" : !is_just(&input->stride, 1) ? "stride" : NULL;
  return input->stem != 0 ? "stem" : input->reduce != 0 ? "reduce" : NULL;
}

static sn_status check_image(const sn_model_config *config, const sn_model_input *input) {
  const bool blocks = input->encoder == SN_CONFIG_ENCODER_INCEPTION;
  const char *stray = stray_image_key(input);
  if (stray != NULL)
    return sn_status_make(SN_CODE_CONFIG,
                          "input '%s' %s has %s, which is for encoder: %s; take it out",
                          input->name, AT(input->mark), stray, blocks ? "conv" : "inception");
  if (blocks && input->activation == SN_CONFIG_ACTIVATION_NONE)
    return sn_status_make(SN_CODE_CONFIG,
                          "input '%s' %s has encoder: inception and activation: none, which would "
                          "make its paths one sum; give another activation",
                          input->name, AT(input->mark));
  if (input->filters.count == 0)
    return sn_status_make(SN_CODE_CONFIG, "input '%s' %s has no filters; give one number or more",
                          input->name, AT(input->mark));
  SN_TRY(check_each(config, input, "kernel", &input->kernel));
  SN_TRY(check_each(config, input, "stride", &input->stride));
  SN_TRY(check_each(config, input, "max_pool", &input->max_pool));
  for (size_t i = 0; i < input->filters.count; i++)
    if (blocks && input->filters.items[i] % 4 != 0)
      return sn_status_make(SN_CODE_CONFIG,
                            "input '%s' %s has a block of %lld filters; four paths share them, so "
                            "give a multiple of 4",
                            input->name, AT(input->mark), (long long)input->filters.items[i]);
  for (size_t i = 0; i < input->kernel.count; i++)
    if (input->kernel.items[i] % 2 == 0)
      return sn_status_make(SN_CODE_CONFIG,
                            "input '%s' %s has a kernel of %lld; give an odd one, which has a "
                            "middle",
                            input->name, AT(input->mark), (long long)input->kernel.items[i]);
  return SN_OK;
}

/* Only batch norm has statistics to share. */
static sn_status check_sync(const sn_model_config *config, const char *title, const char *name,
                            const sn_config_mark *mark, sn_config_norm norm, bool sync) {
  if (!sync || norm == SN_CONFIG_NORM_BATCH) return SN_OK;
  return sn_status_make(SN_CODE_CONFIG,
                        "%s%s%s%s %s has sync: true, which is for norm: batch; set that, or take "
                        "sync out",
                        title, *name != '\0' ? " '" : "", name, *name != '\0' ? "'" : "",
                        AT(*mark));
}

static sn_status check_input(sn_model_config *config, sn_model_input *input) {
  if (input->kind == SN_CONFIG_KIND_NONE)
    return sn_status_make(SN_CODE_CONFIG, "input '%s' %s has no 'kind'; add one", input->name,
                          AT(input->mark));
  SN_TRY(check_applies(config, &sn__part_input, input->name, input));
  if (input->kind == SN_CONFIG_KIND_SEQUENCE && input->encoder == SN_CONFIG_ENCODER_MEAN &&
      input->pool != SN_CONFIG_POOL_MEAN)
    return sn_status_make(SN_CODE_CONFIG,
                          "input '%s' %s has encoder: mean and another pool; take the "
                          "pool out, or use lstm or gru",
                          input->name, AT(input->mark));
  SN_TRY(check_sync(config, "input", input->name, &input->mark, input->norm, input->sync));
  if (input->kind == SN_CONFIG_KIND_STREAM) SN_TRY(check_stream(config, input));
  if (input->kind == SN_CONFIG_KIND_IMAGE) SN_TRY(check_image(config, input));
  if (input->path == NULL && (input->path = own_path(config, input->name)) == NULL)
    return sn_status_out_of_memory();
  return SN_OK;
}

static const sn_model_input *stream_of(const sn_model_config *config) {
  for (size_t i = 0; i < config->input_count; i++) {
    if (config->inputs[i].kind == SN_CONFIG_KIND_STREAM) return &config->inputs[i];
  }
  return NULL;
}

static sn_status check_weights(const sn_model_config *config, const sn_model_output *output) {
  const sn_config_class_weights *weights = &output->class_weights;
  size_t classes = output->labels.count;
  if (weights->mode == SN_CONFIG_CLASS_WEIGHTS_LIST && classes > 0 && weights->count != classes)
    return sn_status_make(SN_CODE_CONFIG,
                          "output '%s' %s has %zu class_weights and %zu labels; give "
                          "one weight a label",
                          output->name, AT(output->mark), weights->count, classes);
  double most = 0;
  for (size_t i = 0; i < weights->count; i++)
    most = weights->items[i] > most ? weights->items[i] : most;
  /* A class that a map leaves out weighs 1. */
  const bool all =
      weights->mode == SN_CONFIG_CLASS_WEIGHTS_LIST ||
      (weights->mode == SN_CONFIG_CLASS_WEIGHTS_MAP && classes > 0 && weights->count >= classes);
  if (all && most == 0)
    return sn_status_make(SN_CODE_CONFIG,
                          "output '%s' %s has class_weights that are all 0; give a class more, or "
                          "take the output out",
                          output->name, AT(output->mark));
  if (weights->mode != SN_CONFIG_CLASS_WEIGHTS_MAP || classes == 0) return SN_OK;
  for (size_t i = 0; i < weights->count; i++) {
    const char *const *labels = (const char *const *)output->labels.items;
    if (is_known(weights->names[i], labels, classes)) continue;
    const char *near = sn__nearest(weights->names[i], labels, classes);
    return sn_status_make(SN_CODE_CONFIG,
                          "class_weights of output '%s' %s names '%.64s', which is no "
                          "label%s%s%s",
                          output->name, AT(output->mark), weights->names[i],
                          near != NULL ? "; did you mean '" : "; use the labels' names",
                          near != NULL ? near : "", near != NULL ? "'?" : "");
  }
  return SN_OK;
}

static sn_status check_output(sn_model_config *config, sn_model_output *output) {
  if (output->task == SN_CONFIG_TASK_NONE)
    return sn_status_make(SN_CODE_CONFIG, "output '%s' %s has no 'task'; add one", output->name,
                          AT(output->mark));
  SN_TRY(check_applies(config, &sn__part_output, output->name, output));
  if (output->huber_delta != 1 && given(&sn__part_output, output, "huber_delta") &&
      output->loss != SN_CONFIG_LOSS_HUBER)
    return sn_status_make(SN_CODE_CONFIG,
                          "output '%s' %s has huber_delta and another loss; add loss: huber",
                          output->name, AT(output->mark));
  SN_TRY(check_weights(config, output));
  const sn_model_input *stream = stream_of(config);
  if (stream != NULL) {
    if (output->path != NULL || output->task != SN_CONFIG_TASK_CLASSIFICATION)
      return sn_status_make(SN_CODE_CONFIG,
                            "output '%s' %s is the next element of stream '%s'; give it "
                            "task: classification and no path",
                            output->name, AT(output->mark), stream->name);
    return SN_OK;
  }
  if (output->path == NULL && (output->path = own_path(config, output->name)) == NULL)
    return sn_status_out_of_memory();
  return SN_OK;
}

static sn_status check_modules(sn_model_config *config, unsigned flags) {
  bool in_c = (flags & SN_CONFIG_MODEL_IN_C) != 0;
  if (config->input_count == 0 && !in_c)
    return sn_status_make(SN_CODE_CONFIG, "%s has no inputs; add 'inputs: {NAME: {kind: ...}}'",
                          config->file);
  if (config->output_count == 0 && stream_of(config) != NULL) {
    sn_model_output *next;
    SN_TRY(sn_model_config_add_output(config, "next", SN_CONFIG_TASK_CLASSIFICATION, &next));
  }
  if (config->output_count == 0 && !in_c)
    return sn_status_make(SN_CODE_CONFIG, "%s has no outputs; add 'outputs: {NAME: {task: ...}}'",
                          config->file);
  SN_TRY(check_names(config));
  const sn_model_trunk *trunk = &config->trunk;
  SN_TRY(check_sync(config, "trunk", "", &trunk->mark, trunk->norm, trunk->sync));
  double total = 0;
  for (size_t i = 0; i < config->input_count; i++) {
    SN_TRY(check_input(config, &config->inputs[i]));
  }
  for (size_t i = 0; i < config->output_count; i++) {
    SN_TRY(check_output(config, &config->outputs[i]));
    total += config->outputs[i].weight;
  }
  if (config->output_count > 0 && !(total > 0))
    return sn_status_make(
        SN_CODE_CONFIG, "every output of %s has weight 0; nothing would be learned", config->file);
  SN_TRY(check_data(config));
  SN_TRY(check_recompute(config, in_c));
  return in_c ? SN_OK : check_pins(config);
}

/* ---- train ---------------------------------------------------------------------------------- */

const char *const *sn__task_metrics(sn_config_task task) {
  static const char *const classes[] = {
      "accuracy", "balanced_accuracy", "f1", "auc", "log_loss", "loss", NULL};
  static const char *const multilabel[] = {"accuracy", "f1", "auc", "log_loss", "loss", NULL};
  static const char *const regression[] = {"r2", "mae", "rmse", "loss", NULL};
  static const char *const none[] = {NULL};
  switch (task) {
  case SN_CONFIG_TASK_CLASSIFICATION: return classes;
  case SN_CONFIG_TASK_MULTILABEL: return multilabel;
  case SN_CONFIG_TASK_REGRESSION: return regression;
  default: return none;
  }
}

static const char *const *metrics_of(const sn_model_output *output) {
  static const char *const stream[] = {"nats", "accuracy", "loss", NULL};
  return output->path == NULL ? stream : sn__task_metrics(output->task);
}

static sn_status bad_monitor(const sn_model_config *config, const char *what,
                             const char *const *known, size_t count) {
  const char *near = what != NULL ? sn__nearest(what, known, count) : NULL;
  char words[300];
  size_t used = 0;
  words[0] = '\0';
  for (size_t i = 0; i < count && used < sizeof words - 80; i++) {
    used +=
        (size_t)snprintf(words + used, sizeof words - used, "%s%s", i > 0 ? ", " : "", known[i]);
  }
  if (near != NULL)
    return sn_status_make(SN_CODE_CONFIG,
                          "monitor '%.100s' in train %s: no '%.64s'; did you mean '%s'?",
                          config->train.monitor, AT(config->train.mark), what, near);
  return sn_status_make(SN_CODE_CONFIG,
                        "monitor '%.100s' in train %s is not known; use valid.loss or "
                        "valid.OUTPUT.METRIC%s%s",
                        config->train.monitor, AT(config->train.mark), used > 0 ? " with: " : "",
                        words);
}

static sn_status check_monitor(const sn_model_config *config) {
  static const char *const splits[] = {"valid", "train"};
  const char *monitor = config->train.monitor;
  char split[8], name[SN__CONFIG_NAME_MAX + 1];
  const char *dot = strchr(monitor, '.');
  snprintf(split, sizeof split, "%.*s", (int)(dot != NULL ? dot - monitor : 6), monitor);
  if (strcmp(split, "test") == 0)
    return sn_status_make(SN_CODE_CONFIG,
                          "monitor '%.100s' in train %s would choose by the test data; "
                          "use valid",
                          monitor, AT(config->train.mark));
  if (dot == NULL || !is_known(split, splits, 2))
    return bad_monitor(config, dot != NULL ? split : NULL, splits, 2);
  const char *rest = dot + 1, *second = strchr(rest, '.');
  if (strcmp(rest, "loss") == 0) return SN_OK;
  const char *names[SN__CONFIG_MODULES_MAX + 1];
  size_t count = 0;
  for (; count < config->output_count; count++) {
    names[count] = config->outputs[count].name;
  }
  size_t length = second != NULL ? (size_t)(second - rest) : strlen(rest);
  snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), rest);
  size_t at = 0;
  while (at < count && strcmp(names[at], name) != 0) {
    at++;
  }
  if (config->output_count == 0) return SN_OK; /* a model in C names its outputs later */
  if (at == count) return bad_monitor(config, name, names, count);
  const char *const *metrics = metrics_of(&config->outputs[at]);
  size_t metric_count = 0;
  while (metrics[metric_count] != NULL) {
    metric_count++;
  }
  if (second == NULL) return bad_monitor(config, NULL, metrics, metric_count);
  if (!is_known(second + 1, metrics, metric_count))
    return bad_monitor(config, second + 1, metrics, metric_count);
  return SN_OK;
}

static sn_status train_mistake(const sn_model_config *config, const char *what) {
  return sn_status_make(SN_CODE_CONFIG, "train %s: %s", AT(config->train.mark), what);
}

static sn_status check_schedule(sn_model_config *config) {
  sn_model_train *train = &config->train;
  bool step = train->schedule == SN_CONFIG_SCHEDULE_STEP;
  bool exponential = train->schedule == SN_CONFIG_SCHEDULE_EXPONENTIAL;
  if (step && !(train->step_size.count > 0))
    return train_mistake(config, "schedule: step needs a step_size, such as '10 epochs'");
  if (!step && train->step_size.count > 0)
    return train_mistake(config, "step_size is for schedule: step; take it out");
  if (!step && !exponential && train->gamma != 0.1 && given(&sn__part_train, train, "gamma"))
    return train_mistake(config, "gamma is for schedule: step or exponential; take it out");
  /* A tenth per epoch would be no schedule at all. */
  if (exponential && !given(&sn__part_train, train, "gamma")) train->gamma = 0.95;
  if (train->min_learning_rate > train->learning_rate)
    return train_mistake(config, "min_learning_rate is above learning_rate; lower it");
  return SN_OK;
}

static sn_status check_train(sn_model_config *config) {
  sn_model_train *train = &config->train;
  const sn__part *part = &sn__part_train;
  SN_TRY(check_applies(config, part, "train", train));
  if (train->nesterov && !(train->momentum > 0))
    return train_mistake(config, "nesterov needs momentum above 0, such as 0.9");
  if (train->micro_batches > train->batch)
    return train_mistake(config, "more micro_batches than rows in a batch; lower micro_batches");
  if (!(train->save_every.count > 0))
    return train_mistake(config, "save_every is 0; give '1 epochs' or a number of steps");
  SN_TRY(check_schedule(config));
  if (train->monitor == NULL && (train->monitor = sn__config_strdup(config, "valid.loss")) == NULL)
    return sn_status_out_of_memory();
  return check_monitor(config);
}

sn_status sn_model_config_check(sn_model_config *config, unsigned flags) {
  SN_TRY(check_modules(config, flags));
  return check_train(config);
}
