/* SPDX-License-Identifier: Apache-2.0 */
/* Options structs, and how they grow without breaking callers that were built before they did.
 *
 * An options struct begins with its own size, which the macros of the builders fill in and
 * everybody else does by hand: {.struct_size = sizeof o, ...}. Zero is always the default. The size
 * says which version of the struct the caller was built with: fields that came later are taken as
 * zero, and fields that this library does not know must be zero. New fields are only added at the
 * end, never in padding. An options struct that lies within another counts as part of it: its own
 * struct_size is not looked at. It would push what follows it, so from version 1.0 on a struct that
 * lies within another (sn_optimizer_options and its schedule, sn_place_options) never grows: what
 * it lacks goes to the end of the outermost one, or into a struct that is pointed to. */
#ifndef SN_CORE_OPTIONS_H
#define SN_CORE_OPTIONS_H

#include "core/status.h"

SN_BEGIN_DECLS

/* The first field of every options struct. */
#define SN_OPTIONS_HEAD size_t struct_size

/* Writes the caller's options as a struct of `size` bytes, as the calling code knows it, to
 * out_options. NULL stands for all defaults. `what` names the call in messages. INVALID:
 * struct_size is not set; UNSUPPORTED: a field is set that only a newer sennit knows. */
SN_API SN_MUST_USE sn_status sn_options_read(const void *options, size_t size, const char *what,
                                             void *out_options);

SN_END_DECLS

#endif
