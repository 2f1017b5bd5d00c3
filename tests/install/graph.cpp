// SPDX-License-Identifier: Apache-2.0
// The public API from C++: options are plain structs, so every macro has a function behind it.
#include <sennit.h>

#include <cmath>
#include <cstdio>

static int fail(sn_status status) {
  std::fprintf(stderr, "%s\n", sn_status_message(status));
  sn_status_free(status);
  return 1;
}

static sn_value dense(sn_graph *g, sn_value x, int64_t units, sn_activation activation) {
  sn_dense_options o = {};
  o.struct_size = sizeof o;
  o.units = units;
  o.activation = activation;
  return sn_dense_opt(g, x, &o);
}

int main() {
  enum { rows = 8 };
  sn_graph *g = nullptr;
  if (sn_status s = sn_graph_create(&g)) return fail(s);
  sn_value x = sn_input(g, "x", SN_F32, 2), y = sn_input(g, "y", SN_F32, 1);
  sn_module_begin(g, "net");
  sn_value z = dense(g, dense(g, x, 8, SN_TANH), 1, SN_LINEAR);
  sn_module_end(g);
  sn_output(g, "y", z);
  sn_loss_options loss_options = {};
  loss_options.struct_size = sizeof loss_options;
  loss_options.name = "y";
  sn_squared_loss_opt(g, z, y, &loss_options);
  if (sn_status s = sn_graph_status(g)) return fail(s);

  sn_trainer_options o = {};
  o.struct_size = sizeof o;
  o.devices = "cpu*2";
  o.threads = 2;
  o.optimizer.struct_size = sizeof o.optimizer;
  o.optimizer.kind = SN_ADAM;
  o.optimizer.learning_rate = 0.05;
  sn_trainer *t = nullptr;
  if (sn_status s = sn_trainer_create(g, &o, &t)) return fail(s);
  float data[rows * 2], labels[rows];
  for (int r = 0; r < rows; r++) {
    data[r * 2] = float(r) / rows;
    data[r * 2 + 1] = 1 - data[r * 2];
    labels[r] = data[r * 2] * 2 - 1;
  }
  sn_feed feeds[2] = {};
  feeds[0].value = x;
  feeds[0].data = data;
  feeds[1].value = y;
  feeds[1].data = labels;
  feeds[0].rows = feeds[1].rows = rows;
  double first = 0, last = 0;
  for (int i = 0; i < 200; i++) {
    if (sn_status s = sn_trainer_step(t, feeds, 2, &last)) return fail(s);
    if (i == 0) first = last;
  }
  std::printf("loss %.6f, then %.6f\n", first, last);
  sn_trainer_free(t);
  sn_graph_free(g);
  return std::isfinite(last) && last < first * 0.05 ? 0 : 1;
}
