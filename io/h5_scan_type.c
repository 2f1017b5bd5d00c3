/* SPDX-License-Identifier: Apache-2.0 */
/* What an HDF5 type is to a trainer. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/h5_scan_child.h"

__attribute__((format(printf, 2, 3))) static void add(sn__scan_type *t, const char *format, ...);

static void add(sn__scan_type *t, const char *format, ...) {
  size_t used = strlen(t->text);
  va_list args;
  va_start(args, format);
  vsnprintf(t->text + used, sizeof t->text - used, format, args);
  va_end(args);
}

hid_t sn__scan_native(sn__h5_kind kind) {
  switch (kind) {
  case SN__H5_I8: return H5T_NATIVE_INT8;
  case SN__H5_U8: return H5T_NATIVE_UINT8;
  case SN__H5_I16: return H5T_NATIVE_INT16;
  case SN__H5_U16: return H5T_NATIVE_UINT16;
  case SN__H5_I32: return H5T_NATIVE_INT32;
  case SN__H5_U32: return H5T_NATIVE_UINT32;
  case SN__H5_I64: return H5T_NATIVE_INT64;
  case SN__H5_U64: return H5T_NATIVE_UINT64;
  case SN__H5_F32: return H5T_NATIVE_FLOAT;
  case SN__H5_F64: return H5T_NATIVE_DOUBLE;
  default: return H5I_INVALID_HID;
  }
}

static sn__h5_kind integer_kind(size_t size, bool is_signed) {
  switch (size) {
  case 1: return is_signed ? SN__H5_I8 : SN__H5_U8;
  case 2: return is_signed ? SN__H5_I16 : SN__H5_U16;
  case 4: return is_signed ? SN__H5_I32 : SN__H5_U32;
  case 8: return is_signed ? SN__H5_I64 : SN__H5_U64;
  default: return SN__H5_KIND_NONE;
  }
}

static void read_order(hid_t type, sn__scan_type *t) {
  H5T_order_t order = H5Tget_order(type);
  if (order == H5T_ORDER_BE && t->size > 1) t->flags |= SN__H5_BIG_ENDIAN;
  if (order == H5T_ORDER_VAX) t->kind = SN__H5_KIND_NONE;
}

static void read_integer(hid_t type, sn__scan_type *t, bool is_signed) {
  size_t bits = H5Tget_precision(type);
  t->cls = SN__H5_CLASS_INTEGER;
  if (bits == 8 * t->size && H5Tget_offset(type) == 0) t->kind = integer_kind(t->size, is_signed);
  size_t wide = t->size <= 1 ? 1 : t->size <= 2 ? 2 : t->size <= 4 ? 4 : 8;
  t->convert = integer_kind(wide, is_signed);
  read_order(type, t);
  if (t->kind != SN__H5_KIND_NONE)
    add(t, "%s", sn__h5_kind_name(t->kind));
  else
    add(t, "%s integer of %zu bits in %zu bytes", is_signed ? "signed" : "unsigned", bits, t->size);
}

static void read_float(hid_t type, sn__scan_type *t) {
  static const struct {
    sn__h5_kind kind;
    size_t size, sign, exponent, exponent_bits, mantissa_bits, bias;
  } known[] = {{SN__H5_F16, 2, 15, 10, 5, 10, 15},
               {SN__H5_BF16, 2, 15, 7, 8, 7, 127},
               {SN__H5_F32, 4, 31, 23, 8, 23, 127},
               {SN__H5_F64, 8, 63, 52, 11, 52, 1023}};
  size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
  t->cls = SN__H5_CLASS_FLOAT;
  t->convert = t->size <= 4 ? SN__H5_F32 : SN__H5_F64;
  if (H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) < 0) return;
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
    if (t->size == known[i].size && H5Tget_precision(type) == 8 * t->size &&
        H5Tget_offset(type) == 0 && sign == known[i].sign && exponent == known[i].exponent &&
        exponent_bits == known[i].exponent_bits && mantissa == 0 &&
        mantissa_bits == known[i].mantissa_bits && H5Tget_ebias(type) == known[i].bias &&
        H5Tget_norm(type) == H5T_NORM_IMPLIED)
      t->kind = known[i].kind;
  read_order(type, t);
  if (t->kind != SN__H5_KIND_NONE)
    add(t, "%s", sn__h5_kind_name(t->kind));
  else
    add(t, "float of %zu bits in %zu bytes", H5Tget_precision(type), t->size);
}

static void read_string(hid_t type, sn__scan_type *t) {
  t->cls = SN__H5_CLASS_STRING;
  if (H5Tget_cset(type) == H5T_CSET_UTF8) t->flags |= SN__H5_UTF8;
  if (H5Tis_variable_str(type) > 0) {
    t->flags |= SN__H5_VLEN_STRING;
    add(t, "string");
    return;
  }
  if (H5Tget_strpad(type) == H5T_STR_SPACEPAD) t->flags |= SN__H5_SPACE_PAD;
  add(t, "string[%zu]", t->size);
}

static bool enum_value(hid_t type, hid_t base, unsigned i, int64_t *out) {
  union {
    int64_t value;
    uint8_t bytes[64];
  } v = {0};
  if (H5Tget_size(base) > sizeof v.bytes || H5Tget_member_value(type, i, &v) < 0 ||
      H5Tconvert(base, H5T_NATIVE_INT64, 1, &v, NULL, H5P_DEFAULT) < 0)
    return false;
  *out = v.value;
  return true;
}

static void read_enum(hid_t type, sn__scan_type *t) {
  hid_t base = H5Tget_super(type);
  if (base < 0) return;
  char kept[sizeof t->text];
  memcpy(kept, t->text, sizeof kept);
  read_integer(base, t, H5Tget_sign(base) == H5T_SGN_2);
  memcpy(t->text, kept, sizeof kept);
  t->cls = SN__H5_CLASS_ENUM;
  t->enumeration = H5Tcopy(type);
  int count = H5Tget_nmembers(type);
  if (count == 2) {
    char *first = H5Tget_member_name(type, 0), *second = H5Tget_member_name(type, 1);
    if (first != NULL && second != NULL && strcasecmp(first, "FALSE") == 0 &&
        strcasecmp(second, "TRUE") == 0)
      t->flags |= SN__H5_BOOLEAN;
    H5free_memory(first);
    H5free_memory(second);
  }
  if ((t->flags & SN__H5_BOOLEAN) != 0) {
    add(t, "bool");
  } else {
    add(t, "enum {");
    for (int i = 0; i < count && i < 8; ++i) {
      char *name = H5Tget_member_name(type, (unsigned)i);
      add(t, "%s%s", i > 0 ? ", " : "", name != NULL ? name : "?");
      H5free_memory(name);
    }
    add(t, "%s}", count > 8 ? ", ..." : "");
  }
  H5Tclose(base);
}

static void read_any(hid_t type, sn__scan_type *t, int depth);

static void read_compound(hid_t type, sn__scan_type *t, int depth) {
  int count = H5Tget_nmembers(type);
  add(t, "compound {");
  for (int i = 0; i < count && i < 8 && depth < 4; ++i) {
    char *name = H5Tget_member_name(type, (unsigned)i);
    hid_t member = H5Tget_member_type(type, (unsigned)i);
    sn__scan_type inner = {.enumeration = H5I_INVALID_HID};
    if (member >= 0) read_any(member, &inner, depth + 1);
    add(t, "%s%s: %s", i > 0 ? ", " : "", name != NULL ? name : "?", inner.text);
    sn__scan_type_release(&inner);
    H5free_memory(name);
    if (member >= 0) H5Tclose(member);
  }
  add(t, "%s}", count > 8 ? ", ..." : "");
}

static void read_vlen(hid_t type, sn__scan_type *t, int depth) {
  hid_t base = H5Tget_super(type);
  sn__scan_type inner = {.enumeration = H5I_INVALID_HID};
  if (base >= 0 && depth < 4) read_any(base, &inner, depth + 1);
  t->cls = SN__H5_CLASS_VLEN;
  add(t, "variable length of %s", inner.text);
  bool number = inner.cls == SN__H5_CLASS_INTEGER || inner.cls == SN__H5_CLASS_FLOAT;
  if (number && inner.array_rank == 0) t->kind = t->convert = inner.convert;
  sn__scan_type_release(&inner);
  if (base >= 0) H5Tclose(base);
}

static void read_array(hid_t type, sn__scan_type *t, int depth) {
  hid_t base = H5Tget_super(type);
  hsize_t dims[H5S_MAX_RANK];
  int rank = H5Tget_array_ndims(type);
  if (base < 0 || rank <= 0 || depth >= 4 || H5Tget_array_dims2(type, dims) < 0) {
    if (base >= 0) H5Tclose(base);
    add(t, "array");
    return;
  }
  read_any(base, t, depth + 1);
  H5Tclose(base);
  bool ragged = t->cls == SN__H5_CLASS_VLEN || (t->flags & SN__H5_VLEN_STRING) != 0;
  if ((unsigned)rank > SN__H5_MAX_ARRAY_RANK || t->array_rank != 0 ||
      ragged) { /* nobody has them */
    t->cls = SN__H5_CLASS_OTHER;
    t->kind = t->convert = SN__H5_KIND_NONE;
    t->array_rank = 0;
  } else {
    t->array_rank = (unsigned)rank;
    memcpy(t->array_dims, dims, (size_t)rank * sizeof *dims);
  }
  add(t, "[");
  for (int i = 0; i < rank; ++i)
    add(t, "%s%llu", i > 0 ? "," : "", (unsigned long long)dims[i]);
  add(t, "]");
}

static void read_any(hid_t type, sn__scan_type *t, int depth) {
  t->size = H5Tget_size(type);
  switch (H5Tget_class(type)) {
  case H5T_INTEGER: read_integer(type, t, H5Tget_sign(type) == H5T_SGN_2); break;
  case H5T_BITFIELD: read_integer(type, t, false); break; /* PyTables keeps its booleans so */
  case H5T_FLOAT: read_float(type, t); break;
  case H5T_STRING: read_string(type, t); break;
  case H5T_ENUM: read_enum(type, t); break;
  case H5T_VLEN: read_vlen(type, t, depth); break;
  case H5T_ARRAY: read_array(type, t, depth); break;
  case H5T_COMPOUND: read_compound(type, t, depth); break;
  case H5T_REFERENCE: add(t, "reference"); break;
  case H5T_OPAQUE: add(t, "opaque[%zu]", t->size); break;
  case H5T_TIME: add(t, "time"); break;
  default: add(t, "unknown type"); break;
  }
  bool number = t->cls == SN__H5_CLASS_INTEGER || t->cls == SN__H5_CLASS_FLOAT;
  if (number && (t->flags & SN__H5_BIG_ENDIAN) != 0 && depth == 0) add(t, " big-endian");
}

void sn__scan_type_read(hid_t type, sn__scan_type *out) {
  memset(out, 0, sizeof *out);
  out->enumeration = H5I_INVALID_HID;
  read_any(type, out, 0);
}

void sn__scan_type_release(sn__scan_type *t) {
  if (t->enumeration >= 0) H5Tclose(t->enumeration);
  t->enumeration = H5I_INVALID_HID;
}

void sn__scan_type_say(const sn__scan_type *t) {
  sn__say_u8((unsigned)t->cls);
  sn__say_u8((unsigned)t->kind);
  sn__say_u32(t->flags);
  sn__say_u32((uint32_t)t->size);
  sn__say_str(t->text);
  int count = t->enumeration >= 0 ? H5Tget_nmembers(t->enumeration) : 0;
  if (count < 0 || (unsigned)count > SN__H5_MAX_ENUM) count = 0;
  hid_t base = count > 0 ? H5Tget_super(t->enumeration) : H5I_INVALID_HID;
  sn__say_u32((uint32_t)count);
  for (int i = 0; i < count; ++i) {
    char *name = H5Tget_member_name(t->enumeration, (unsigned)i);
    int64_t value = 0;
    if (!enum_value(t->enumeration, base, (unsigned)i, &value)) value = INT64_MIN;
    sn__say_str(name != NULL ? name : "?");
    sn__say_u64((uint64_t)value);
    H5free_memory(name);
  }
  if (base >= 0) H5Tclose(base);
}
