/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine's arithmetic can do, measured now: register-only fused multiply-adds. */
#ifndef SN_TOOLS_SENNIT_ROOFLINE_H
#define SN_TOOLS_SENNIT_ROOFLINE_H

/* GFLOP/s in f32 of `threads` threads together, the best of a few short runs. */
double roofline_gflops(int threads);
/* The same of bf16 products: tile or pair multiply-adds, f32's where the machine has neither. */
double roofline_bf16_gflops(int threads);

/* The best of a few runs on each of so many threads at once, together. `run` gives the operations
 * it did, and a number that depends on them. */
double roofline_of(double (*run)(float *kept), int threads);

#endif
