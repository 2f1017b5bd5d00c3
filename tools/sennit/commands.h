/* SPDX-License-Identifier: Apache-2.0 */
/* Every command of sennit with its options, and the functions that run them. */
#ifndef SN_TOOLS_SENNIT_COMMANDS_H
#define SN_TOOLS_SENNIT_COMMANDS_H

#include "tools/sennit/args.h"

/* In the order of the help; those without `run` are not in this version yet. */
extern const arg_command *const sn__commands[];
extern const size_t sn__command_count;

sn_status cmd_bench(const arg_set *args);
sn_status cmd_debug(const arg_set *args);
sn_status cmd_devices(const arg_set *args);
sn_status cmd_eval(const arg_set *args);
sn_status cmd_export(const arg_set *args);
sn_status cmd_init(const arg_set *args);
sn_status cmd_inspect(const arg_set *args);
sn_status cmd_place(const arg_set *args);
sn_status cmd_plan(const arg_set *args);
sn_status cmd_predict(const arg_set *args);
sn_status cmd_train(const arg_set *args);

#endif
