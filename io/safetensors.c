/* SPDX-License-Identifier: Apache-2.0 */
/* The safetensors format, written and read strictly: names, types and offsets are all checked. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "io/checkpoint_impl.h"
#include "io/safe_file.h"

static const size_t most_header = 100000000;
static const size_t most_file = (size_t)1 << 38;

/* X(dtype in the file, bytes, what it becomes) */
static const struct {
  const char *name;
  size_t bytes;
  sn_dtype dtype;
} kinds[] = {{"F32", 4, SN_F32}, {"F64", 8, SN_F64}, {"BF16", 2, SN_BF16}, {"I32", 4, SN_I32},
             {"I64", 8, SN_I64}, {"U8", 1, SN_U8},   {"BOOL", 1, SN_BOOL}, {"F16", 2, SN_F32}};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

/* ---- writing ------------------------------------------------------------------------------- */

static const char *kind_name(sn_dtype dtype) {
  for (int i = 0; i < N_KINDS - 1; i++)
    if (kinds[i].dtype == dtype) return kinds[i].name;
  return NULL;
}

static bool add_tensor_header(cJSON *root, const sn_named_tensor *t, double *offset, size_t bytes) {
  char *name = sn__strdup(t->name);
  for (char *c = name; c != NULL && *c != '\0'; c++)
    if (*c == '/') *c = '.';
  cJSON *entry = name == NULL ? NULL : cJSON_AddObjectToObject(root, name);
  sn__free(name);
  if (entry == NULL || cJSON_AddStringToObject(entry, "dtype", kind_name(t->dtype)) == NULL)
    return false;
  cJSON *shape = cJSON_AddArrayToObject(entry, "shape");
  for (int i = 0; shape != NULL && i < t->shape.rank; i++)
    if (!cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)t->shape.dims[i]))) return false;
  cJSON *offsets = cJSON_AddArrayToObject(entry, "data_offsets");
  if (shape == NULL || offsets == NULL ||
      !cJSON_AddItemToArray(offsets, cJSON_CreateNumber(*offset)) ||
      !cJSON_AddItemToArray(offsets, cJSON_CreateNumber(*offset + (double)bytes)))
    return false;
  *offset += (double)bytes;
  return true;
}

static char *make_header(const sn_named_tensor *tensors, size_t n, const sn_named_text *metadata,
                         size_t n_metadata, sn__bytes *parts) {
  cJSON *root = cJSON_CreateObject();
  bool ok = root != NULL;
  double offset = 0;
  if (ok && n_metadata > 0) {
    cJSON *m = cJSON_AddObjectToObject(root, "__metadata__");
    ok = m != NULL;
    for (size_t i = 0; ok && i < n_metadata; i++)
      ok = cJSON_AddStringToObject(m, metadata[i].name, metadata[i].text) != NULL;
  }
  for (size_t i = 0; ok && i < n; i++) {
    parts[i].data = tensors[i].data;
    parts[i].size = (size_t)sn__shape_size(&tensors[i].shape) * sn_dtype_size(tensors[i].dtype);
    ok = add_tensor_header(root, &tensors[i], &offset, parts[i].size);
  }
  char *text = ok ? cJSON_PrintUnformatted(root) : NULL;
  cJSON_Delete(root);
  return text;
}

sn_status sn_safetensors_write(const char *path, const sn_named_tensor *tensors, size_t n,
                               const sn_named_text *metadata, size_t n_metadata) {
  for (size_t i = 0; i < n; i++)
    if (kind_name(tensors[i].dtype) == NULL || !sn_shape_is_fixed(&tensors[i].shape))
      return sn_status_make(SN_CODE_INVALID, "%s: tensor '%s' has no fixed shape or type", path,
                            tensors[i].name);
  sn__bytes *parts = sn__calloc(n + 3, sizeof *parts);
  if (parts == NULL) return sn_status_out_of_memory();
  char *header = make_header(tensors, n, metadata, n_metadata, parts + 3);
  sn_status status = header == NULL ? sn_status_out_of_memory() : SN_OK;
  if (status == SN_OK) {
    /* The header is padded with spaces so that tensors begin at multiples of 8. */
    size_t length = strlen(header), padded = (length + 7) / 8 * 8;
    uint8_t size[8];
    for (int i = 0; i < 8; i++)
      size[i] = (uint8_t)((uint64_t)padded >> (8 * i));
    parts[0] = (sn__bytes){size, sizeof size};
    parts[1] = (sn__bytes){header, length};
    parts[2] = (sn__bytes){"        ", padded - length};
    status = sn__file_replace(path, parts, n + 3);
  }
  cJSON_free(header);
  sn__free(parts);
  return status;
}

/* ---- reading ------------------------------------------------------------------------------- */

typedef struct entry {
  const char *name;
  int kind;
  sn_shape shape;
  uint64_t begin, end;
} entry;

static bool whole_number(const cJSON *item, uint64_t most, uint64_t *out) {
  if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) || item->valuedouble > (double)most ||
      item->valuedouble != (double)(uint64_t)item->valuedouble)
    return false;
  *out = (uint64_t)item->valuedouble;
  return true;
}

static sn_status read_entry(const cJSON *item, uint64_t most, entry *e) {
  const cJSON *dtype = cJSON_GetObjectItemCaseSensitive(item, "dtype");
  const cJSON *shape = cJSON_GetObjectItemCaseSensitive(item, "shape");
  const cJSON *offsets = cJSON_GetObjectItemCaseSensitive(item, "data_offsets");
  e->name = item->string;
  e->kind = -1;
  for (int i = 0; cJSON_IsString(dtype) && i < N_KINDS; i++)
    if (strcmp(kinds[i].name, dtype->valuestring) == 0) e->kind = i;
  if (e->kind < 0)
    return sn_status_make(SN_CODE_UNSUPPORTED, "tensor '%s' has type '%s', which is not read here",
                          e->name, cJSON_IsString(dtype) ? dtype->valuestring : "?");
  if (!cJSON_IsArray(shape) || cJSON_GetArraySize(shape) > SN_MAX_RANK)
    return sn_status_make(SN_CODE_CORRUPT, "tensor '%s' has no shape of at most %d dimensions",
                          e->name, SN_MAX_RANK);
  const cJSON *d;
  e->shape.rank = 0;
  cJSON_ArrayForEach(d, shape) {
    uint64_t n;
    if (!whole_number(d, (uint64_t)1 << 40, &n))
      return sn_status_make(SN_CODE_CORRUPT, "tensor '%s' has a dimension that is no size",
                            e->name);
    e->shape.dims[e->shape.rank++] = (int64_t)n;
  }
  int64_t count;
  if (!cJSON_IsArray(offsets) || cJSON_GetArraySize(offsets) != 2 ||
      !whole_number(cJSON_GetArrayItem(offsets, 0), most, &e->begin) ||
      !whole_number(cJSON_GetArrayItem(offsets, 1), most, &e->end) || e->begin > e->end ||
      !sn__shape_count(&e->shape, &count) || (uint64_t)count > most ||
      (uint64_t)count * kinds[e->kind].bytes != e->end - e->begin)
    return sn_status_make(SN_CODE_CORRUPT,
                          "tensor '%s': its offsets do not fit its shape or the file", e->name);
  return SN_OK;
}

static int by_begin(const void *a, const void *b) {
  const entry *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return x->end < y->end ? -1 : x->end > y->end;
}

static float half_to_float(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = (h >> 10) & 31, mantissa = h & 1023;
  union {
    uint32_t u;
    float f;
  } bits;
  if (exponent == 31) {
    bits.u = sign | 0x7f800000 | mantissa << 13;
  } else if (exponent == 0) {
    float magnitude = (float)mantissa * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  } else {
    bits.u = sign | (exponent + 112) << 23 | mantissa << 13;
  }
  return bits.f;
}

static sn_status take_tensor(sn_checkpoint *c, const entry *e, const uint8_t *data) {
  void *out = NULL;
  size_t bytes = 0;
  SN_TRY(sn__checkpoint_add(c, e->name, kinds[e->kind].dtype, &e->shape, &out, &bytes));
  const uint8_t *from = data + e->begin;
  if (strcmp(kinds[e->kind].name, "F16") != 0) {
    if (bytes > 0) memcpy(out, from, bytes);
    return SN_OK;
  }
  for (size_t i = 0; i < bytes / 4; i++)
    ((float *)out)[i] = half_to_float((uint16_t)(from[2 * i] | from[2 * i + 1] << 8));
  return SN_OK;
}

static sn_status read_header(const cJSON *root, const uint8_t *data, size_t size,
                             sn_checkpoint *c) {
  if (!cJSON_IsObject(root))
    return sn_status_make(SN_CODE_CORRUPT, "its header is not a JSON object");
  size_t n = (size_t)cJSON_GetArraySize(root), used = 0;
  entry *entries = sn__calloc(n + 1, sizeof *entries);
  if (entries == NULL) return sn_status_out_of_memory();
  sn_status status = SN_OK;
  const cJSON *item;
  cJSON_ArrayForEach(item, root) {
    if (strcmp(item->string, "__metadata__") == 0) continue;
    status = read_entry(item, size, &entries[used]);
    if (status != SN_OK) break;
    used++;
  }
  if (status == SN_OK) qsort(entries, used, sizeof *entries, by_begin);
  uint64_t at = 0;
  for (size_t i = 0; status == SN_OK && i < used; i++) {
    if (entries[i].begin != at)
      status =
          sn_status_make(SN_CODE_CORRUPT, "tensor '%s' overlaps another or leaves a hole before it",
                         entries[i].name);
    at = entries[i].end;
    if (status == SN_OK) status = take_tensor(c, &entries[i], data);
  }
  if (status == SN_OK && at != size)
    status = sn_status_make(SN_CODE_CORRUPT, "has %llu bytes behind its last tensor",
                            (unsigned long long)(size - at));
  sn__free(entries);
  return status;
}

sn_status sn__safetensors_parse(const void *bytes, size_t size, sn_checkpoint **out_tensors) {
  const uint8_t *data = bytes;
  uint64_t header = 0;
  for (int i = 0; size >= 8 && i < 8; i++)
    header |= (uint64_t)data[i] << (8 * i);
  if (size < 8 || header > most_header || header > size - 8)
    return sn_status_make(SN_CODE_CORRUPT, "is not a safetensors file, or was cut short");
  sn_checkpoint *c = sn__calloc(1, sizeof *c);
  if (c == NULL) return sn_status_out_of_memory();
  cJSON *root = cJSON_ParseWithLengthOpts((const char *)data + 8, (size_t)header, NULL, 0);
  sn_status status = root == NULL
                         ? sn_status_make(SN_CODE_CORRUPT, "its header is not JSON")
                         : read_header(root, data + 8 + header, size - 8 - (size_t)header, c);
  cJSON_Delete(root);
  if (status != SN_OK) {
    sn_checkpoint_free(c);
    return status;
  }
  *out_tensors = c;
  return SN_OK;
}

sn_status sn_safetensors_read(const char *path, sn_checkpoint **out_tensors) {
  void *data = NULL;
  size_t size = 0;
  SN_TRY(sn__file_read(path, most_file, &data, &size));
  sn_status status = sn__safetensors_parse(data, size, out_tensors);
  sn__free(data);
  return status == SN_OK ? SN_OK : sn_status_context(status, "%s", path);
}
