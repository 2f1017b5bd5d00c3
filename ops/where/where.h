/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SN_OPS_WHERE_WHERE_H
#define SN_OPS_WHERE_WHERE_H

#include "ops/common.h"

sn_status sn__where_cpu(const sn__exec *e);

#endif
