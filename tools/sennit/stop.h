/* SPDX-License-Identifier: Apache-2.0 */
/* SIGINT and SIGTERM: the first asks long work to end after the step in hand; the second ends the
 * process as it would have without us. */
#ifndef SN_TOOLS_SENNIT_STOP_H
#define SN_TOOLS_SENNIT_STOP_H

#include <stdbool.h>

/* Also ignores SIGPIPE, so that a closed pipe is an error message, not a silent death. */
void stop_install(void);
/* For work that has no use for an end in good order: signals do again what they did before, one
 * that has come by now too. */
void stop_at_once(void);
/* The signal that asked, or 0. Long work looks here between steps. */
int stop_signal(void);
/* Long work says that it ended early because it was asked to: the exit code becomes 130 or 143. */
void stop_obeyed(void);
/* The exit code of a command that would otherwise exit with `code`. */
int stop_exit_code(int code);

#endif
