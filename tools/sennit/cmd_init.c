/* SPDX-License-Identifier: Apache-2.0 */
/* sennit init: a first model file, to be read and changed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <cJSON.h>

#include "core/alloc.h"
#include "io/checkpoint.h"
#include "io/inspect.h"
#include "models/config.h"
#include "tools/sennit/commands.h"
#include "tools/sennit/guess.h"
#include "tools/sennit/ui.h"

/* What is written must be accepted as it stands. */
static sn_status check(const char *text) {
  sn_model_config *config = NULL;
  SN_TRY(sn_model_config_read(text, strlen(text), "the guess", &config));
  sn_status status = sn_model_config_check(config, 0);
  sn_model_config_free(config);
  return status;
}

static sn_status write_file(const char *path, const char *text) {
  FILE *f = fopen(path, "wx");
  if (f == NULL && errno == EEXIST)
    return sn_status_make(SN_CODE_CONFIG, "%s is already there; name another file with -o", path);
  if (f == NULL) return sn_status_make(SN_CODE_IO, "%s: cannot write: %s", path, strerror(errno));
  bool wrote = fputs(text, f) >= 0;
  wrote = fclose(f) == 0 && wrote;
  return wrote ? SN_OK : sn_status_make(SN_CODE_IO, "%s: cannot write: %s", path, strerror(errno));
}

static sn_status guess_from(const char *data, const char *json, char **out_text) {
  cJSON *root = cJSON_Parse(json);
  if (root == NULL) return sn_status_out_of_memory();
  guess g;
  sn_status status = guess_make(data, root, &g);
  if (status == SN_OK) status = guess_write(&g, out_text);
  guess_free(&g);
  cJSON_Delete(root);
  return status;
}

sn_status cmd_init(const arg_set *args) {
  const char *data = args_text(args, "FILE"), *out = args_text(args, "--output");
  if (out == NULL) out = "model.yaml";
  if (sn_checkpoint_probe(data))
    return sn_status_make(SN_CODE_CONFIG, "%s is a checkpoint; give the data", data);
  char *json = NULL, *text = NULL;
  sn_status status = sn_inspect_file(data, true, &json);
  if (status == SN_OK) status = guess_from(data, json, &text);
  if (status == SN_OK) status = check(text);
  if (status == SN_OK && strcmp(out, "-") == 0) {
    fputs(text, stdout);
  } else if (status == SN_OK) {
    status = write_file(out, text);
    ui_state ui;
    ui_init(&ui, false);
    if (status == SN_OK)
      ui_line(&ui, "%s is written; read it, then: sennit train --data %s --config %s --out run",
              out, data, out);
  }
  sn__free(text);
  sn__free(json);
  return status;
}
