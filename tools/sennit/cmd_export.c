/* SPDX-License-Identifier: Apache-2.0 */
/* sennit export: a checkpoint's weights for other programs. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/sha256.h"
#include "core/version.h"
#include "placement/trainer.h"
#include "tools/sennit/commands.h"
#include "tools/sennit/save.h"
#include "tools/sennit/ui.h"

/* The model's variables as predictions are made with them. `names` are borrowed from the store. */
static sn_status read_weights(const sn_store *store, sn_named_tensor *tensors, size_t *out_count) {
  *out_count = 0;
  for (size_t i = 0; i < sn_store_count(store); i++) {
    const sn_stored *v = sn_store_at(store, i);
    if (v->owner != NULL) continue;
    void *data = sn__alloc(v->bytes + 1);
    if (data == NULL) return sn_status_out_of_memory();
    tensors[(*out_count)++] = (sn_named_tensor){v->name, v->dtype, v->shape, data};
    SN_TRY(sn_store_read(store, v->name, data, v->bytes));
  }
  return SN_OK;
}

static sn_status write_safetensors(const char *path, const sn_store *store, size_t *out_count) {
  char sha256[65];
  SN_TRY(sn_store_sha256(store, sha256));
  sn_named_tensor *tensors = sn__calloc(sn_store_count(store) + 1, sizeof *tensors);
  if (tensors == NULL) return sn_status_out_of_memory();
  const sn_named_text metadata[] = {{"sennit", SN_VERSION, strlen(SN_VERSION)},
                                    {"params_sha256", sha256, strlen(sha256)}};
  sn_status status = read_weights(store, tensors, out_count);
  if (status == SN_OK) status = sn_safetensors_write(path, tensors, *out_count, metadata, 2);
  for (size_t i = 0; i < *out_count; i++)
    sn__free((void *)(uintptr_t)tensors[i].data);
  sn__free(tensors);
  return status;
}

static sn_status export_to(const arg_set *args, const sn_checkpoint *checkpoint,
                           const char *checkpoint_path, ui_state *ui) {
  sn_graph *graph = NULL;
  sn_preparation *preparation = NULL;
  sn_store *store = NULL;
  const char *out = args_text(args, "--out");
  size_t count = 0;
  SN_TRY(save_read_model(checkpoint, checkpoint_path, &graph, &preparation));
  sn_status status = sn_store_create(graph, 0, &store);
  if (status == SN_OK) status = save_read_weights(checkpoint, checkpoint_path, store);
  if (status == SN_OK) status = write_safetensors(out, store, &count);
  if (status == SN_OK) ui_line(ui, "%s: %zu tensors from %s", out, count, checkpoint_path);
  sn_store_free(store);
  sn_preparation_free(preparation);
  sn_graph_free(graph);
  return status;
}

sn_status cmd_export(const arg_set *args) {
  ui_state ui;
  ui_init(&ui, false);
  sn_checkpoint *checkpoint = NULL;
  char *path = NULL;
  SN_TRY(save_open(args_text(args, "--checkpoint"), &path, &checkpoint));
  sn_status status = export_to(args, checkpoint, path, &ui);
  sn_checkpoint_free(checkpoint);
  sn__free(path);
  return status;
}
