/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/ui.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BAR_WIDTH = 24 };
static const double bar_every_s = 0.1, line_every_s = 5;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void ui_init(ui_state *ui, bool json) {
  memset(ui, 0, sizeof *ui);
  ui->report = json ? stderr : stdout;
  ui->bar = isatty(STDERR_FILENO) == 1;
}

static void clear_bar(const ui_state *ui) {
  if (ui->active && ui->bar) fputs("\r\033[K", stderr);
}

void ui_line(ui_state *ui, const char *format, ...) {
  clear_bar(ui);
  va_list arguments;
  va_start(arguments, format);
  vfprintf(ui->report, format, arguments);
  va_end(arguments);
  fputc('\n', ui->report);
  fflush(ui->report); /* lines of a run that is watched through a pipe come as they are made */
}

/* ---- progress ------------------------------------------------------------------------------- */

void ui_progress_begin(ui_state *ui, const char *title, int64_t total, const char *unit) {
  ui->title = title;
  ui->unit = unit;
  ui->total = total;
  ui->done = 0;
  ui->began = now();
  ui->shown = ui->bar ? 0 : ui->began;
  ui->active = true;
}

static void put_progress(const ui_state *ui, FILE *out, double t, const char *note) {
  double spent = t - ui->began, rate = spent > 0 ? (double)ui->done / spent : 0;
  double part = ui->total > 0 ? (double)ui->done / (double)ui->total : 0;
  char words[UI_WORDS], left[UI_WORDS];
  fprintf(out, "%s ", ui->title);
  if (ui->bar && ui->total > 0) {
    int full = (int)(part * BAR_WIDTH);
    fprintf(out, "[%.*s%*s] ", full < BAR_WIDTH ? full : BAR_WIDTH, "########################",
            full < BAR_WIDTH ? BAR_WIDTH - full : 0, "");
  }
  if (ui->total > 0)
    fprintf(out, "%lld/%lld", (long long)ui->done, (long long)ui->total);
  else
    fprintf(out, "%lld", (long long)ui->done);
  fprintf(out, " %s, %s", ui->unit, ui_rate(rate, "", words));
  fprintf(out, "/s");
  if (ui->total > 0 && rate > 0)
    fprintf(out, ", %s left", ui_clock((double)(ui->total - ui->done) / rate, left));
  if (note != NULL) fprintf(out, ", %s", note);
}

void ui_progress(ui_state *ui, int64_t done, const char *note) {
  double t = now();
  ui->done = done;
  if (!ui->active || t - ui->shown < (ui->bar ? bar_every_s : line_every_s)) return;
  ui->shown = t;
  clear_bar(ui);
  put_progress(ui, ui->bar ? stderr : ui->report, t, note);
  if (ui->bar)
    fflush(stderr);
  else {
    fputc('\n', ui->report);
    fflush(ui->report);
  }
}

void ui_progress_end(ui_state *ui) {
  clear_bar(ui);
  ui->active = false;
}

/* ---- words ---------------------------------------------------------------------------------- */

const char *ui_bytes(double bytes, char out[UI_WORDS]) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t u = 0;
  while (bytes >= 1024 && u + 1 < sizeof units / sizeof *units) {
    bytes /= 1024;
    u++;
  }
  snprintf(out, UI_WORDS, u == 0 || bytes >= 100 ? "%.0f %s" : "%.1f %s", bytes, units[u]);
  return out;
}

const char *ui_seconds(double seconds, char out[UI_WORDS]) {
  if (seconds >= 1)
    snprintf(out, UI_WORDS, "%.2f s", seconds);
  else if (seconds >= 1e-3)
    snprintf(out, UI_WORDS, "%.2f ms", seconds * 1e3);
  else if (seconds >= 1e-6)
    snprintf(out, UI_WORDS, "%.2f us", seconds * 1e6);
  else
    snprintf(out, UI_WORDS, "%.0f ns", seconds * 1e9);
  return out;
}

const char *ui_clock(double seconds, char out[UI_WORDS]) {
  if (!(seconds >= 0 && seconds < 1e9)) seconds = 0;
  long long s = (long long)(seconds + 0.5);
  if (s >= 3600)
    snprintf(out, UI_WORDS, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
  else
    snprintf(out, UI_WORDS, "%lld:%02lld", s / 60, s % 60);
  return out;
}

const char *ui_rate(double value, const char *unit, char out[UI_WORDS]) {
  static const char *const units[] = {"", "k", "M", "G", "T", "P"};
  size_t u = 0;
  while (fabs(value) >= 1000 && u + 1 < sizeof units / sizeof *units) {
    value /= 1000;
    u++;
  }
  snprintf(out, UI_WORDS, "%.3g%s%s%s", value, u > 0 || *unit != '\0' ? " " : "", units[u], unit);
  return out;
}
