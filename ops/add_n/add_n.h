/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SN_OPS_ADD_N_ADD_N_H
#define SN_OPS_ADD_N_ADD_N_H

#include "ops/common.h"

sn_status sn__add_n_cpu(const sn__exec *e);

#endif
