/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/inspect_checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cJSON.h>

#include "core/alloc.h"
#include "tools/sennit/json.h"
#include "tools/sennit/save.h"
#include "tools/sennit/ui.h"

/* A checkpoint opened for looking. */
typedef struct view {
  char *path;
  sn_checkpoint *file;
  sn_graph *graph;
  sn_preparation *preparation;
  run_state state;
  bool has_state;
  cJSON *metrics; /* of the epoch it was saved after; NULL: none */
} view;

static void view_close(view *v) {
  cJSON_Delete(v->metrics);
  if (v->has_state) run_state_free(&v->state);
  sn_preparation_free(v->preparation);
  sn_graph_free(v->graph);
  sn_checkpoint_free(v->file);
  sn__free(v->path);
}

static cJSON *read_metrics(const sn_checkpoint *file) {
  const sn_named_text *text = sn_checkpoint_text(file, "state");
  cJSON *root = text == NULL ? NULL : cJSON_ParseWithLength(text->text, text->length);
  cJSON *metrics = root == NULL ? NULL : cJSON_DetachItemFromObjectCaseSensitive(root, "metrics");
  cJSON_Delete(root);
  return metrics;
}

static sn_status view_open(const char *given, view *v) {
  SN_TRY(save_open(given, &v->path, &v->file));
  SN_TRY(save_read_model(v->file, v->path, &v->graph, &v->preparation));
  if (sn_checkpoint_text(v->file, "state") == NULL) return SN_OK;
  SN_TRY(sn_status_context(save_read_state(v->file, &v->state), "%s", v->path));
  v->has_state = true;
  v->metrics = read_metrics(v->file);
  return SN_OK;
}

static int64_t count_of(const sn_named_tensor *t) {
  int64_t count = 1;
  for (int32_t i = 0; i < t->shape.rank; i++)
    count *= t->shape.dims[i];
  return count;
}

static bool is_variable(const sn_named_tensor *t) {
  return strncmp(t->name, "variables/", strlen("variables/")) == 0;
}

static int64_t parameters(const view *v) {
  int64_t sum = 0;
  for (size_t i = 0; i < sn_checkpoint_tensor_count(v->file); i++)
    if (is_variable(sn_checkpoint_tensor(v->file, i)))
      sum += count_of(sn_checkpoint_tensor(v->file, i));
  return sum;
}

/* The first part of "variables/strokes/lstm/weight": its length; the name behind "variables/". */
static int module_of(const sn_named_tensor *t, const char **out_name) {
  const char *name = t->name + strlen("variables/"), *slash = strchr(name, '/');
  *out_name = name;
  return slash == NULL ? 0 : (int)(slash - name);
}

/* Parameters by the outermost module, in the order in which the graph made them. */
static void each_module(const view *v, void (*take)(void *user, const char *name, int64_t count),
                        void *user) {
  size_t n = sn_checkpoint_tensor_count(v->file);
  char module[256] = "";
  int64_t sum = 0;
  for (size_t i = 0; i < n; i++) {
    const sn_named_tensor *t = sn_checkpoint_tensor(v->file, i);
    if (!is_variable(t)) continue;
    const char *name;
    int length = module_of(t, &name);
    bool same = strncmp(module, name, (size_t)length) == 0 && module[length] == '\0';
    if (!same && sum > 0) take(user, module, sum);
    if (!same) sum = 0;
    snprintf(module, sizeof module, "%.*s", length, name);
    sum += count_of(t);
  }
  if (sum > 0) take(user, module, sum);
}

/* ---- for a person -------------------------------------------------------------------------- */

static void show_module(void *user, const char *name, int64_t count) {
  ui_line(user, "  %-24s %12lld parameters", *name != '\0' ? name : "-", (long long)count);
}

static void show_value(ui_state *ui, const view *v, const char *name, sn_value value) {
  char shape[160];
  sn_shape s = sn_value_shape(value);
  ui_line(ui, "  %-24s %-5s %s", name, sn_dtype_name(sn_value_dtype(value)),
          sn_shape_text(v->graph, &s, shape, sizeof shape));
}

static void show_fields(ui_state *ui, const view *v) {
  ui_line(ui, "%s", "read from");
  for (size_t i = 0; i < sn_preparation_field_count(v->preparation); i++) {
    const sn_field *f = sn_preparation_field(v->preparation, i);
    const sn_field_facts *facts = sn_preparation_facts(v->preparation, i);
    char words[320];
    int used = snprintf(words, sizeof words, "  %-24s %s", f->name, f->path);
    if (used > 0 && (size_t)used < sizeof words && facts->classes > 0) {
      const char *first = sn_preparation_class_name(v->preparation, i, 0);
      const char *last = sn_preparation_class_name(v->preparation, i, facts->classes - 1);
      snprintf(words + used, sizeof words - (size_t)used, ", %lld %s (%.40s to %.40s)",
               (long long)facts->classes, f->role == SN_FIELD_INPUT ? "entries" : "classes",
               first != NULL ? first : "0", last != NULL ? last : "?");
    } else if (used > 0 && (size_t)used < sizeof words &&
               sn_preparation_mean(v->preparation, i) != NULL) {
      snprintf(words + used, sizeof words - (size_t)used, ", normalised");
    }
    ui_line(ui, "%s", words);
  }
}

static void show_metrics(ui_state *ui, const cJSON *metrics, const char *prefix) {
  const cJSON *item;
  cJSON_ArrayForEach(item, metrics) {
    char name[200];
    snprintf(name, sizeof name, "%s%s%s", prefix, *prefix != '\0' ? "." : "",
             item->string != NULL ? item->string : "");
    if (cJSON_IsNumber(item)) ui_line(ui, "  %-32s %.6g", name, item->valuedouble);
    if (cJSON_IsObject(item)) show_metrics(ui, item, name);
  }
}

static void show_state(ui_state *ui, const view *v) {
  const run_state *s = &v->state;
  ui_line(ui, "trained for %lld steps: epoch %lld of %lld%s", (long long)s->step,
          (long long)s->epoch, (long long)s->horizon,
          s->batch > 0 ? " and a part of the next" : "");
  if (s->best_epoch > 0)
    ui_line(ui, "best so far: %.6g in epoch %lld", s->best, (long long)s->best_epoch);
  if (v->metrics != NULL) show_metrics(ui, v->metrics, "");
}

/* Variables one by one; what the optimizer keeps, as a sum. */
static void show_tensors(ui_state *ui, const view *v) {
  size_t slots = 0;
  double bytes = 0;
  ui_line(ui, "%s", "variables");
  for (size_t i = 0; i < sn_checkpoint_tensor_count(v->file); i++) {
    const sn_named_tensor *t = sn_checkpoint_tensor(v->file, i);
    char shape[160];
    if (!is_variable(t)) {
      slots++;
      bytes += (double)count_of(t) * (double)sn_dtype_size(t->dtype);
      continue;
    }
    ui_line(ui, "  %-40s %-5s %s", t->name + strlen("variables/"), sn_dtype_name(t->dtype),
            sn_shape_text(NULL, &t->shape, shape, sizeof shape));
  }
  char words[UI_WORDS];
  ui_line(ui, "optimizer: %zu tensors, %s", slots, ui_bytes(bytes, words));
}

/* Offsets are fed with the input they belong to. */
static bool is_offsets(const view *v, const char *name) {
  const char *dot = strrchr(name, '.');
  char of[256];
  if (dot == NULL || strcmp(dot, ".offsets") != 0) return false;
  snprintf(of, sizeof of, "%.*s", (int)(dot - name), name);
  return sn_value_ok(sn_graph_find_input(v->graph, of));
}

static void show(const view *v) {
  ui_state ui;
  ui_init(&ui, false);
  ui_line(&ui, "%s: checkpoint of sennit, its checksum holds", v->path);
  ui_line(&ui, "%s", "inputs");
  for (size_t i = 0; i < sn_graph_input_count(v->graph); i++) {
    sn_value value = sn_graph_input(v->graph, i);
    if (sn_value_shape(value).rank > 0 && !is_offsets(v, sn_value_name(value)))
      show_value(&ui, v, sn_value_name(value), value);
  }
  ui_line(&ui, "%s", "outputs");
  for (size_t i = 0; i < sn_graph_output_count(v->graph); i++) {
    const char *name;
    sn_value value = sn_graph_output(v->graph, i, &name);
    show_value(&ui, v, name, value);
  }
  show_fields(&ui, v);
  ui_line(&ui, "modules, %lld parameters", (long long)parameters(v));
  each_module(v, show_module, &ui);
  show_tensors(&ui, v);
  if (v->has_state) show_state(&ui, v);
}

/* ---- as JSON ------------------------------------------------------------------------------- */

static void put_value(json_report *r, cJSON *list, const view *v, const char *name,
                      sn_value value) {
  char shape[160];
  sn_shape s = sn_value_shape(value);
  cJSON *o = json_object(r, list, NULL);
  json_text(r, o, "name", name);
  json_text(r, o, "dtype", sn_dtype_name(sn_value_dtype(value)));
  json_text(r, o, "shape", sn_shape_text(v->graph, &s, shape, sizeof shape));
}

typedef struct module_list {
  json_report *report;
  cJSON *list;
} module_list;

static void put_module(void *user, const char *name, int64_t count) {
  module_list *m = user;
  cJSON *o = json_object(m->report, m->list, NULL);
  json_text(m->report, o, "name", name);
  json_int(m->report, o, "params", count);
}

static void put_model(json_report *r, const view *v) {
  cJSON *inputs = json_list(r, r->root, "inputs");
  for (size_t i = 0; i < sn_graph_input_count(v->graph); i++) {
    sn_value value = sn_graph_input(v->graph, i);
    if (sn_value_shape(value).rank > 0) put_value(r, inputs, v, sn_value_name(value), value);
  }
  cJSON *outputs = json_list(r, r->root, "outputs");
  for (size_t i = 0; i < sn_graph_output_count(v->graph); i++) {
    const char *name;
    sn_value value = sn_graph_output(v->graph, i, &name);
    put_value(r, outputs, v, name, value);
  }
  module_list modules = {r, json_list(r, r->root, "modules")};
  each_module(v, put_module, &modules);
  json_int(r, r->root, "params", parameters(v));
}

static void put_fields(json_report *r, const view *v) {
  cJSON *list = json_list(r, r->root, "fields");
  for (size_t i = 0; i < sn_preparation_field_count(v->preparation); i++) {
    const sn_field *f = sn_preparation_field(v->preparation, i);
    const sn_field_facts *facts = sn_preparation_facts(v->preparation, i);
    cJSON *o = json_object(r, list, NULL);
    json_text(r, o, "name", f->name);
    json_text(r, o, "path", f->path);
    json_int(r, o, "classes", facts->classes);
    json_bool(r, o, "normalised", sn_preparation_mean(v->preparation, i) != NULL);
  }
}

static void put_tensors(json_report *r, const view *v) {
  cJSON *list = json_list(r, r->root, "tensors");
  for (size_t i = 0; i < sn_checkpoint_tensor_count(v->file); i++) {
    const sn_named_tensor *t = sn_checkpoint_tensor(v->file, i);
    cJSON *o = json_object(r, list, NULL);
    json_text(r, o, "name", t->name);
    json_text(r, o, "dtype", sn_dtype_name(t->dtype));
    cJSON *shape = json_list(r, o, "shape");
    for (int32_t d = 0; d < t->shape.rank; d++)
      json_int(r, shape, NULL, t->shape.dims[d]);
  }
}

static sn_status print_json(const view *v) {
  json_report r;
  SN_TRY(json_create(&r));
  json_text(&r, r.root, "file", v->path);
  json_text(&r, r.root, "kind", "checkpoint");
  put_model(&r, v);
  put_fields(&r, v);
  put_tensors(&r, v);
  if (v->has_state) {
    json_int(&r, r.root, "steps", v->state.step);
    json_int(&r, r.root, "epochs", v->state.epoch);
    json_int(&r, r.root, "horizon", v->state.horizon);
    json_int(&r, r.root, "best_epoch", v->state.best_epoch);
    json_number(&r, r.root, "best", v->state.best);
  }
  cJSON *metrics = v->metrics == NULL ? NULL : cJSON_Duplicate(v->metrics, 1);
  if (v->metrics != NULL && (metrics == NULL || !cJSON_AddItemToObject(r.root, "metrics", metrics)))
    r.failed = true;
  sn_status status = json_print(&r, stdout);
  json_free(&r);
  return status;
}

sn_status inspect_checkpoint(const char *path, bool json) {
  view v = {.path = NULL};
  sn_status status = view_open(path, &v);
  if (status == SN_OK && json) status = print_json(&v);
  if (status == SN_OK && !json) show(&v);
  view_close(&v);
  return status;
}
