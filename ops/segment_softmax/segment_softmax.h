/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SN_OPS_SEGMENT_SOFTMAX_SEGMENT_SOFTMAX_H
#define SN_OPS_SEGMENT_SOFTMAX_SEGMENT_SOFTMAX_H

#include "ops/layout.h"

sn_status sn__segment_softmax_cpu(const sn__exec *e);
sn_status sn__segment_softmax_grad_cpu(const sn__exec *e);

#endif
