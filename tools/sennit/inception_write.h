/* SPDX-License-Identifier: Apache-2.0 */
/* The four-path model as files: the same work for train, plan and debug. */
#ifndef SN_TOOLS_SENNIT_INCEPTION_WRITE_H
#define SN_TOOLS_SENNIT_INCEPTION_WRITE_H

#include "models/model.h"

/* Makes the folder, and in it data.h5 (`batches` batches of rows) and model.yaml. */
sn_status inception_write(const char *folder, const sn_inception_sizes *sizes, int64_t batches);

#endif
