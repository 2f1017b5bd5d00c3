/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/stop.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t asked;
static bool obeyed;
static struct sigaction interrupt_before, terminate_before;

static void on_signal(int signal) {
  asked = signal;
}

void stop_install(void) {
  /* RESETHAND: a second signal of the kind finds the default again. */
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &interrupt_before);
  sigaction(SIGTERM, &action, &terminate_before);
  struct sigaction ignore = {.sa_handler = SIG_IGN};
  sigemptyset(&ignore.sa_mask);
  sigaction(SIGPIPE, &ignore, NULL);
}

void stop_at_once(void) {
  sigaction(SIGINT, &interrupt_before, NULL);
  sigaction(SIGTERM, &terminate_before, NULL);
  if (asked != 0) raise(asked);
}

int stop_signal(void) {
  return asked;
}

void stop_obeyed(void) {
  obeyed = true;
}

int stop_exit_code(int code) {
  return obeyed && asked != 0 && code == 0 ? 128 + asked : code;
}
