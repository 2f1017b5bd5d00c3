/* SPDX-License-Identifier: Apache-2.0 */
/* sennit predict: what a checkpoint says of rows, labels or not. */
#include "tools/sennit/commands.h"
#include "tools/sennit/loaded.h"
#include "tools/sennit/pred_file.h"
#include "tools/sennit/stop.h"

static sn_status take(void *user, const bind_set *bind, const sn_batch *batch,
                      const float *const *predictions) {
  return pred_file_add(user, bind, batch, predictions);
}

static sn_status predict(const arg_set *args, loaded *l, ui_state *ui) {
  pred_file *file = NULL;
  evaluation e = {.outputs = NULL};
  const char *path = args_text(args, "--out");
  SN_TRY(pred_file_create(path, l->preparation, &file));
  evaluate_options options = loaded_pass(l, ui, "predict");
  options.no_labels = true;
  options.take = take;
  options.user = file;
  sn_status status = evaluate_run(&options, &e);
  if (status == SN_OK) status = pred_file_finish(file);
  if (status == SN_OK)
    ui_line(ui, "%lld rows predicted by %s: %s", (long long)e.rows, l->path, path);
  pred_file_free(file);
  evaluation_free(&e);
  return status;
}

sn_status cmd_predict(const arg_set *args) {
  ui_state ui;
  loaded l;
  ui_init(&ui, false);
  sn_status status = loaded_open(args, false, &ui, &l);
  if (status == SN_OK) status = predict(args, &l, &ui);
  if (sn_status_code(status) == SN_CODE_INTERRUPTED && stop_signal() != 0) {
    sn_status_free(status);
    status = SN_OK;
    stop_obeyed();
  }
  loaded_free(&l);
  return status;
}
