/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SN_OPS_SOFTMAX_SOFTMAX_H
#define SN_OPS_SOFTMAX_SOFTMAX_H

#include "ops/common.h"

sn_status sn__softmax_cpu(const sn__exec *e);
sn_status sn__softmax_grad_cpu(const sn__exec *e);
sn_status sn__log_softmax_cpu(const sn__exec *e);
sn_status sn__log_softmax_grad_cpu(const sn__exec *e);

#endif
