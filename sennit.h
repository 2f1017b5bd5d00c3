/* SPDX-License-Identifier: Apache-2.0 */
/* All of sennit: `#include <sennit.h>` with the flags of `pkg-config --cflags sennit`. */
#ifndef SENNIT_H
#define SENNIT_H

#include "core/allocator.h"
#include "core/graph.h"
#include "core/run/measure.h"
#include "core/run/session.h"
#include "core/sha256.h"
#include "core/version.h"
#include "io/checkpoint.h"
#include "io/dataset.h"
#include "io/h5_lock.h"
#include "io/inspect.h"
#include "io/instance.h"
#include "layers/layers.h"
#include "models/build.h"
#include "models/config.h"
#include "models/model.h"
#include "ops/ops.h"
#include "optim/optim.h"
#include "placement/placement.h"
#include "placement/trainer.h"

#endif
