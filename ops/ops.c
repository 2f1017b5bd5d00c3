/* SPDX-License-Identifier: Apache-2.0 */
/* The table that core receives at link time. */
#include "core/op.h"

#define SN_OP(name) extern const sn_op_def sn__op_##name;
#include "ops/ops.def"
#undef SN_OP

const sn_op_def *const sn__op_table[] = {
#define SN_OP(name) &sn__op_##name,
#include "ops/ops.def"
#undef SN_OP
    NULL,
};

const int sn__op_count = (int)(sizeof sn__op_table / sizeof *sn__op_table) - 1;
