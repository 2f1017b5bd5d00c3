/* SPDX-License-Identifier: Apache-2.0 */
/* Models written in C: a shared library with one symbol (models/model.h), and the fields that its
 * graph's inputs are read from. */
#ifndef SN_TOOLS_SENNIT_MODEL_LIB_H
#define SN_TOOLS_SENNIT_MODEL_LIB_H

#include "io/dataset.h"
#include "models/config.h"
#include "models/model.h"

typedef struct model_lib model_lib;

/* CONFIG: no such file, no such symbol, another ABI. */
sn_status model_lib_open(const char *path, model_lib **out_library);
void model_lib_free(model_lib *library);

/* Fills an empty graph; the model hears what the data of this file is like. */
sn_status model_lib_build(const model_lib *library, const char *file, sn_graph *graph);

/* The fields of a graph's inputs for one split: each from the dataset of its name, unless the
 * config's `inputs`, `outputs` or `data` say otherwise. The list is the caller's (sn__free); texts
 * are the graph's and the config's, but for `paths`, which is freed with it. */
typedef struct graph_fields {
  sn_field *items;
  size_t count;
  char **paths; /* [count] made here, some NULL */
} graph_fields;
sn_status graph_fields_make(const sn_graph *graph, const sn_model_config *config,
                            sn_config_split split, graph_fields *out);
void graph_fields_free(graph_fields *fields);

/* Whether the graph's inputs have the shapes that the data has. */
sn_status graph_fields_check(const sn_graph *graph, const sn_preparation *preparation);

#endif
