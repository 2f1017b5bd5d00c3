/* SPDX-License-Identifier: Apache-2.0 */
/* A stem, blocks of four parallel paths, a head: the known example of branches that can be placed
 * apart.   (Szegedy et al. 2015, "Going deeper with convolutions") */
#include "layers/layers.h"
#include "models/model.h"

/* With a stem of eight times `reduce`, the 5 x 5 path alone costs about what the other three do. */
static const sn_inception_sizes sizes[] = {
    {.name = "S",
     .batch = 32,
     .side = 16,
     .channels = 3,
     .stem = 64,
     .filters = 64,
     .reduce = 8,
     .blocks = 1,
     .classes = 10},
    {.name = "M",
     .batch = 32,
     .side = 28,
     .channels = 3,
     .stem = 128,
     .filters = 128,
     .reduce = 16,
     .blocks = 1,
     .classes = 10},
    {.name = "L",
     .batch = 32,
     .side = 28,
     .channels = 3,
     .stem = 256,
     .filters = 256,
     .reduce = 32,
     .blocks = 2,
     .classes = 100},
};

const sn_inception_sizes *sn_inception_sizes_of(sn_inception_size size) {
  return size >= SN_INCEPTION_S && size <= SN_INCEPTION_L ? &sizes[size] : NULL;
}

sn_status sn_inception_build(sn_graph *g, const sn_inception_sizes *s) {
  sn_value image = sn_input(g, "image", SN_F32, s->side * s->side * s->channels);
  sn_value outcome = sn_input(g, "outcome", SN_I64, 0);

  sn_module_begin(g, "image");
  sn_value x = sn_reshape(g, image, SN_SHAPE(SN_DIM_KEEP(0), s->side, s->side, s->channels));
  x = sn_conv2d(g, x, .filters = s->stem, .kernel = {3}, .same = true, .activation = SN_RELU,
                .name = "stem");
  const int64_t path = s->filters / 4;
  for (int64_t i = 0; i < s->blocks; i++)
    x = sn_inception(g, x, .point = path, .three = path, .five = path, .pool = path,
                     .reduce_three = s->reduce, .reduce_five = s->reduce);
  x = sn_global_average_pool(g, x);
  sn_module_end(g);

  sn_module_begin(g, "outcome");
  sn_value z = sn_dense(g, x, .units = s->classes, .name = "out");
  sn_output(g, "outcome", z);
  sn_softmax_cross_entropy(g, z, outcome, .name = "outcome");
  sn_module_end(g);
  return sn_graph_status(g);
}
