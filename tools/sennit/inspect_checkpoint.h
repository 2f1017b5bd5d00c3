/* SPDX-License-Identifier: Apache-2.0 */
/* What a checkpoint holds: the model, its weights, and where its training was. */
#ifndef SN_TOOLS_SENNIT_INSPECT_CHECKPOINT_H
#define SN_TOOLS_SENNIT_INSPECT_CHECKPOINT_H

#include "core/status.h"

/* Prints on standard output. */
sn_status inspect_checkpoint(const char *path, bool json);

#endif
