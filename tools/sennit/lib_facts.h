/* SPDX-License-Identifier: Apache-2.0 */
/* What a data file holds, told to a model written in C (sn_model_facts). */
#ifndef SN_TOOLS_SENNIT_LIB_FACTS_H
#define SN_TOOLS_SENNIT_LIB_FACTS_H

#include "models/model.h"

typedef struct lib_facts {
  sn_model_facts facts; /* for the model */
  sn_model_fact *items; /* owned, with their names */
} lib_facts;

/* Datasets, and groups of values and offsets, of one file; classes of those with one column. */
sn_status lib_facts_read(const char *file, lib_facts *out);
void lib_facts_free(lib_facts *facts);

#endif
