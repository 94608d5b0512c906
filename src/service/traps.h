/* SPDX-License-Identifier: MIT */
/* Programs that trap floating-point exceptions (feenableexcept, -ffpe-trap) mean their own arithmetic. Ours,
   such as seconds from nanoseconds, is inexact all the time. So while it runs nothing traps, and the caller's
   modes, with the flags that they had, come back before the host's BLAS is called and at the return.
   Arithmetic beside these two in one function might be moved past them by the compiler, so it is in functions
   that are not inlined. */
#ifndef GPB_TRAPS_H
#define GPB_TRAPS_H

enum { GPB_TRAPS_MASKED = 0x1f80 };

typedef struct gpb_traps {
    unsigned mode;               /* MXCSR */
    unsigned x87[7];             /* its environment, if something is trapped: VERIFY sums in long double */
} gpb_traps;

static inline unsigned gpb_traps_mode(void) { return __builtin_ia32_stmxcsr(); }

static inline int gpb_traps_any(unsigned mode)
{
    return __builtin_expect((mode & GPB_TRAPS_MASKED) != GPB_TRAPS_MASKED, 0);
}

/* If nothing is trapped, this is one comparison. fnstenv also masks all exceptions of x87. */
static inline void gpb_traps_hold(gpb_traps *traps)
{
    traps->mode = gpb_traps_mode();
    if (!gpb_traps_any(traps->mode)) return;
    __asm__ volatile("fnstenv %0" : "=m"(traps->x87));
    __builtin_ia32_ldmxcsr(traps->mode | GPB_TRAPS_MASKED);
}

static inline void gpb_traps_release(const gpb_traps *traps)
{
    if (!gpb_traps_any(traps->mode)) return;
    __asm__ volatile("fldenv %0" : : "m"(traps->x87));
    __builtin_ia32_ldmxcsr(traps->mode);
}

#endif
