/* SPDX-License-Identifier: Apache-2.0 */
/* From the keys of `train:` to an optimizer, and first weights from a file. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "io/checkpoint.h"
#include "tools/sennit/task.h"

static int64_t span_steps(const sn_config_span *span, int64_t batches) {
  double steps = span->epochs ? span->count * (double)batches : span->count;
  return (int64_t)(steps + 0.5);
}

/* In sn_optimizer_options zero stands for a default, so a zero that was asked for is made tiny. */
static double really(double number) {
  return number == 0 ? 1e-30 : number;
}

static sn_schedule_options schedule_of(const sn_model_train *train, int64_t batches) {
  static const sn_schedule_kind kinds[] = {
      [SN_CONFIG_SCHEDULE_CONSTANT] = SN_SCHEDULE_CONSTANT,
      [SN_CONFIG_SCHEDULE_STEP] = SN_SCHEDULE_STEP,
      [SN_CONFIG_SCHEDULE_COSINE] = SN_SCHEDULE_COSINE,
      [SN_CONFIG_SCHEDULE_EXPONENTIAL] = SN_SCHEDULE_EXPONENTIAL,
      [SN_CONFIG_SCHEDULE_ONE_CYCLE] = SN_SCHEDULE_ONE_CYCLE,
  };
  sn_schedule_options s = {
      .kind = kinds[train->schedule],
      .warmup_steps = span_steps(&train->warmup, batches),
      .total_steps = train->epochs * batches,
      .gamma = train->gamma,
      .min_rate = train->min_learning_rate,
  };
  if (s.kind == SN_SCHEDULE_STEP) {
    s.step_size = span_steps(&train->step_size, batches);
    if (s.step_size < 1) s.step_size = 1;
  }
  /* The file's gamma is for an epoch, the optimizer's for a step. */
  if (s.kind == SN_SCHEDULE_EXPONENTIAL) s.gamma = pow(train->gamma, 1.0 / (double)batches);
  return s;
}

sn_optimizer_options task_optimizer(const sn_model_train *train, int64_t batches) {
  static const sn_optimizer_kind kinds[] = {
      [SN_CONFIG_OPTIMIZER_SGD] = SN_SGD,         [SN_CONFIG_OPTIMIZER_ADAM] = SN_ADAM,
      [SN_CONFIG_OPTIMIZER_ADAMW] = SN_ADAMW,     [SN_CONFIG_OPTIMIZER_RMSPROP] = SN_RMSPROP,
      [SN_CONFIG_OPTIMIZER_ADAGRAD] = SN_ADAGRAD,
  };
  sn_optimizer_options o = {
      .struct_size = sizeof o,
      .kind = kinds[train->optimizer],
      .learning_rate = train->learning_rate,
      .momentum = train->momentum,
      .nesterov = train->nesterov,
      .weight_decay = train->weight_decay,
      .epsilon = train->epsilon,
      .clip_value = train->clip_value,
      .clip_norm = train->clip_norm,
      .ema_decay = train->ema,
      .schedule = schedule_of(train, batches),
  };
  if (o.kind == SN_ADAM || o.kind == SN_ADAMW) {
    o.beta1 = really(train->beta1);
    o.beta2 = really(train->beta2);
  }
  if (o.kind == SN_ADAMW) o.weight_decay = really(train->weight_decay);
  if (o.kind == SN_RMSPROP) o.alpha = really(train->alpha);
  return o;
}

/* ---- first weights -------------------------------------------------------------------------- */

/* "strokes/lstm/bias" and "strokes.lstm.bias" are one name. */
static bool same_name(const char *variable, const char *tensor) {
  for (; *variable != '\0' && *tensor != '\0'; variable++, tensor++) {
    char v = *variable == '/' ? '.' : *variable, t = *tensor == '/' ? '.' : *tensor;
    if (v != t) return false;
  }
  return *variable == *tensor;
}

static const sn_named_tensor *find_tensor(const sn_checkpoint *file, const char *variable) {
  for (size_t i = 0; i < sn_checkpoint_tensor_count(file); i++) {
    const sn_named_tensor *t = sn_checkpoint_tensor(file, i);
    if (same_name(variable, t->name)) return t;
  }
  return NULL;
}

static sn_status shape_differs(const sn_stored *v, const sn_named_tensor *t) {
  char want[160], have[160];
  return sn_status_make(
      SN_CODE_DATA, "tensor '%s' has shape %s and variable '%s' has %s; take weights of this model",
      t->name, sn_shape_text(NULL, &t->shape, have, sizeof have), v->name,
      sn_shape_text(NULL, &v->shape, want, sizeof want));
}

/* Floats of other widths are converted; other types must match. */
static sn_status write_weights(sn_store *store, const sn_stored *v, const sn_named_tensor *t) {
  if (t->dtype == v->dtype) return sn_store_write(store, v->name, t->data, v->bytes);
  size_t count = v->bytes / sizeof(float);
  if (v->dtype != SN_F32 || (t->dtype != SN_F64 && t->dtype != SN_BF16))
    return sn_status_make(SN_CODE_DATA, "tensor '%s' is %s and variable '%s' is %s; convert it",
                          t->name, sn_dtype_name(t->dtype), v->name, sn_dtype_name(v->dtype));
  float *wide = sn__alloc(v->bytes + 1);
  if (wide == NULL) return sn_status_out_of_memory();
  for (size_t i = 0; i < count; i++) {
    if (t->dtype == SN_F64) {
      wide[i] = (float)((const double *)t->data)[i];
    } else {
      uint32_t bits = (uint32_t)((const uint16_t *)t->data)[i] << 16;
      memcpy(&wide[i], &bits, sizeof bits);
    }
  }
  sn_status status = sn_store_write(store, v->name, wide, v->bytes);
  sn__free(wide);
  return status;
}

static sn_status take_weights(const sn_checkpoint *file, sn_store *store, size_t *out_taken,
                              size_t *out_variables) {
  *out_taken = *out_variables = 0;
  for (size_t i = 0; i < sn_store_count(store); i++) {
    const sn_stored *v = sn_store_at(store, i);
    if (v->owner != NULL) continue;
    ++*out_variables;
    const sn_named_tensor *t = find_tensor(file, v->name);
    if (t == NULL) continue;
    if (!sn_shape_equal(&t->shape, &v->shape)) return shape_differs(v, t);
    SN_TRY(write_weights(store, v, t));
    ++*out_taken;
  }
  /* An average starts from the first weights, not from those that they replace. */
  for (size_t i = 0; i < sn_store_count(store); i++) {
    const sn_stored *slot = sn_store_at(store, i);
    if (slot->owner == NULL || slot->role == NULL || strcmp(slot->role, "ema") != 0) continue;
    void *data = sn__alloc(slot->bytes + 1);
    if (data == NULL) return sn_status_out_of_memory();
    sn_status status = sn_store_read(store, slot->owner, data, slot->bytes);
    if (status == SN_OK) status = sn_store_write(store, slot->name, data, slot->bytes);
    sn__free(data);
    SN_TRY(status);
  }
  return SN_OK;
}

sn_status task_init_weights(const char *path, sn_store *store, ui_state *ui) {
  sn_checkpoint *file = NULL;
  SN_TRY(sn_safetensors_read(path, &file));
  size_t taken, variables, tensors = sn_checkpoint_tensor_count(file);
  sn_status status = take_weights(file, store, &taken, &variables);
  if (status == SN_OK && taken == 0)
    status = sn_status_make(SN_CODE_DATA,
                            "none of its %zu tensors has the name of a variable, such as '%s'; "
                            "take weights of this model",
                            tensors, sn_store_count(store) > 0 ? sn_store_at(store, 0)->name : "");
  if (status == SN_OK)
    ui_line(ui, "first weights: %zu of %zu variables from %s; %zu of its %zu tensors not used",
            taken, variables, path, tensors > taken ? tensors - taken : 0, tensors);
  sn_checkpoint_free(file);
  return sn_status_context(status, "%s", path);
}
