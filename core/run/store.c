/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "core/init.h"
#include "core/run/run_impl.h"

static sn_status add(sn_store *s, const sn_graph *g, size_t i) {
  const sn__variable *v = &g->variables[i];
  const sn__value *value = &g->values[v->value];
  if (!sn__grow((void **)&s->items, &s->capacity, s->count + 1, sizeof *s->items))
    return sn_status_out_of_memory();
  sn__stored item = {.public = {.dtype = value->dtype, .shape = value->shape, .frozen = v->frozen}};
  item.public.name = sn__arena_strdup(&s->names, v->name);
  if (v->owner != 0)
    item.public.owner = sn__arena_strdup(&s->names, g->variables[v->owner - 1].name);
  if (v->role != NULL) item.public.role = sn__arena_strdup(&s->names, v->role);
  if (item.public.name == NULL || (v->owner != 0 && item.public.owner == NULL) ||
      (v->role != NULL && item.public.role == NULL))
    return sn_status_out_of_memory();
  int64_t count = sn__shape_size(&value->shape);
  if (!sn__size_mul((size_t)count, sn_dtype_size(value->dtype), &item.public.bytes) ||
      (item.host = sn__alloc_aligned(item.public.bytes + 1, SN__BUFFER_ALIGNMENT)) == NULL)
    return sn_status_out_of_memory();
  sn_status status = sn__init_variable(g, i, s->seed, item.host);
  if (status != SN_OK) {
    sn__free(item.host);
    return sn_status_context(status, "variable '%s'", v->name);
  }
  s->items[s->count++] = item;
  return SN_OK;
}

sn_status sn_store_extend(sn_store *s, const sn_graph *g) {
  SN_TRY(sn_graph_status(g));
  for (size_t i = 0; i < g->n_variables; i++) {
    const sn__value *value = &g->values[g->variables[i].value];
    int64_t at = sn__store_index(s, g->variables[i].name);
    if (at < 0) {
      SN_TRY(add(s, g, i));
      continue;
    }
    const sn_stored *have = &s->items[at].public;
    if (have->dtype != value->dtype || !sn_shape_equal(&have->shape, &value->shape))
      return sn_status_make(SN_CODE_INVALID,
                            "variable '%s' has another shape or type in this graph than in the "
                            "store",
                            have->name);
  }
  return SN_OK;
}

sn_status sn_store_create(const sn_graph *graph, uint64_t seed, sn_store **out_store) {
  sn_store *s = sn__calloc(1, sizeof *s);
  if (s == NULL) return sn_status_out_of_memory();
  s->seed = seed;
  sn_status status = sn_store_extend(s, graph);
  if (status != SN_OK) {
    sn_store_free(s);
    return status;
  }
  *out_store = s;
  return SN_OK;
}

void sn_store_free(sn_store *s) {
  if (s == NULL) return;
  for (size_t i = 0; i < s->count; i++) {
    sn__free(s->items[i].host);
    sn__buffer_free(s->items[i].buffer);
  }
  sn__free(s->items);
  sn__arena_free(&s->names);
  sn__free(s);
}

sn_status sn__store_bind(sn_store *s, size_t i, sn_machine *machine, int32_t device) {
  sn__stored *item = &s->items[i];
  sn__device *home = machine->devices[device];
  if (item->buffer != NULL) {
    if (item->buffer->device == home) return SN_OK;
    return sn_status_make(SN_CODE_INVALID,
                          "variable '%s' lives on %s, and this plan wants it on %s: place all "
                          "plans of a store alike",
                          item->public.name, item->public.device, sn__device_desc(home)->name);
  }
  sn__buffer *buffer = NULL;
  sn_status status = sn__device_alloc(home, item->public.bytes, &buffer);
  sn__transfer up = {
      .to = {.buffer = buffer}, .from = {.host = item->host}, .bytes = item->public.bytes};
  if (status == SN_OK) status = sn__transfer_now(&up);
  if (status != SN_OK) {
    sn__buffer_free(buffer);
    return sn_status_context(status, "variable '%s'", item->public.name);
  }
  sn__free(item->host);
  item->host = NULL;
  item->buffer = buffer;
  item->public.device = sn__device_desc(home)->name;
  return SN_OK;
}

/* ---- looking ------------------------------------------------------------------------------- */

int64_t sn__store_index(const sn_store *s, const char *name) {
  for (size_t i = 0; i < s->count; i++)
    if (strcmp(s->items[i].public.name, name) == 0) return (int64_t)i;
  return -1;
}

size_t sn_store_count(const sn_store *s) {
  return s->count;
}

const sn_stored *sn_store_at(const sn_store *s, size_t i) {
  return i < s->count ? &s->items[i].public : NULL;
}

const sn_stored *sn_store_find(const sn_store *s, const char *name) {
  int64_t i = sn__store_index(s, name);
  return i < 0 ? NULL : &s->items[i].public;
}

static sn_status find(const sn_store *s, const char *name, size_t bytes, const sn__stored **out) {
  int64_t i = sn__store_index(s, name);
  if (i < 0) return sn_status_make(SN_CODE_NOT_FOUND, "the store has no variable '%s'", name);
  *out = &s->items[i];
  if (bytes != (*out)->public.bytes)
    return sn_status_make(SN_CODE_INVALID, "variable '%s' has %zu bytes, not %zu", name,
                          (*out)->public.bytes, bytes);
  return SN_OK;
}

sn_status sn_store_read(const sn_store *s, const char *name, void *out_data, size_t bytes) {
  const sn__stored *item = NULL;
  SN_TRY(find(s, name, bytes, &item));
  if (item->buffer == NULL) {
    memcpy(out_data, item->host, bytes);
    return SN_OK;
  }
  sn__transfer down = {.to = {.host = out_data}, .from = {.buffer = item->buffer}, .bytes = bytes};
  return sn__transfer_now(&down);
}

sn_status sn_store_write(sn_store *s, const char *name, const void *data, size_t bytes) {
  const sn__stored *item = NULL;
  SN_TRY(find(s, name, bytes, &item));
  if (item->buffer == NULL) {
    memcpy(item->host, data, bytes);
    return SN_OK;
  }
  /* A place's host side is only read when it is the source. */
  sn__transfer up = {
      .to = {.buffer = item->buffer}, .from = {.host = (void *)(uintptr_t)data}, .bytes = bytes};
  return sn__transfer_now(&up);
}

int64_t sn_store_step(const sn_store *s) {
  return s->step;
}

void sn_store_set_step(sn_store *s, int64_t step) {
  s->step = step;
}

uint64_t sn_store_seed(const sn_store *s) {
  return s->seed;
}
