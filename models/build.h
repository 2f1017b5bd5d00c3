/* SPDX-License-Identifier: Apache-2.0 */
/* From a model file to what trains: the fields that are read from HDF5, and the graph. */
#ifndef SN_MODELS_BUILD_H
#define SN_MODELS_BUILD_H

#include "core/graph.h"
#include "io/dataset.h"
#include "models/config.h"

SN_BEGIN_DECLS

/* The fields of a checked config for one split: inputs, then outputs, in the file's order. The
 * strings are the config's; the list is the caller's (sn_model_fields_free). Graph inputs have the
 * fields' names; a label's is its output's, with ".label" behind it. */
SN_API SN_MUST_USE sn_status sn_model_fields(const sn_model_config *config, sn_config_split split,
                                             sn_field **out_fields, size_t *out_count);
SN_API void sn_model_fields_free(sn_field *fields);

/* Fills an empty graph. Feature counts and classes come from the preparation of sn_model_fields()'s
 * fields. Modules: one for each input by its name, "trunk", one for each output by its name. An
 * output with class weights or missing labels has a weights input "<name>.weights". */
SN_API SN_MUST_USE sn_status sn_model_build(const sn_model_config *config,
                                            const sn_preparation *preparation, sn_graph *graph);

SN_END_DECLS

#endif
