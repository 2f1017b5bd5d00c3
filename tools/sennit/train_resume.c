/* SPDX-License-Identifier: Apache-2.0 */
/* Going on from last.h5: the same bits as if the run had never ended, or a line that says why not.
 */
#include <string.h>

#include "core/alloc.h"
#include "tools/sennit/train.h"

/* The value of "  key: value" in the train section of a canonical config, or NULL. */
static const char *value_of(const char *text, const char *key, size_t *out_length) {
  const char *line = strstr(text, "train:\n");
  size_t length = strlen(key);
  while (line != NULL && (line = strchr(line, '\n')) != NULL && *++line == ' ') {
    if (strncmp(line + 2, key, length) != 0 || line[2 + length] != ':') continue;
    const char *value = line + 2 + length + 2;
    *out_length = strcspn(value, "\n");
    return value;
  }
  return NULL;
}

/* Keys of `train:` that are not what they were; the horizon is announced by itself. */
static void compare(train_run *run, const char *now, const char *was) {
  const char *line = strstr(now, "train:\n");
  while (line != NULL && (line = strchr(line, '\n')) != NULL && *++line == ' ') {
    char key[40] = "";
    size_t length = strcspn(line + 2, ":"), n = 0, m = 0;
    if (length >= sizeof key) continue;
    memcpy(key, line + 2, length);
    const char *value = value_of(now, key, &n), *old = value_of(was, key, &m);
    if (value == NULL || old == NULL || strcmp(key, "epochs") == 0) continue;
    if (n == m && memcmp(value, old, n) == 0) continue;
    ui_line(&run->ui, "train.%s is %.*s and was %.*s", key, (int)n, value, (int)m, old);
  }
}

static sn_status announce_changes(train_run *run, const sn_checkpoint *last) {
  const sn_named_text *text = sn_checkpoint_text(last, "config");
  char *now = NULL, *was = text != NULL ? sn__strndup(text->text, text->length) : NULL;
  if (text == NULL) return SN_OK;
  if (was == NULL) return sn_status_out_of_memory();
  sn_status status = sn_model_config_write(run->task.config, SN_CONFIG_ALL, &now);
  if (status == SN_OK) compare(run, now, was);
  sn_text_free(now);
  sn__free(was);
  return status;
}

static sn_status other_seed(const train_run *run) {
  return sn_status_make(SN_CODE_CONFIG,
                        "seed %lld is not the run's, which is %lld; a run keeps its seed",
                        (long long)run->task.config->train.seed, (long long)run->state.seed);
}

sn_status resume_read(train_run *run, sn_checkpoint *last, sn_preparation **out_preparation) {
  SN_TRY(sn_status_context(save_read_state(last, &run->state), "%s", run->dir.last));
  const sn_model_train *train = &run->task.config->train;
  if (train->seed != run->state.seed) return other_seed(run);
  if (train->epochs != run->state.horizon)
    ui_line(&run->ui,
            "the horizon changes from %lld to %lld epochs, and the schedule with it: not the run "
            "that %lld epochs would have been from the start",
            (long long)run->state.horizon, (long long)train->epochs, (long long)train->epochs);
  run->state.horizon = train->epochs;
  SN_TRY(announce_changes(run, last));
  const sn_named_text *text = sn_checkpoint_text(last, "preparation");
  if (text == NULL)
    return sn_status_make(SN_CODE_CORRUPT, "%s holds no preparation; it is not from sennit train",
                          run->dir.last);
  return sn_status_context(sn_preparation_from_json(text->text, text->length, out_preparation),
                           "%s", run->dir.last);
}

static void start_of_epoch(train_run *run) {
  run->state.batch = 0;
  for (size_t l = 0; l < run->state.n_losses; l++)
    run->state.sums[l] = run->state.totals[l] = 0;
}

sn_status train_note_data(train_run *run) {
  run_state *state = &run->state;
  char data[65] = "", valid[65] = "";
  SN_TRY(sn_dataset_fingerprint(run->task.data, data));
  if (run->task.valid != NULL) SN_TRY(sn_dataset_fingerprint(run->task.valid, valid));
  bool known = state->data[0] != '\0';
  if (known && strcmp(state->data, data) != 0) {
    ui_line(
        &run->ui,
        "the training data is not what the run was trained on so far: going on with the new "
        "data at the start of epoch %lld, normalised as the old; if that is not meant, stop and "
        "give --data as it was",
        (long long)state->epoch + 1);
    start_of_epoch(run);
  }
  if (known && strcmp(state->valid, valid) != 0 && state->best_epoch > 0)
    ui_line(
        &run->ui,
        "the rows of --valid are not what the run had: its best epoch so far, %lld, was measured "
        "on those",
        (long long)state->best_epoch);
  memcpy(state->data, data, sizeof data);
  memcpy(state->valid, valid, sizeof valid);
  return SN_OK;
}

/* What products compute in may change on the way, and has been announced; nothing else may. */
static sn_status same_model(const train_run *run, const sn_named_text *graph, bool *out_same) {
  *out_same = graph->length == strlen(run->texts.graph) &&
              memcmp(graph->text, run->texts.graph, graph->length) == 0;
  if (*out_same) return SN_OK;
  sn_graph *old = NULL;
  char *text = NULL;
  sn_status status = sn_graph_from_json(graph->text, graph->length, &old);
  if (status == SN_OK) {
    sn_graph_set_precision(old, sn_graph_precision(run->task.graph));
    status = sn_graph_to_json(old, &text);
  }
  if (status == SN_OK) *out_same = strcmp(text, run->texts.graph) == 0;
  sn_text_free(text);
  sn_graph_free(old);
  return status;
}

sn_status resume_take(train_run *run, sn_checkpoint *last) {
  const sn_named_text *graph = sn_checkpoint_text(last, "graph");
  sn_store *store = sn_trainer_store(run->trainer);
  SN_TRY(save_read_store(last, run->dir.last, store));
  bool same = false;
  if (graph != NULL) SN_TRY(same_model(run, graph, &same));
  if (!same)
    return sn_status_make(SN_CODE_CONFIG,
                          "the model is not the one of %s; give the model file it was made with, "
                          "or another --out",
                          run->dir.last);
  if (run->state.n_losses != sn_graph_loss_count(run->task.graph))
    return sn_status_make(SN_CODE_CORRUPT, "%s: its state is of another model", run->dir.last);
  if (run->state.batches != run->task.batches) {
    ui_line(&run->ui, "an epoch has %lld batches and had %lld: going on at the start of epoch %lld",
            (long long)run->task.batches, (long long)run->state.batches,
            (long long)run->state.epoch + 1);
    run->state.batches = run->task.batches;
    start_of_epoch(run);
  }
  SN_TRY(train_note_data(run));
  sn_store_set_step(store, run->state.step);
  run->loss = run->state.loss;
  run->saved_step = run->state.batch < run->task.batches ? run->state.step : -1;
  ui_line(&run->ui, "resuming after step %lld, epoch %lld, batch %lld", (long long)run->state.step,
          (long long)run->state.epoch, (long long)run->state.batch);
  return run_dir_rewind(&run->dir, run->state.epoch);
}
