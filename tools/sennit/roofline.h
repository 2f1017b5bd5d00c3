/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine's arithmetic can do, measured now: register-only fused multiply-adds. */
#ifndef SN_TOOLS_SENNIT_ROOFLINE_H
#define SN_TOOLS_SENNIT_ROOFLINE_H

/* GFLOP/s in f32 of `threads` threads together, the best of a few short runs. */
double roofline_gflops(int threads);

#endif
