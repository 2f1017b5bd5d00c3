/* SPDX-License-Identifier: Apache-2.0 */
/* sennit plan: what train would do with the same words, without doing it. */
#include "tools/sennit/commands.h"
#include "tools/sennit/plan_report.h"
#include "tools/sennit/stop.h"
#include "tools/sennit/task.h"

static sn_status report(const arg_set *args, ui_state *ui, const sn_trainer *trainer,
                        const costs_figures *costs, const plan_insight *insight) {
  const sn_placement *placement = sn_trainer_placement(trainer);
  const sn_plan *plan = sn_trainer_plan(trainer);
  const char *dot = args_text(args, "--dot");
  if (dot != NULL) SN_TRY(plan_write_dot(dot, placement, plan));
  const char *save = args_text(args, "--save-placement");
  if (save != NULL) SN_TRY(pins_save(save, placement));
  const char *html = args_text(args, "--html");
  if (html != NULL) SN_TRY(plan_write_html(html, placement, plan, costs, insight));
  if (args_given(args, "--json")) return plan_print_json(stdout, placement, plan, costs, insight);
  plan_show(ui, placement, plan, costs, insight);
  if (dot != NULL) ui_line(ui, "the placed graph is in %s: dot -Tsvg %s -o plan.svg", dot, dot);
  if (html != NULL) ui_line(ui, "the page is %s: open it in a browser", html);
  return SN_OK;
}

static sn_status make(const arg_set *args, ui_state *ui, task *t) {
  SN_TRY(task_begin(args, t));
  SN_TRY(task_open(t));
  SN_TRY(task_prepare(t, NULL));
  SN_TRY(task_build(t));
  costs_figures costs;
  SN_TRY(costs_take(t, ui, &costs));
  sn_trainer *trainer = NULL;
  SN_TRY(sn_trainer_create(t->graph, &t->options, &trainer));
  plan_insight insight;
  sn_status status = plan_insight_make(t, trainer, &insight);
  if (status == SN_OK) status = report(args, ui, trainer, &costs, &insight);
  sn_trainer_free(trainer);
  return status;
}

sn_status cmd_plan(const arg_set *args) {
  stop_at_once();
  ui_state ui;
  ui_init(&ui, args_given(args, "--json"));
  task t;
  sn_status status = make(args, &ui, &t);
  task_free(&t);
  return status;
}
