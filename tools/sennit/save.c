/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/save.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cJSON.h>

#include "core/alloc.h"
#include "core/version.h"
#include "models/config.h"
#include "tools/sennit/json.h"

/* ---- state --------------------------------------------------------------------------------- */

sn_status run_state_create(size_t n_losses, run_state *out) {
  *out = (run_state){.n_losses = n_losses,
                     .best = NAN,
                     .loss = NAN,
                     .sums = sn__calloc(n_losses + 1, sizeof *out->sums),
                     .totals = sn__calloc(n_losses + 1, sizeof *out->totals)};
  if (out->sums != NULL && out->totals != NULL) return SN_OK;
  run_state_free(out);
  return sn_status_out_of_memory();
}

void run_state_free(run_state *state) {
  sn__free(state->sums);
  sn__free(state->totals);
  state->sums = state->totals = NULL;
}

/* Every bit of a number comes back: cJSON's own way of printing rounds. */
static void exact(json_report *r, cJSON *into, const char *key, double value) {
  char text[40];
  if (isfinite(value))
    snprintf(text, sizeof text, "%.17g", value);
  else
    snprintf(text, sizeof text, "null");
  json_raw(r, into, key, text);
}

static sn_status state_text(const run_state *s, const char *metrics, char **out_text) {
  json_report r;
  SN_TRY(json_create(&r));
  json_text(&r, r.root, "sennit", SN_VERSION);
  json_int(&r, r.root, "step", s->step);
  json_int(&r, r.root, "epoch", s->epoch);
  json_int(&r, r.root, "batch", s->batch);
  json_int(&r, r.root, "batches", s->batches);
  json_int(&r, r.root, "horizon", s->horizon);
  json_int(&r, r.root, "seed", s->seed);
  json_int(&r, r.root, "best_epoch", s->best_epoch);
  exact(&r, r.root, "best", s->best);
  json_int(&r, r.root, "since_best", s->since_best);
  exact(&r, r.root, "loss", s->loss);
  cJSON *sums = json_list(&r, r.root, "loss_sums"), *totals = json_list(&r, r.root, "loss_weights");
  for (size_t i = 0; i < s->n_losses && totals != NULL; i++) {
    exact(&r, sums, NULL, s->sums[i]);
    exact(&r, totals, NULL, s->totals[i]);
  }
  if (s->data[0] != '\0') json_text(&r, r.root, "data", s->data);
  if (s->valid[0] != '\0') json_text(&r, r.root, "valid_data", s->valid);
  if (metrics != NULL) json_raw(&r, r.root, "metrics", metrics);
  *out_text = r.failed ? NULL : cJSON_Print(r.root);
  json_free(&r);
  return *out_text != NULL ? SN_OK : sn_status_out_of_memory();
}

static bool take_int(const cJSON *root, const char *key, int64_t *out) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(root, key);
  if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble < 9e15)) return false;
  *out = (int64_t)item->valuedouble;
  return true;
}

static bool take_number(const cJSON *item, double *out) {
  *out = NAN;
  if (cJSON_IsNull(item)) return true;
  if (!cJSON_IsNumber(item)) return false;
  *out = item->valuedouble;
  return true;
}

/* Checkpoints from before there were fingerprints have none. */
static bool take_print(const cJSON *root, const char *key, char out[65]) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(root, key);
  if (item == NULL) return true;
  if (!cJSON_IsString(item) || strlen(item->valuestring) != 64) return false;
  memcpy(out, item->valuestring, 65);
  return true;
}

static bool take_state(const cJSON *root, run_state *s) {
  const cJSON *sums = cJSON_GetObjectItemCaseSensitive(root, "loss_sums");
  const cJSON *totals = cJSON_GetObjectItemCaseSensitive(root, "loss_weights");
  bool ok = take_int(root, "step", &s->step) && take_int(root, "epoch", &s->epoch) &&
            take_int(root, "batch", &s->batch) && take_int(root, "batches", &s->batches) &&
            take_int(root, "horizon", &s->horizon) && take_int(root, "seed", &s->seed) &&
            take_int(root, "best_epoch", &s->best_epoch) &&
            take_int(root, "since_best", &s->since_best) &&
            take_number(cJSON_GetObjectItemCaseSensitive(root, "best"), &s->best) &&
            take_number(cJSON_GetObjectItemCaseSensitive(root, "loss"), &s->loss) &&
            take_print(root, "data", s->data) && take_print(root, "valid_data", s->valid) &&
            cJSON_GetArraySize(sums) == (int)s->n_losses &&
            cJSON_GetArraySize(totals) == (int)s->n_losses;
  for (size_t i = 0; ok && i < s->n_losses; i++)
    ok = take_number(cJSON_GetArrayItem(sums, (int)i), &s->sums[i]) &&
         take_number(cJSON_GetArrayItem(totals, (int)i), &s->totals[i]);
  return ok;
}

sn_status save_read_state(const sn_checkpoint *checkpoint, run_state *out) {
  const sn_named_text *text = sn_checkpoint_text(checkpoint, "state");
  if (text == NULL)
    return sn_status_make(SN_CODE_CORRUPT, "it holds no state; it is not from sennit train");
  json_report hooks; /* cJSON under our allocator */
  SN_TRY(json_create(&hooks));
  json_free(&hooks);
  cJSON *root = cJSON_ParseWithLength(text->text, text->length);
  const cJSON *sums = cJSON_GetObjectItemCaseSensitive(root, "loss_sums");
  int n = cJSON_GetArraySize(sums);
  sn_status status = run_state_create(n > 0 ? (size_t)n : 0, out);
  if (status == SN_OK && !take_state(root, out)) {
    run_state_free(out);
    status = sn_status_make(SN_CODE_CORRUPT, "its state is not what sennit train writes");
  }
  cJSON_Delete(root);
  return status;
}

/* ---- writing ------------------------------------------------------------------------------- */

void save_texts_free(save_texts *texts) {
  sn_text_free(texts->graph);
  sn_text_free(texts->config);
  sn_text_free(texts->preparation);
  *texts = (save_texts){NULL, NULL, NULL};
}

/* Accumulators are zero between steps. */
static bool is_saved(const sn_stored *v) {
  return v->role == NULL || strcmp(v->role, "accumulator") != 0;
}

static char *tensor_name(const sn_stored *v) {
  return sn__format("%s/%s", v->owner == NULL ? "variables" : "slots", v->name);
}

static sn_status read_tensors(const sn_store *store, sn_named_tensor *tensors, size_t *out_count) {
  *out_count = 0;
  for (size_t i = 0; i < sn_store_count(store); i++) {
    const sn_stored *v = sn_store_at(store, i);
    if (!is_saved(v)) continue;
    void *data = sn__alloc(v->bytes + 1);
    char *name = tensor_name(v);
    tensors[(*out_count)++] = (sn_named_tensor){name, v->dtype, v->shape, data};
    if (data == NULL || name == NULL) return sn_status_out_of_memory();
    SN_TRY(sn_store_read(store, v->name, data, v->bytes));
  }
  return SN_OK;
}

sn_status save_write(const char *path, const sn_store *store, const save_texts *texts,
                     const run_state *state, const char *metrics) {
  size_t n = 0;
  char *state_json = NULL;
  SN_TRY(state_text(state, metrics, &state_json));
  sn_named_tensor *tensors = sn__calloc(sn_store_count(store) + 1, sizeof *tensors);
  if (state_json == NULL || tensors == NULL) {
    cJSON_free(state_json);
    sn__free(tensors);
    return sn_status_out_of_memory();
  }
  sn_status status = read_tensors(store, tensors, &n);
  const sn_named_text all[] = {{"graph", texts->graph, strlen(texts->graph)},
                               {"config", texts->config, strlen(texts->config)},
                               {"preparation", texts->preparation, strlen(texts->preparation)},
                               {"state", state_json, strlen(state_json)}};
  if (status == SN_OK) status = sn_checkpoint_write(path, tensors, n, all, 4);
  for (size_t i = 0; i < n; i++) {
    sn__free((void *)(uintptr_t)tensors[i].name);
    sn__free((void *)(uintptr_t)tensors[i].data);
  }
  sn__free(tensors);
  cJSON_free(state_json);
  return status;
}

/* ---- reading ------------------------------------------------------------------------------- */

static sn_status write_tensor(sn_store *store, const sn_stored *v, const sn_named_tensor *t,
                              const char *path) {
  if (t == NULL)
    return sn_status_make(SN_CODE_CONFIG,
                          "%s has no %s '%s'; go on with the model and optimizer it was made by",
                          path, v->owner == NULL ? "variable" : "optimizer slot", v->name);
  char have[160], want[160];
  if (t->dtype != v->dtype || !sn_shape_equal(&t->shape, &v->shape))
    return sn_status_make(
        SN_CODE_CONFIG,
        "'%s' in %s is %s %s and the model's is %s %s; go on with the model it "
        "was made by",
        v->name, path, sn_dtype_name(t->dtype), sn_shape_text(NULL, &t->shape, have, sizeof have),
        sn_dtype_name(v->dtype), sn_shape_text(NULL, &v->shape, want, sizeof want));
  return sn_store_write(store, v->name, t->data, v->bytes);
}

sn_status save_read_store(const sn_checkpoint *checkpoint, const char *path, sn_store *store) {
  for (size_t i = 0; i < sn_store_count(store); i++) {
    const sn_stored *v = sn_store_at(store, i);
    if (!is_saved(v)) continue;
    char *name = tensor_name(v);
    if (name == NULL) return sn_status_out_of_memory();
    sn_status status = write_tensor(store, v, sn_checkpoint_find(checkpoint, name), path);
    sn__free(name);
    SN_TRY(status);
  }
  return SN_OK;
}

const sn_named_tensor *save_weights(const sn_checkpoint *checkpoint, const char *name) {
  char *full = sn__format("slots/%s/ema", name);
  const sn_named_tensor *t = full != NULL ? sn_checkpoint_find(checkpoint, full) : NULL;
  sn__free(full);
  if (t != NULL) return t;
  full = sn__format("variables/%s", name);
  t = full != NULL ? sn_checkpoint_find(checkpoint, full) : NULL;
  sn__free(full);
  return t;
}

sn_status save_read_weights(const sn_checkpoint *checkpoint, const char *path, sn_store *store) {
  for (size_t i = 0; i < sn_store_count(store); i++) {
    const sn_stored *v = sn_store_at(store, i);
    if (v->owner == NULL) SN_TRY(write_tensor(store, v, save_weights(checkpoint, v->name), path));
  }
  return SN_OK;
}

sn_status save_read_model(const sn_checkpoint *checkpoint, const char *path, sn_graph **out_graph,
                          sn_preparation **out_preparation) {
  const sn_named_text *graph = sn_checkpoint_text(checkpoint, "graph");
  const sn_named_text *preparation = sn_checkpoint_text(checkpoint, "preparation");
  if (graph == NULL || preparation == NULL)
    return sn_status_make(SN_CODE_CORRUPT, "%s: it holds no model; it is not from sennit train",
                          path);
  SN_TRY(sn_status_context(sn_graph_from_json(graph->text, graph->length, out_graph), "%s", path));
  sn_status status =
      sn_preparation_from_json(preparation->text, preparation->length, out_preparation);
  if (status == SN_OK) return SN_OK;
  sn_graph_free(*out_graph);
  *out_graph = NULL;
  return sn_status_context(status, "%s", path);
}

sn_status save_open(const char *given, char **out_path, sn_checkpoint **out_checkpoint) {
  static const char *const files[] = {"best.h5", "last.h5"};
  struct stat info;
  char *path = NULL;
  if (stat(given, &info) != 0 || !S_ISDIR(info.st_mode)) {
    path = sn__strdup(given);
  } else {
    for (int i = 0; i < 2; i++) {
      path = sn__format("%s/%s", given, files[i]);
      if (path != NULL && stat(path, &info) == 0) break;
      sn__free(path);
      path = NULL;
    }
    if (path == NULL)
      return sn_status_make(SN_CODE_NOT_FOUND,
                            "%s holds no best.h5 or last.h5; give a checkpoint, or the folder that "
                            "train wrote",
                            given);
  }
  if (path == NULL) return sn_status_out_of_memory();
  sn_status status = sn_checkpoint_open(path, out_checkpoint);
  if (status != SN_OK)
    sn__free(path);
  else
    *out_path = path;
  return status;
}

/* ---- averaged weights ------------------------------------------------------------------------ */

struct average {
  size_t count;
  struct kept {
    char *name;
    void *data;
    size_t bytes;
  } items[];
};

static bool is_average(const sn_stored *v) {
  return v->owner != NULL && v->role != NULL && strcmp(v->role, "ema") == 0;
}

static void average_free(average *a) {
  for (size_t i = 0; i < a->count; i++) {
    sn__free(a->items[i].name);
    sn__free(a->items[i].data);
  }
  sn__free(a);
}

static sn_status swap_in(sn_store *store, const sn_stored *slot, struct kept *kept) {
  *kept = (struct kept){sn__strdup(slot->owner), sn__alloc(slot->bytes + 1), slot->bytes};
  void *data = sn__alloc(slot->bytes + 1);
  sn_status status = SN_OK;
  if (kept->name == NULL || kept->data == NULL || data == NULL) status = sn_status_out_of_memory();
  if (status == SN_OK) status = sn_store_read(store, kept->name, kept->data, kept->bytes);
  if (status == SN_OK) status = sn_store_read(store, slot->name, data, slot->bytes);
  if (status == SN_OK) status = sn_store_write(store, kept->name, data, slot->bytes);
  sn__free(data);
  return status;
}

sn_status average_begin(sn_store *store, average **out_average) {
  size_t n = 0, all = sn_store_count(store);
  *out_average = NULL;
  for (size_t i = 0; i < all; i++)
    n += is_average(sn_store_at(store, i));
  if (n == 0) return SN_OK;
  average *a = sn__calloc(1, sizeof *a + n * sizeof a->items[0]);
  if (a == NULL) return sn_status_out_of_memory();
  sn_status status = SN_OK;
  for (size_t i = 0; i < all && status == SN_OK; i++) {
    const sn_stored *v = sn_store_at(store, i);
    if (is_average(v)) status = swap_in(store, v, &a->items[a->count++]);
  }
  if (status != SN_OK) {
    average_free(a);
    return status;
  }
  *out_average = a;
  return SN_OK;
}

sn_status average_end(average *a, sn_store *store) {
  if (a == NULL) return SN_OK;
  sn_status status = SN_OK;
  for (size_t i = 0; i < a->count; i++)
    status = sn_status_join(
        status, sn_store_write(store, a->items[i].name, a->items[i].data, a->items[i].bytes));
  average_free(a);
  return status;
}
