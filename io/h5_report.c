/* SPDX-License-Identifier: Apache-2.0 */
#include "io/h5_report.h"

#include <string.h>

#include "core/alloc.h"
#include "io/h5_report_impl.h"

/* ---- the bytes ----------------------------------------------------------------------------- */

bool sn__cursor_take(sn__cursor *c, void *out, size_t size) {
  if (c->bad || size > (size_t)(c->end - c->at)) {
    c->bad = true;
    memset(out, 0, size);
    return false;
  }
  memcpy(out, c->at, size);
  c->at += size;
  return true;
}

uint8_t sn__cursor_u8(sn__cursor *c) {
  uint8_t v;
  sn__cursor_take(c, &v, sizeof v);
  return v;
}

uint32_t sn__cursor_u32(sn__cursor *c) {
  uint32_t v;
  sn__cursor_take(c, &v, sizeof v);
  return v;
}

uint64_t sn__cursor_u64(sn__cursor *c) {
  uint64_t v;
  sn__cursor_take(c, &v, sizeof v);
  return v;
}

/* Messages are one line whatever a file's names hold. */
static void printable(char *text) {
  for (; *text != '\0'; ++text)
    if ((unsigned char)*text < 32 || *text == 127) *text = '?';
}

char *sn__cursor_str(sn__cursor *c) {
  uint32_t length = sn__cursor_u32(c);
  if (c->bad || length > (size_t)(c->end - c->at)) {
    c->bad = true;
    return NULL;
  }
  char *text = sn__strndup((const char *)c->at, length);
  if (text == NULL) {
    c->no_memory = c->bad = true;
    return NULL;
  }
  printable(text); /* which may be shorter: it ends at a NUL */
  c->at += length;
  return text;
}

uint8_t *sn__cursor_blob(sn__cursor *c, size_t *out_size) {
  uint32_t size = sn__cursor_u32(c);
  *out_size = 0;
  if (c->bad || size > (size_t)(c->end - c->at)) {
    c->bad = true;
    return NULL;
  }
  if (size == 0) return NULL;
  uint8_t *bytes = sn__alloc(size);
  if (bytes == NULL) {
    c->no_memory = c->bad = true;
    return NULL;
  }
  memcpy(bytes, c->at, size);
  c->at += size;
  *out_size = size;
  return bytes;
}

void *sn__cursor_array(sn__cursor *c, size_t count, size_t item, size_t least) {
  if (c->bad || count == 0) return NULL;
  if (count > (size_t)(c->end - c->at) / least) { /* never more items than bytes could hold */
    c->bad = true;
    return NULL;
  }
  void *items = sn__calloc(count, item);
  if (items == NULL) c->no_memory = c->bad = true;
  return items;
}

/* ---- the records --------------------------------------------------------------------------- */

typedef struct parser {
  sn__h5_report *report;
  sn__h5_bounds bounds;
  size_t dataset_capacity, link_capacity, problem_capacity, alias_capacity, group_capacity;
  size_t chunk_capacity; /* of the last dataset */
} parser;

static bool push_note(sn__cursor *c, sn__h5_note **notes, size_t *count, size_t *capacity,
                      char *path, char *words) {
  if (c->bad || !sn__grow((void **)notes, capacity, *count + 1, sizeof **notes)) {
    if (!c->bad) c->no_memory = c->bad = true;
    sn__free(path);
    sn__free(words);
    return false;
  }
  (*notes)[(*count)++] = (sn__h5_note){path, words};
  return true;
}

static void read_note(sn__cursor *c, sn__h5_note **notes, size_t *count, size_t *capacity) {
  char *path = sn__cursor_str(c);
  char *words = sn__cursor_str(c);
  push_note(c, notes, count, capacity, path, words);
}

static void read_alias(parser *p, sn__cursor *c) {
  sn__h5_report *r = p->report;
  char *path = sn__cursor_str(c);
  uint64_t address = sn__cursor_u64(c);
  char *own = NULL;
  for (size_t i = 0; i < r->dataset_count && own == NULL && !c->bad; ++i)
    if (r->datasets[i].address == address) {
      own = sn__strdup(r->datasets[i].path);
      if (own == NULL) c->no_memory = c->bad = true;
    }
  if (own == NULL) { /* an alias of something that is no dataset of ours */
    sn__free(path);
    return;
  }
  push_note(c, &r->aliases, &r->alias_count, &p->alias_capacity, path, own);
}

static void read_group(parser *p, sn__cursor *c) {
  sn__h5_report *r = p->report;
  char *path = sn__cursor_str(c);
  if (c->bad) {
    sn__free(path);
    return;
  }
  if (!sn__grow((void **)&r->groups, &p->group_capacity, r->group_count + 1, sizeof *r->groups)) {
    sn__free(path);
    c->no_memory = c->bad = true;
    return;
  }
  r->groups[r->group_count++] = path;
}

static void read_file(parser *p, sn__cursor *c) {
  sn__h5_report *r = p->report;
  r->superblock = sn__cursor_u32(c);
  r->userblock = sn__cursor_u64(c);
  r->file_size = sn__cursor_u64(c);
  r->end_of_allocation = sn__cursor_u64(c);
  sn__free(r->library);
  r->library = sn__cursor_str(c);
}

static void read_at(parser *p, sn__cursor *c) {
  sn__free(p->report->at_path);
  sn__free(p->report->at_stage);
  p->report->at_path = sn__cursor_str(c);
  p->report->at_stage = sn__cursor_str(c);
}

static void read_chunks(parser *p, sn__cursor *c) {
  uint32_t count = sn__cursor_u32(c);
  sn__h5_report *r = p->report;
  if (c->bad || r->dataset_count == 0) {
    c->bad = true;
    return;
  }
  sn__h5_dataset *d = &r->datasets[r->dataset_count - 1];
  if (d->chunks_whole || d->layout != SN__H5_CHUNKED || count > (size_t)(c->end - c->at) / 28) {
    c->bad = true;
    return;
  }
  if (!sn__grow((void **)&d->chunks, &p->chunk_capacity, d->chunk_count + count,
                sizeof *d->chunks)) {
    c->no_memory = c->bad = true;
    return;
  }
  for (uint32_t i = 0; i < count; ++i) {
    sn__h5_chunk *k = &d->chunks[d->chunk_count + i];
    k->index = sn__cursor_u64(c);
    k->address = sn__cursor_u64(c);
    k->size = sn__cursor_u64(c);
    k->mask = sn__cursor_u32(c);
  }
  d->chunk_count += count;
}

static bool fits(uint64_t at, uint64_t count, uint64_t item, uint64_t size) {
  return at <= size && count <= (size - at) / item;
}

static void read_converted(parser *p, sn__cursor *c) {
  sn__h5_report *r = p->report;
  sn__h5_converted v = {0};
  v.form = (sn__h5_form)sn__cursor_u8(c);
  v.kind = (sn__h5_kind)sn__cursor_u8(c);
  v.rows = sn__cursor_u64(c);
  v.count = sn__cursor_u64(c);
  v.values_at = sn__cursor_u64(c);
  v.offsets_at = sn__cursor_u64(c);
  uint64_t shared = p->bounds.shared_size;
  size_t item = v.form == SN__H5_FORM_STRINGS ? 1 : sn__h5_kind_size(v.kind);
  bool offsets = v.form != SN__H5_FORM_NUMBERS;
  if (c->bad || r->dataset_count == 0 || v.form < SN__H5_FORM_NUMBERS ||
      v.form > SN__H5_FORM_RAGGED || item == 0 || !fits(v.values_at, v.count, item, shared) ||
      (offsets && (v.rows == UINT64_MAX || !fits(v.offsets_at, v.rows + 1, 8, shared)))) {
    c->bad = true;
    return;
  }
  sn__h5_dataset *d = &r->datasets[r->dataset_count - 1];
  /* Whoever reads by rows relies on the dataset's own shape. */
  if (d->converted != NULL || v.rows != (offsets ? d->elements : v.rows) ||
      (!offsets && v.count != d->elements)) {
    c->bad = true;
    return;
  }
  d->converted = sn__alloc(sizeof v);
  if (d->converted == NULL)
    c->no_memory = c->bad = true;
  else
    *d->converted = v;
}

static void finish_dataset(parser *p, sn__cursor *c) {
  sn__h5_report *r = p->report;
  if (r->dataset_count == 0 || r->datasets[r->dataset_count - 1].chunks_whole) {
    c->bad = true;
    return;
  }
  sn__h5_dataset *d = &r->datasets[r->dataset_count - 1];
  d->chunks_whole = true;
  sn__h5_dataset_check(d, p->bounds.file_size, c);
}

static void read_next_dataset(parser *p, sn__cursor *c) {
  sn__h5_report *r = p->report;
  if (!sn__grow((void **)&r->datasets, &p->dataset_capacity, r->dataset_count + 1,
                sizeof *r->datasets)) {
    c->no_memory = c->bad = true;
    return;
  }
  sn__h5_dataset *d = &r->datasets[r->dataset_count++];
  memset(d, 0, sizeof *d);
  p->chunk_capacity = 0;
  sn__h5_dataset_read(d, c);
}

static void read_record(parser *p, uint8_t tag, sn__cursor *c) {
  sn__h5_report *r = p->report;
  switch (tag) {
  case SN__WIRE_FILE: read_file(p, c); break;
  case SN__WIRE_AT: read_at(p, c); break;
  case SN__WIRE_FAILED:
    sn__free(r->failure);
    r->failure = sn__cursor_str(c);
    r->failure_code = SN_CODE_DATA;
    break;
  case SN__WIRE_GROUP: read_group(p, c); break;
  case SN__WIRE_DATASET: read_next_dataset(p, c); break;
  case SN__WIRE_CHUNKS: read_chunks(p, c); break;
  case SN__WIRE_DONE: finish_dataset(p, c); break;
  case SN__WIRE_ALIAS: read_alias(p, c); break;
  case SN__WIRE_LINK: read_note(c, &r->links, &r->link_count, &p->link_capacity); break;
  case SN__WIRE_PROBLEM: read_note(c, &r->problems, &r->problem_count, &p->problem_capacity); break;
  case SN__WIRE_CONVERTED: read_converted(p, c); break;
  case SN__WIRE_END: r->ended = true; break;
  default: c->bad = true;
  }
  if (c->at != c->end) c->bad = true; /* a record says all it said it would */
}

sn_status sn__h5_report_parse(const uint8_t *bytes, size_t size, sn__h5_bounds bounds,
                              sn__h5_report **out_report) {
  sn__h5_report *report = sn__calloc(1, sizeof *report);
  if (report == NULL) return sn_status_out_of_memory();
  parser p = {.report = report, .bounds = bounds};
  size_t magic = strlen(SN__WIRE_MAGIC);
  if (size >= magic && memcmp(bytes, SN__WIRE_MAGIC, magic) != 0) {
    sn__h5_report_free(report);
    return sn_status_make(SN_CODE_CORRUPT, "the scanner's report has the wrong form: is SN_H5SCAN "
                                           "the sennit-h5scan of this very build?");
  }
  size_t at = magic;
  while (size > 5 && at <= size - 5 && !report->ended) {
    uint8_t tag = bytes[at];
    uint32_t length;
    memcpy(&length, bytes + at + 1, sizeof length);
    if (length > size - at - 5) break; /* cut off: the child died while writing it */
    sn__cursor c = {bytes + at + 5, bytes + at + 5 + length, false, false};
    read_record(&p, tag, &c);
    if (c.bad) {
      sn__h5_report_free(report);
      if (c.no_memory) return sn_status_out_of_memory();
      return sn_status_make(SN_CODE_CORRUPT,
                            "the scanner's report is damaged at byte %zu (record "
                            "%u): the file is hostile or the scanner is not of "
                            "this build",
                            at, (unsigned)tag);
    }
    at += 5 + (size_t)length;
  }
  *out_report = report;
  return SN_OK;
}

/* ---- the end ------------------------------------------------------------------------------- */

static void free_notes(sn__h5_note *notes, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    sn__free(notes[i].path);
    sn__free(notes[i].words);
  }
  sn__free(notes);
}

void sn__h5_report_free(sn__h5_report *r) {
  if (r == NULL) return;
  for (size_t i = 0; i < r->dataset_count; ++i)
    sn__h5_dataset_clear(&r->datasets[i]);
  sn__free(r->datasets);
  free_notes(r->aliases, r->alias_count);
  free_notes(r->links, r->link_count);
  free_notes(r->problems, r->problem_count);
  for (size_t i = 0; i < r->group_count; ++i)
    sn__free(r->groups[i]);
  sn__free(r->groups);
  sn__free(r->file);
  sn__free(r->failure);
  sn__free(r->library);
  sn__free(r->at_path);
  sn__free(r->at_stage);
  sn__free(r);
}

/* Slashes at the start do not count: "x", "/x" and "//x" are one path. */
static bool same_path(const char *a, const char *b) {
  while (*a == '/')
    ++a;
  while (*b == '/')
    ++b;
  return strcmp(a, b) == 0;
}

const sn__h5_dataset *sn__h5_report_find(const sn__h5_report *report, const char *path) {
  for (size_t i = 0; i < report->dataset_count; ++i)
    if (same_path(report->datasets[i].path, path)) return &report->datasets[i];
  for (size_t i = 0; i < report->alias_count; ++i)
    if (same_path(report->aliases[i].path, path))
      return sn__h5_report_find(report, report->aliases[i].words);
  return NULL;
}
