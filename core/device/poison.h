/* SPDX-License-Identifier: Apache-2.0 */
/* Marks memory that nobody may touch: a report from AddressSanitizer builds, nothing elsewhere. */
#ifndef SN_CORE_DEVICE_POISON_H
#define SN_CORE_DEVICE_POISON_H

#if defined(__SANITIZE_ADDRESS__)
#define SN__ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SN__ASAN 1
#endif
#endif

#ifdef SN__ASAN
#include <sanitizer/asan_interface.h>
#define sn__poison(pointer, bytes)   ASAN_POISON_MEMORY_REGION(pointer, bytes)
#define sn__unpoison(pointer, bytes) ASAN_UNPOISON_MEMORY_REGION(pointer, bytes)
#else
#define sn__poison(pointer, bytes)   ((void)(pointer), (void)(bytes))
#define sn__unpoison(pointer, bytes) ((void)(pointer), (void)(bytes))
#endif

#endif
