/* SPDX-License-Identifier: MIT */
/* FNV-1a with 64 bits: names that are kept without being told. */
#ifndef GPB_HASH_H
#define GPB_HASH_H

#include <stddef.h>
#include <stdint.h>

#define GPB_HASH_BEGIN UINT64_C(0xcbf29ce484222325)

static inline uint64_t gpb_hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < count; i++) hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
