/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SN_OPS_SCATTER_ADD_ROWS_SCATTER_ADD_ROWS_H
#define SN_OPS_SCATTER_ADD_ROWS_SCATTER_ADD_ROWS_H

#include "ops/gather_rows/gather_rows.h"

size_t sn__scatter_add_rows_workspace(const sn__exec *e);
sn_status sn__scatter_add_rows_cpu(const sn__exec *e);

#endif
