/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/memory.h"

#include <string.h>

typedef struct builder {
  const sn_graph *g;
  const sn__schedule *s;
  const int64_t *capacity;
  const sn__schedule_options *options;
  sn__memory *m;
  sn__arena scratch;
  uint32_t cap_blocks;
  uint32_t *ended; /* [cap_blocks * n_queues] after how many tasks of each queue a block is dead */
  bool *copied;    /* [cap_blocks] a copy reads it */
  bool *fetched;   /* [n_values] by storage */
} builder;

static void *take(builder *b, size_t count, size_t size) {
  size_t bytes = 0;
  if (!sn__size_mul(count + 1, size, &bytes)) return NULL;
  return sn__arena_alloc(&b->scratch, bytes);
}

static uint32_t *ended_row(builder *b, int32_t block) {
  return b->ended + (size_t)block * b->s->n_queues;
}

static void access_block(builder *b, int32_t block, uint32_t task) {
  const sn__task *t = &b->s->tasks[task];
  uint32_t *row = ended_row(b, block);
  if (t->position + 1 > row[t->queue]) row[t->queue] = t->position + 1;
}

/* ---- blocks -------------------------------------------------------------------------------- */

static sn_status round_up(const sn__node *n, size_t bytes, size_t *out) {
  if (!sn__size_add(bytes, SN__BLOCK_ALIGNMENT - 1, out) || *out > INT64_MAX / 4)
    return sn_status_make(SN_CODE_INVALID, "'%s' is too large for memory; use a smaller batch",
                          n->name);
  *out &= ~(size_t)(SN__BLOCK_ALIGNMENT - 1);
  return SN_OK;
}

static sn_status add_block(builder *b, uint32_t task, int32_t arena, uint32_t value, size_t bytes,
                           int32_t *out_block) {
  sn__memory *m = b->m;
  sn__block *block = &m->blocks[m->n_blocks];
  *block = (sn__block){.arena = arena, .first = task, .value = value};
  SN_TRY(round_up(&b->g->nodes[b->s->tasks[task].node], bytes, &block->bytes));
  *out_block = (int32_t)m->n_blocks++;
  return SN_OK;
}

/* Every other access of the block has ended when this task starts. Its readers so far must be all
 * there are: hence `ended` is filled in for all reads before blocks are merged. */
static bool all_before(builder *b, const uint32_t *ended, uint32_t task) {
  const uint32_t *clock = &b->s->clocks[(size_t)task * b->s->n_queues];
  const sn__task *t = &b->s->tasks[task];
  for (uint32_t q = 0; q < b->s->n_queues; q++) {
    uint32_t limit = q == t->queue ? t->position + 1 : clock[q];
    if (ended[q] > limit) return false;
  }
  return true;
}

static bool same_extent(const sn_graph *g, uint32_t x, uint32_t y) {
  const sn__value *a = &g->values[x], *c = &g->values[y];
  return sn_dtype_size(a->dtype) == sn_dtype_size(c->dtype) && sn_shape_equal(&a->shape, &c->shape);
}

/* The block whose bytes output `o` of a task may overwrite, or SN__NO_BLOCK. */
static int32_t inplace_block(builder *b, uint32_t task, uint32_t o, const uint32_t *reads) {
  const sn_graph *g = b->g;
  const sn__node *n = &g->nodes[b->s->tasks[task].node];
  int input = n->op->inplace[o];
  if (input == 0 || (n->op->flags & SN_OP_COPY) != 0 || (uint32_t)input > n->n_in ||
      n->in[input - 1] == 0 || !same_extent(g, n->in[input - 1], n->out[o]))
    return SN__NO_BLOCK;
  uint32_t storage = sn__value_storage(g, n->in[input - 1]);
  int32_t block = b->m->block_of[storage];
  if (block == SN__NO_BLOCK || b->m->blocks[block].fetched || b->copied[block] ||
      b->m->blocks[block].arena % SN__QUEUE_COUNT != SN__QUEUE_COMPUTE || b->fetched[n->out[o]])
    return SN__NO_BLOCK;
  for (uint32_t i = 0; i < n->n_in; i++)
    if ((int)i != input - 1 && n->in[i] != 0 &&
        b->m->block_of[sn__value_storage(g, n->in[i])] == block)
      return SN__NO_BLOCK;
  for (uint32_t k = 0; k < o; k++) /* another output has it already */
    if (b->m->block_of[n->out[k]] == block) return SN__NO_BLOCK;
  const uint32_t *row = reads + (size_t)storage * b->s->n_queues;
  return all_before(b, row, task) && all_before(b, ended_row(b, block), task) ? block
                                                                              : SN__NO_BLOCK;
}

/* reads[v]: after how many tasks of each queue nobody reads storage value v any more. NULL: out of
 * memory. */
static uint32_t *count_reads(builder *b, bool *copied) {
  const sn_graph *g = b->g;
  size_t cells = 0;
  uint32_t *reads = NULL;
  if (sn__size_mul(g->n_values, b->s->n_queues, &cells)) reads = take(b, cells, sizeof *reads);
  if (reads == NULL) return NULL;
  for (uint32_t t = 0; t < b->s->n_tasks; t++) {
    const sn__task *task = &b->s->tasks[t];
    const sn__node *n = &g->nodes[task->node];
    for (uint32_t i = 0; i < n->n_in; i++) {
      if (n->in[i] == 0) continue;
      uint32_t storage = sn__value_storage(g, n->in[i]);
      uint32_t *row = reads + (size_t)storage * b->s->n_queues;
      if (task->position + 1 > row[task->queue]) row[task->queue] = task->position + 1;
      if ((n->op->flags & SN_OP_COPY) != 0) copied[storage] = true;
    }
  }
  return reads;
}

static void join_reads(builder *b, int32_t block, const uint32_t *reads) {
  uint32_t *row = ended_row(b, block);
  for (uint32_t q = 0; q < b->s->n_queues; q++)
    if (reads[q] > row[q]) row[q] = reads[q];
}

static sn_status add_outputs(builder *b, uint32_t task, const uint32_t *reads, const bool *copied) {
  const sn_graph *g = b->g;
  const sn__task *t = &b->s->tasks[task];
  const sn__node *n = &g->nodes[t->node];
  for (uint32_t o = 0; o < n->n_out; o++) {
    uint32_t value = n->out[o];
    if ((n->op->flags & SN_OP_COMMIT) != 0 && n->op->commits[o] != 0) continue;
    size_t bytes = 0;
    if (!sn__value_bytes(g, value, b->capacity, &bytes)) bytes = SIZE_MAX;
    int32_t block = inplace_block(b, task, o, reads);
    if (block == SN__NO_BLOCK) SN_TRY(add_block(b, task, (int32_t)t->queue, value, bytes, &block));
    b->m->block_of[value] = block;
    b->m->blocks[block].fetched |= b->fetched[value];
    b->copied[block] |= copied[value];
    access_block(b, block, task);
    join_reads(b, block, reads + (size_t)value * b->s->n_queues);
  }
  return SN_OK;
}

static sn_status add_workspace(builder *b, uint32_t task, sn__tensor *tensors) {
  const sn_graph *g = b->g;
  const sn__task *t = &b->s->tasks[task];
  const sn__node *n = &g->nodes[t->node];
  b->m->workspace[task] = SN__NO_BLOCK;
  if (n->op->workspace == NULL) return SN_OK;
  for (uint32_t i = 0; i < n->n_in + n->n_out; i++) {
    uint32_t value = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
    const sn__value *v = &g->values[value];
    tensors[i] = (sn__tensor){NULL, SN_DTYPE_NONE, {0, {0}}};
    if (value != 0)
      tensors[i] = (sn__tensor){NULL, v->dtype, sn__shape_resolve(&v->shape, b->capacity)};
  }
  sn__step step = {.rows = b->capacity[SN_SYMBOL_BATCH],
                   .extents = b->capacity,
                   .training = b->options->commits};
  sn__exec shapes = {.op = n->op,
                     .attrs = n->attrs,
                     .in = tensors,
                     .n_in = (int)n->n_in,
                     .out = tensors + n->n_in,
                     .n_out = (int)n->n_out,
                     .step = &step};
  size_t bytes = n->op->workspace(&shapes);
  b->m->workspace_bytes[task] = bytes;
  if (bytes == 0) return SN_OK;
  SN_TRY(add_block(b, task, (int32_t)t->queue, 0, bytes, &b->m->workspace[task]));
  access_block(b, b->m->workspace[task], task);
  return SN_OK;
}

static sn_status make_blocks(builder *b) {
  const sn_graph *g = b->g;
  size_t most = b->s->n_tasks, widest = 0, cells = 0;
  for (uint32_t t = 0; t < b->s->n_tasks; t++) {
    const sn__node *n = &g->nodes[b->s->tasks[t].node];
    most += n->n_out;
    if (n->n_in + n->n_out > widest) widest = n->n_in + n->n_out;
  }
  b->m->blocks = sn__arena_alloc(&b->m->arena, (most + 1) * sizeof *b->m->blocks);
  if (sn__size_mul(most, b->s->n_queues, &cells)) b->ended = take(b, cells, sizeof *b->ended);
  b->copied = take(b, most, sizeof *b->copied);
  b->fetched = take(b, g->n_values, sizeof *b->fetched);
  bool *copied = take(b, g->n_values, sizeof *copied);
  sn__tensor *tensors = take(b, widest, sizeof *tensors);
  if (b->m->blocks == NULL || b->ended == NULL || b->copied == NULL || b->fetched == NULL ||
      copied == NULL || tensors == NULL)
    return sn_status_out_of_memory();
  for (size_t i = 0; i < b->options->n_fetches; i++)
    b->fetched[sn__value_storage(g, b->options->fetches[i])] = true;
  const uint32_t *reads = count_reads(b, copied);
  if (reads == NULL) return sn_status_out_of_memory();
  for (uint32_t t = 0; t < b->s->n_tasks; t++) {
    SN_TRY(add_outputs(b, t, reads, copied));
    SN_TRY(add_workspace(b, t, tensors));
  }
  return SN_OK;
}

/* Views have the block of what they look at. */
static void share_views(builder *b) {
  const sn_graph *g = b->g;
  for (uint32_t v = 1; v < g->n_values; v++) {
    if (g->nodes[g->values[v].node].op == NULL || !b->s->needed[g->values[v].node]) continue;
    b->m->block_of[v] = b->m->block_of[sn__value_storage(g, v)];
  }
}

/* ---- one arena ----------------------------------------------------------------------------- */

/* After how many tasks of a queue a block is dead; only of the queues that have such a task. */
typedef struct ending {
  uint32_t queue, ended;
} ending;

typedef struct packing {
  sn__pack p;
  const uint32_t *members; /* blocks of the builder */
  ending *endings;         /* of member i: from first_ending[i] to first_ending[i + 1] */
  uint32_t *first_ending;
  size_t *live; /* by member: bytes that are there when it is first written */
  uint64_t *conflicts, *moments;
} packing;

/* All accesses of member x end before member y is first written. */
static bool dead_before(const builder *b, const packing *k, uint32_t x, uint32_t y) {
  if (b->m->blocks[k->members[x]].fetched) return false;
  const uint32_t *clock = &b->s->clocks[(size_t)b->m->blocks[k->members[y]].first * b->s->n_queues];
  for (uint32_t e = k->first_ending[x]; e < k->first_ending[x + 1]; e++)
    if (k->endings[e].ended > clock[k->endings[e].queue]) return false;
  return true;
}

static sn_status list_endings(builder *b, packing *k, uint32_t *last) {
  size_t n = 0;
  for (uint32_t i = 0; i < k->p.n; i++)
    for (uint32_t q = 0; q < b->s->n_queues; q++)
      n += ended_row(b, (int32_t)k->members[i])[q] > 0;
  k->endings = take(b, n, sizeof *k->endings);
  k->first_ending = take(b, (size_t)k->p.n + 1, sizeof *k->first_ending);
  if (k->endings == NULL || k->first_ending == NULL) return sn_status_out_of_memory();
  n = 0;
  for (uint32_t i = 0; i < k->p.n; i++) {
    const sn__block *x = &b->m->blocks[k->members[i]];
    const uint32_t *ended = ended_row(b, (int32_t)k->members[i]);
    last[i] = x->first;
    for (uint32_t q = 0; q < b->s->n_queues; q++) {
      if (ended[q] == 0) continue;
      k->endings[n++] = (ending){q, ended[q]};
      uint32_t task = b->s->queue_tasks[b->s->queue_first[q] + ended[q] - 1];
      if (task > last[i]) last[i] = task;
    }
    if (x->fetched) last[i] = b->s->n_tasks;
    k->first_ending[i + 1] = (uint32_t)n;
  }
  return SN_OK;
}

/* Member j is there when member i is first written. */
static void add_to_moment(packing *k, uint32_t i, uint32_t j) {
  k->moments[i * k->p.words + j / 64] |= (uint64_t)1 << (j % 64);
  k->live[i] += k->p.bytes[j];
  if (k->live[i] > k->p.live_bytes) k->p.live_bytes = k->live[i];
}

/* Blocks first written by or before a task and not dead before it all conflict with one another, so
 * their sum is a bound; the largest over the first writes is the best of these. */
static void find_conflicts(const builder *b, packing *k) {
  for (uint32_t i = 0; i < k->p.n; i++) {
    uint32_t at = k->p.first[i];
    add_to_moment(k, i, i);
    for (uint32_t j = 0; j < i; j++) {
      if (dead_before(b, k, i, j) || dead_before(b, k, j, i)) continue;
      k->conflicts[i * k->p.words + j / 64] |= (uint64_t)1 << (j % 64);
      k->conflicts[j * k->p.words + i / 64] |= (uint64_t)1 << (i % 64);
      uint32_t other = k->p.first[j];
      if (other == at || sn__task_before(b->s, other, at)) add_to_moment(k, i, j);
      if (other == at || sn__task_before(b->s, at, other)) add_to_moment(k, j, i);
    }
  }
}

/* Fills the packing problem of one arena: its blocks in the order of their first writes. */
static sn_status fill_pack(builder *b, packing *k) {
  sn__pack *p = &k->p;
  size_t cells = 0;
  p->words = ((size_t)p->n + 63) / 64;
  size_t *bytes = take(b, p->n, sizeof *bytes);
  uint32_t *first = take(b, p->n, sizeof *first), *last = take(b, p->n, sizeof *last);
  if (sn__size_mul(p->n, p->words, &cells)) k->conflicts = take(b, cells, sizeof *k->conflicts);
  if (cells > 0) k->moments = take(b, cells, sizeof *k->moments);
  k->live = take(b, p->n, sizeof *k->live);
  p->offsets = take(b, p->n, sizeof *p->offsets);
  if (bytes == NULL || first == NULL || last == NULL || k->conflicts == NULL ||
      k->moments == NULL || k->live == NULL || p->offsets == NULL)
    return sn_status_out_of_memory();
  for (uint32_t i = 0; i < p->n; i++) {
    bytes[i] = b->m->blocks[k->members[i]].bytes;
    first[i] = b->m->blocks[k->members[i]].first;
  }
  SN_TRY(list_endings(b, k, last));
  p->bytes = bytes;
  p->first = first;
  p->last = last;
  p->conflicts = k->conflicts;
  p->moments = k->moments;
  p->n_moments = p->n;
  find_conflicts(b, k);
  return SN_OK;
}

static sn_status plan_arena(builder *b, uint32_t arena, uint32_t *members) {
  packing k = {.members = members};
  sn__arena_plan *plan = &b->m->arenas[arena];
  for (uint32_t i = 0; i < b->m->n_blocks; i++) {
    if (b->m->blocks[i].arena != (int32_t)arena) continue;
    members[k.p.n++] = i;
    if (!sn__size_add(plan->blocks_bytes, b->m->blocks[i].bytes, &plan->blocks_bytes) ||
        plan->blocks_bytes > INT64_MAX)
      return sn_status_make(SN_CODE_INVALID, "the values of a step do not fit in any memory; use a "
                                             "smaller batch");
  }
  if (k.p.n == 0) return SN_OK;
  SN_TRY(fill_pack(b, &k));
  SN_TRY(sn__pack_blocks(&k.p, &plan->bytes));
  plan->live_bytes = k.p.live_bytes;
  for (uint32_t i = 0; i < k.p.n; i++)
    b->m->blocks[members[i]].offset = k.p.offsets[i];
  return SN_OK;
}

static sn_status build(builder *b) {
  sn__memory *m = b->m;
  const sn__schedule *s = b->s;
  m->n_arenas = s->n_queues;
  m->arenas = sn__arena_alloc(&m->arena, (m->n_arenas + 1) * sizeof *m->arenas);
  m->block_of = sn__arena_alloc(&m->arena, b->g->n_values * sizeof *m->block_of);
  m->workspace = sn__arena_alloc(&m->arena, (s->n_tasks + 1) * sizeof *m->workspace);
  m->workspace_bytes = sn__arena_alloc(&m->arena, (s->n_tasks + 1) * sizeof *m->workspace_bytes);
  if (m->arenas == NULL || m->block_of == NULL || m->workspace == NULL ||
      m->workspace_bytes == NULL)
    return sn_status_out_of_memory();
  for (size_t v = 0; v < b->g->n_values; v++)
    m->block_of[v] = SN__NO_BLOCK;
  SN_TRY(make_blocks(b));
  share_views(b);
  uint32_t *members = take(b, m->n_blocks, sizeof *members);
  if (members == NULL) return sn_status_out_of_memory();
  for (uint32_t a = 0; a < m->n_arenas; a++)
    SN_TRY(plan_arena(b, a, members));
  return SN_OK;
}

sn_status sn__memory_build(const sn_graph *graph, const sn__schedule *schedule,
                           const int64_t *capacity, const sn__schedule_options *options,
                           sn__memory **out_memory) {
  sn__memory *m = sn__calloc(1, sizeof *m);
  if (m == NULL) return sn_status_out_of_memory();
  builder b = {.g = graph, .s = schedule, .capacity = capacity, .options = options, .m = m};
  sn_status status = build(&b);
  sn__arena_free(&b.scratch);
  if (status != SN_OK) {
    sn__memory_free(m);
    return sn_status_context(status, "memory plan");
  }
  *out_memory = m;
  return SN_OK;
}

bool sn__memory_in_place(const sn__memory *m, const sn__node *n, uint32_t o) {
  int input = n->op->inplace[o];
  if (input == 0 || (uint32_t)input > n->n_in || n->in[input - 1] == 0) return false;
  int32_t block = m->block_of[n->out[o]];
  return block != SN__NO_BLOCK && m->block_of[n->in[input - 1]] == block;
}

void sn__memory_free(sn__memory *m) {
  if (m == NULL) return;
  sn__arena_free(&m->arena);
  sn__free(m);
}
