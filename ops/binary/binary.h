/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SN_OPS_BINARY_BINARY_H
#define SN_OPS_BINARY_BINARY_H

#include "ops/common.h"

sn_status sn__add_cpu(const sn__exec *e);
sn_status sn__sub_cpu(const sn__exec *e);
sn_status sn__mul_cpu(const sn__exec *e);
sn_status sn__div_cpu(const sn__exec *e);

#endif
