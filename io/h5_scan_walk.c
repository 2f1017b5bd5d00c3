/* SPDX-License-Identifier: Apache-2.0 */
/* Every object of the file once, by name; cycles, dangling and external links named and not
 * followed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/h5_scan_child.h"

typedef struct walk {
  hid_t file;
  uint64_t userblock;
  int fd;
  unsigned long fileno;
  haddr_t *seen; /* open addressing; HADDR_UNDEF is free */
  size_t seen_size, seen_count;
  struct {
    char *path;
    haddr_t address;
  } * later; /* aliases, said when all datasets have been */
  size_t later_count, later_capacity;
  size_t objects;
} walk;

static bool first_visit(walk *w, haddr_t address) {
  if (w->seen_count * 2 >= w->seen_size) {
    size_t old_size = w->seen_size;
    haddr_t *old = w->seen;
    w->seen_size = old_size == 0 ? 1024 : old_size * 2;
    w->seen = sn__scan_alloc(w->seen_size * sizeof *w->seen);
    for (size_t i = 0; i < w->seen_size; ++i)
      w->seen[i] = HADDR_UNDEF;
    w->seen_count = 0;
    for (size_t i = 0; i < old_size; ++i)
      if (old[i] != HADDR_UNDEF) first_visit(w, old[i]);
    free(old);
  }
  size_t at = (size_t)(address * 0x9E3779B97F4A7C15u) & (w->seen_size - 1);
  while (w->seen[at] != HADDR_UNDEF && w->seen[at] != address)
    at = (at + 1) & (w->seen_size - 1);
  if (w->seen[at] == address) return false;
  w->seen[at] = address;
  w->seen_count++;
  return true;
}

static void add_alias(walk *w, const char *path, haddr_t address) {
  if (w->later_count == w->later_capacity) {
    size_t capacity = w->later_capacity == 0 ? 64 : w->later_capacity * 2;
    void *grown = realloc(w->later, capacity * sizeof *w->later);
    if (grown == NULL) return;
    w->later = grown;
    w->later_capacity = capacity;
  }
  char *kept = strdup(path);
  if (kept == NULL) return;
  w->later[w->later_count].path = kept;
  w->later[w->later_count++].address = address;
}

typedef struct names {
  char **items;
  size_t count, capacity;
} names;

static herr_t collect(hid_t group, const char *name, const H5L_info_t *info, void *user) {
  names *n = user;
  (void)group;
  (void)info;
  if (n->count == SN__SCAN_MAX_OBJECTS) return 1;
  if (n->count == n->capacity) {
    n->capacity = n->capacity == 0 ? 32 : n->capacity * 2;
    char **grown = realloc(n->items, n->capacity * sizeof *n->items);
    if (grown == NULL) return -1;
    n->items = grown;
  }
  n->items[n->count] = strdup(name);
  return n->items[n->count] != NULL ? (n->count++, 0) : -1;
}

static void visit_group(walk *w, hid_t group, const char *path, int depth);

static void visit_object(walk *w, const char *path, bool soft, int depth) {
  H5O_info_t info;
  memset(&info, 0, sizeof info);
  if (H5Oget_info_by_name2(w->file, path, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0) {
    sn__say_words(soft ? SN__WIRE_LINK : SN__WIRE_PROBLEM, path,
                  soft ? "a soft link that leads nowhere" : sn__say_why());
    return;
  }
  if (info.fileno != w->fileno) {
    sn__say_words(SN__WIRE_LINK, path, "a link into another file, which is not followed");
    return;
  }
  if (soft || !first_visit(w, info.addr)) {
    if (info.type == H5O_TYPE_DATASET) add_alias(w, path, info.addr);
    return;
  }
  if (info.type == H5O_TYPE_DATASET) {
    sn__scan_dataset(w->file, path, info.addr, w->userblock, w->fd, false);
    return;
  }
  if (info.type != H5O_TYPE_GROUP) return;
  hid_t group = H5Gopen2(w->file, path, H5P_DEFAULT);
  if (group < 0) {
    sn__say_words(SN__WIRE_PROBLEM, path, sn__say_why());
    return;
  }
  sn__say_begin(SN__WIRE_GROUP);
  sn__say_str(path);
  sn__say_end();
  visit_group(w, group, path, depth + 1);
  H5Gclose(group);
}

static void say_external(hid_t group, const char *name, const char *path, size_t size) {
  char words[512], value[1024];
  const char *file = NULL, *object = NULL;
  unsigned flags = 0;
  if (size <= sizeof value && H5Lget_val(group, name, value, sizeof value, H5P_DEFAULT) >= 0 &&
      H5Lunpack_elink_val(value, size, &flags, &file, &object) >= 0)
    snprintf(words, sizeof words, "a link to %.200s in the file %.200s, which is not followed",
             object, file);
  else
    snprintf(words, sizeof words, "a link into another file, which is not followed");
  sn__say_words(SN__WIRE_LINK, path, words);
}

static void visit_link(walk *w, hid_t group, const char *parent, const char *name, int depth) {
  char path[4096];
  int n = snprintf(path, sizeof path, "%s/%s", strcmp(parent, "/") == 0 ? "" : parent, name);
  if (n < 0 || (size_t)n >= sizeof path) return;
  if (++w->objects > SN__SCAN_MAX_OBJECTS) return;
  sn__say_at(path, "following its link");
  H5L_info_t link;
  memset(&link, 0, sizeof link);
  if (H5Lget_info(group, name, &link, H5P_DEFAULT) < 0) {
    sn__say_words(SN__WIRE_PROBLEM, path, sn__say_why());
    return;
  }
  switch (link.type) {
  case H5L_TYPE_HARD: visit_object(w, path, false, depth); break;
  case H5L_TYPE_SOFT: visit_object(w, path, true, depth); break;
  case H5L_TYPE_EXTERNAL: say_external(group, name, path, link.u.val_size); break;
  default: sn__say_words(SN__WIRE_LINK, path, "a link of a kind that only its writer knows"); break;
  }
}

static void visit_group(walk *w, hid_t group, const char *path, int depth) {
  if (depth > SN__SCAN_MAX_DEPTH) {
    sn__say_words(SN__WIRE_PROBLEM, path, "groups nested more than 64 deep are not entered");
    return;
  }
  names n = {0};
  sn__say_at(path, "listing the group");
  if (H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, collect, &n) < 0)
    sn__say_words(SN__WIRE_PROBLEM, path, sn__say_why());
  for (size_t i = 0; i < n.count; ++i) {
    visit_link(w, group, path, n.items[i], depth);
    free(n.items[i]);
  }
  free(n.items);
}

void sn__scan_walk(hid_t file, uint64_t userblock, int file_fd) {
  walk w = {.file = file, .userblock = userblock, .fd = file_fd};
  H5O_info_t info;
  memset(&info, 0, sizeof info);
  sn__say_at("/", "opening the root group");
  hid_t root = H5Gopen2(file, "/", H5P_DEFAULT);
  if (root < 0 || H5Oget_info2(root, &info, H5O_INFO_BASIC) < 0) {
    sn__say_words(SN__WIRE_PROBLEM, "/", sn__say_why());
    return;
  }
  w.fileno = info.fileno;
  first_visit(&w, info.addr);
  visit_group(&w, root, "/", 0);
  H5Gclose(root);
  for (size_t i = 0; i < w.later_count; ++i) {
    sn__say_begin(SN__WIRE_ALIAS);
    sn__say_str(w.later[i].path);
    sn__say_u64(w.later[i].address);
    sn__say_end();
    free(w.later[i].path);
  }
  free(w.later);
  free(w.seen);
}

/* ---- attributes: scalars that read as a few words ------------------------------------------ */

typedef struct attributes {
  uint32_t count;
  char name[16][64];
  char text[16][96];
} attributes;

static void attribute_text(hid_t attribute, char *text, size_t size) {
  hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
  double number = 0;
  char *pointer = NULL;
  H5T_class_t cls = type >= 0 ? H5Tget_class(type) : H5T_NO_CLASS;
  snprintf(text, size, "...");
  if (space >= 0 && H5Sget_simple_extent_npoints(space) == 1) {
    if (cls == H5T_STRING && H5Tis_variable_str(type) > 0) {
      if (H5Aread(attribute, type, &pointer) >= 0 && pointer != NULL) {
        snprintf(text, size, "%s", pointer);
        H5free_memory(pointer);
      }
    } else if (cls == H5T_STRING && H5Tget_size(type) < size) {
      memset(text, 0, size);
      if (H5Aread(attribute, type, text) < 0) snprintf(text, size, "...");
    } else if ((cls == H5T_INTEGER || cls == H5T_FLOAT) &&
               H5Aread(attribute, H5T_NATIVE_DOUBLE, &number) >= 0) {
      snprintf(text, size, "%.9g", number);
    }
  }
  if (space >= 0) H5Sclose(space);
  if (type >= 0) H5Tclose(type);
}

static herr_t collect_attribute(hid_t object, const char *name, const H5A_info_t *info,
                                void *user) {
  attributes *a = user;
  (void)info;
  if (a->count == 16) return 1;
  snprintf(a->name[a->count], sizeof a->name[0], "%s", name);
  snprintf(a->text[a->count], sizeof a->text[0], "...");
  hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
  if (attribute >= 0) {
    attribute_text(attribute, a->text[a->count], sizeof a->text[0]);
    H5Aclose(attribute);
  }
  a->count++;
  return 0;
}

void sn__scan_attributes_say(hid_t object) {
  static attributes a;
  a.count = 0;
  hsize_t at = 0;
  if (H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &at, collect_attribute, &a) < 0)
    H5Eclear2(H5E_DEFAULT);
  sn__say_u32(a.count);
  for (uint32_t i = 0; i < a.count; ++i) {
    sn__say_str(a.name[i]);
    sn__say_str(a.text[i]);
  }
}
