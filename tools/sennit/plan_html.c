/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sennit/plan_html.h"

#include <errno.h>
#include <string.h>

void html_text(FILE *f, const char *text) {
  for (; *text != '\0'; text++) {
    switch (*text) {
    case '<': fputs("&lt;", f); break;
    case '>': fputs("&gt;", f); break;
    case '&': fputs("&amp;", f); break;
    case '"': fputs("&quot;", f); break;
    default: fputc(*text, f);
    }
  }
}

static double ms(int64_t ns) {
  return 1e-6 * (double)ns;
}

/* ---- the look -------------------------------------------------------------------------------- */

static const char style[] =
    ":root{color-scheme:light dark;--bg:#fbfbfa;--card:#fff;--ink:#1d2125;--soft:#5c6670;"
    "--line:#dfe3e6;--edge:#8a949e;--copy:#b3261e;"
    "--d0:#3b78c2;--d1:#d9822b;--d2:#4a9b5f;--d3:#a05fb8;--d4:#c2506b;--d5:#2f9aa0;--d6:#8b7a2e;"
    "--d7:#6f7680}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#15181b;--card:#1d2125;--ink:#e8eaec;"
    "--soft:#9aa5b0;--line:#343a40;--edge:#77818b;--copy:#ff8a80;"
    "--d0:#5b96de;--d1:#e39a4d;--d2:#66b87c;--d3:#b982cf;--d4:#dc7790;--d5:#4fb5bb;--d6:#ab9a4c;"
    "--d7:#8f979f}}\n"
    "*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);"
    "font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}"
    "main{max-width:1180px;margin:0 auto;padding:24px 20px 60px}"
    "h1{font-size:24px;margin:0 0 4px}h2{font-size:17px;margin:34px 0 8px}"
    "p{margin:6px 0;max-width:80ch}.soft{color:var(--soft)}\n"
    ".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:10px;"
    "margin:18px 0}.cards div{background:var(--card);border:1px solid var(--line);"
    "border-radius:8px;padding:10px 14px}.cards b{display:block;font-size:20px;font-weight:600;"
    "font-variant-numeric:tabular-nums}.cards span{color:var(--soft);font-size:13px}\n"
    ".box{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:12px;"
    "overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:14px}"
    "th{text-align:left;font-weight:600;color:var(--soft);font-size:13px}"
    "th,td{padding:5px 12px 5px 0;border-bottom:1px solid var(--line);vertical-align:top}"
    "tr:last-child td{border-bottom:0}.n{text-align:right;white-space:nowrap;"
    "font-variant-numeric:tabular-nums}td.w{white-space:nowrap}\n"
    ".key{display:flex;flex-wrap:wrap;gap:4px 16px;margin:0 0 10px;font-size:13px;"
    "color:var(--soft)}.key i{display:inline-block;width:12px;height:12px;border-radius:3px;"
    "margin-right:6px;vertical-align:-1px}"
    ".dot{display:inline-block;width:10px;height:10px;border-radius:3px;margin-right:6px}\n"
    ".q{display:grid;grid-template-columns:110px 1fr;gap:2px 8px;align-items:center;"
    "font-size:13px;min-width:0}.q span{color:var(--soft);white-space:nowrap}"
    ".q svg{width:100%;height:26px;display:block;background:color-mix(in srgb,var(--line) 45%,"
    "transparent);border-radius:3px}.q svg.mem{height:90px}"
    ".axis{display:flex;justify-content:space-between;color:var(--soft);font-size:12px;"
    "font-variant-numeric:tabular-nums}\n"
    "@media(max-width:560px){main{padding:16px 12px 40px}h1{font-size:21px}"
    ".q{grid-template-columns:1fr}.q span{margin-top:6px}.q em{display:none}"
    ".cards{grid-template-columns:1fr 1fr}th,td{padding-right:10px}}\n"
    "svg text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;fill:var(--ink)}"
    "svg .t{font-weight:600}svg .s{fill:var(--soft);font-size:11px}"
    "svg .b{fill:var(--card)}svg .e{fill:none;stroke:var(--edge);stroke-width:1.4}"
    "svg .c{fill:none;stroke:var(--copy);stroke-width:2;stroke-dasharray:6 4}"
    "svg .cl{fill:var(--copy);font-size:11px;paint-order:stroke;stroke:var(--card);"
    "stroke-width:6px;stroke-linejoin:round}"
    "svg .bw{opacity:.62}svg .up{opacity:.36}\n";

static void put_colours(FILE *f) {
  for (int d = 0; d < HTML_COLOURS; d++)
    fprintf(f,
            "svg .d%d{fill:var(--d%d)}svg .o%d{fill:color-mix(in srgb,var(--d%d) 16%%,var(--card))"
            ";stroke:var(--d%d);stroke-width:1.6}i.d%d,.dot.d%d{background:var(--d%d)}\n",
            d, d, d, d, d, d, d, d);
}

static void put_key(FILE *f, const sn_plan *plan) {
  fputs("<div class=\"key\">", f);
  for (size_t d = 0; d < sn_plan_device_count(plan); d++) {
    fprintf(f, "<span><i class=\"d%d\"></i>", html_colour((int)d));
    html_text(f, sn_plan_device_at(plan, d).name);
    fputs("</span>", f);
  }
  fputs("</div>\n", f);
}

/* ---- figures --------------------------------------------------------------------------------- */

static void put_card(FILE *f, const char *figure, const char *words) {
  fputs("<div><b>", f);
  html_text(f, figure);
  fputs("</b><span>", f);
  html_text(f, words);
  fputs("</span></div>", f);
}

static void put_cards(FILE *f, const sn_placement *placement, const costs_figures *costs) {
  const sn_placement_figures *p = sn_placement_figures_of(placement);
  const sn_topology *topology = sn_placement_topology(placement);
  char figure[64], words[128], bytes[UI_WORDS];
  fputs("<div class=\"cards\">", f);
  snprintf(figure, sizeof figure, "%.3f ms", ms(p->predicted_step_ns));
  put_card(f, figure, "predicted step, largest batch");
  if (costs->steps > 0) {
    snprintf(figure, sizeof figure, "%.3f ms", costs->measured_ms);
    snprintf(words, sizeof words, "measured, median of %lld; predicted for those %.3f ms",
             (long long)costs->steps, costs->predicted_ms);
    put_card(f, figure, words);
  }
  if (costs->alone_measured_ms > 0) {
    snprintf(figure, sizeof figure, "%.3f ms", costs->alone_measured_ms);
    snprintf(words, sizeof words, "measured on %s with the others idle", costs->alone_device);
    put_card(f, figure, words);
  }
  snprintf(figure, sizeof figure, "%.3f ms", ms(p->lower_bound_ns));
  snprintf(words, sizeof words, "no plan is faster: the step is %.2f times this bound",
           p->lower_bound_ns > 0 ? (double)p->predicted_step_ns / (double)p->lower_bound_ns : 1.0);
  put_card(f, figure, words);
  if (p->one_device >= 0) {
    snprintf(figure, sizeof figure, "%.3f ms", ms(p->one_device_ns));
    snprintf(words, sizeof words, "on %s alone", topology->devices[p->one_device].name);
    put_card(f, figure, words);
  } else {
    put_card(f, "no device", "holds the model alone");
  }
  snprintf(figure, sizeof figure, "%d of %d", p->devices_used, topology->n_devices);
  put_card(f, figure, "devices used");
  snprintf(figure, sizeof figure, "%s", ui_bytes((double)p->copy_bytes, bytes));
  snprintf(words, sizeof words, "copied a step, in %.3f ms", ms(p->copy_ns));
  put_card(f, figure, words);
  fputs("</div>\n", f);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void put_device(FILE *f, const char *name, int device) {
  fprintf(f, "<td class=\"w\"><span class=\"dot d%d\"></span>", html_colour(device));
  html_text(f, name);
  fputs("</td>", f);
}

static void put_modules(FILE *f, const sn_placement *placement) {
  const sn_topology *topology = sn_placement_topology(placement);
  fputs("<h2>Modules</h2>\n<div class=\"box\"><table><tr><th>module</th><th>device</th>"
        "<th class=\"n\">time</th><th class=\"n\">variables</th><th>cause</th></tr>\n",
        f);
  for (size_t i = 0; i < sn_placement_module_count(placement); i++) {
    const sn_placement_module *m = sn_placement_module_at(placement, i);
    char bytes[UI_WORDS];
    if (*m->path == '\0' && m->busy_ns == 0 && m->bytes == 0) continue;
    fputs("<tr><td class=\"w\">", f);
    html_text(f, *m->path == '\0' ? "(no module)" : m->path);
    fputs("</td>", f);
    put_device(f, topology->devices[m->device].name, m->device);
    fprintf(f, "<td class=\"n\">%.3f ms</td><td class=\"n\">%s</td><td>", ms(m->busy_ns),
            ui_bytes((double)m->bytes, bytes));
    html_text(f, m->cause);
    fputs("</td></tr>\n", f);
  }
  fputs("</table></div>\n", f);
}

static void put_copies(FILE *f, const sn_plan *plan) {
  size_t n = sn_plan_copy_count(plan);
  fputs("<h2>Copies</h2>\n", f);
  if (n == 0) {
    fputs("<p class=\"soft\">None: nothing that one device makes is read on another.</p>\n", f);
    return;
  }
  fputs("<div class=\"box\"><table><tr><th>value</th><th>from</th><th>to</th>"
        "<th class=\"n\">bytes</th><th class=\"n\">time</th><th>path</th><th>phase</th></tr>\n",
        f);
  for (size_t i = 0; i < n; i++) {
    sn_plan_copy c = sn_plan_copy_at(plan, i);
    char bytes[UI_WORDS];
    fputs("<tr><td class=\"w\">", f);
    html_text(f, c.value);
    fputs("</td>", f);
    put_device(f, sn_plan_device_at(plan, (size_t)c.from).name, c.from);
    put_device(f, sn_plan_device_at(plan, (size_t)c.to).name, c.to);
    fprintf(f, "<td class=\"n\">%s</td><td class=\"n\">%.3f ms</td><td>%s</td><td>%s</td></tr>\n",
            ui_bytes((double)c.bytes, bytes), ms(c.ns),
            c.path == SN_LINK_DIRECT ? "direct" : "staged", c.phase);
  }
  fputs("</table></div>\n", f);
}

static void put_costs(FILE *f, const sn_plan *plan) {
  size_t n[SN_COST_SOURCE_COUNT];
  sn_status status = sn_plan_cost_sources(plan, n);
  if (status != SN_OK) {
    sn_status_free(status);
    return;
  }
  fprintf(f,
          "<p class=\"soft\">Costs of %zu nodes: %zu measured, %zu scaled from other shapes, %zu "
          "calibrated, %zu from described rates.</p>\n",
          sn_plan_node_count(plan), n[SN_COST_MEASURED], n[SN_COST_SCALED], n[SN_COST_CALIBRATED],
          n[SN_COST_ANALYTIC]);
}

/* ---- the page -------------------------------------------------------------------------------- */

static sn_status put_page(FILE *f, const sn_placement *placement, const sn_plan *plan,
                          const costs_figures *costs, const plan_insight *insight) {
  fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
        "<link rel=\"icon\" href=\"data:,\">\n<title>sennit plan</title>\n<style>\n",
        f);
  fputs(style, f);
  put_colours(f);
  fputs("</style></head><body><main>\n<h1>Where each module runs</h1>\n<p>", f);
  html_text(f, sn_placement_sentence(placement));
  fputs("</p>\n", f);
  put_cards(f, placement, costs);
  fputs("<p><b>What limits the step:</b> ", f);
  html_text(f, insight->limit);
  fputs(".</p>\n<p><b>One more device:</b> ", f);
  html_text(f, insight->more);
  fputs(".</p>\n", f);
  put_costs(f, plan);
  fputs("<h2>Graph</h2>\n", f);
  put_key(f, plan);
  SN_TRY(html_graph(f, plan));
  fputs("<h2>Timeline of the step</h2>\n", f);
  put_key(f, plan);
  SN_TRY(html_timeline(f, plan));
  fputs("<h2>Memory over the step</h2>\n", f);
  SN_TRY(html_memory(f, plan));
  put_modules(f, placement);
  put_copies(f, plan);
  fputs("</main></body></html>\n", f);
  return SN_OK;
}

sn_status plan_write_html(const char *path, const sn_placement *placement, const sn_plan *plan,
                          const costs_figures *costs, const plan_insight *insight) {
  FILE *f = fopen(path, "w");
  if (f == NULL) return sn_status_make(SN_CODE_IO, "%s: cannot write: %s", path, strerror(errno));
  sn_status status = put_page(f, placement, plan, costs, insight);
  bool wrote = ferror(f) == 0;
  wrote = fclose(f) == 0 && wrote;
  if (status == SN_OK && !wrote)
    status = sn_status_make(SN_CODE_IO, "%s: cannot write: %s", path, strerror(errno));
  return status;
}
