/* SPDX-License-Identifier: MIT */
/* Copies of rectangles, in pieces that memcpy or one loop can take. Measured in GB/s of one core (Sapphire
   Rapids, two cores in a VM, 2026-11-21), from a ring in the last-level cache to a matrix of 512 MiB, for
   columns of 256 B, 1 KiB and 4 KiB with twice that as ld, and for a matrix without gaps:
   - memcpy: 4.9 4.7 8.8 10.2; prefetched: 7.6 7.9 10.4 10.8; streaming stores: 15 to 16 in all four;
   - adding: 5.7 6.2 8.1 9.2; prefetched: 7.5 7.6 9.9 10.7.
   If columns begin 4 bytes into a cache line: prefetched 6.7 7.9 9.3 10.5, streaming 6.0 10.2 14.4 15.5 (3.1
   3.5 9.2 if no line is prefetched). */
#include "src/copy/copy2d.h"

#include <emmintrin.h>
#include <string.h>

#include "dispatch/matrix.h"
#include "dispatch/numbers.h"
#include "src/copy/mirror.h"

/* Other steps and distances (256 to 1024, 512 to 4096) are within 5 % of these. */
enum { STEP = 512, AHEAD = 4096, LINE = 64, BLOCK = 16384 };

/* A program's numbers may lie at any address, so gcc must not peel a loop up to an alignment that never
   comes. The product and the sum are rounded one after the other (the build has -ffp-contract=off), as in a
   kernel's epilogue of two steps. */
#define TYPE(letter, type, bytes, flops, kind)                                                              \
    typedef type loose_##letter __attribute__((aligned(1), may_alias));                                     \
    static void add_##letter(const loose_##letter *restrict from, loose_##letter *restrict to, int64_t count,\
                             type beta)                                                                     \
    {                                                                                                       \
        if (beta == 1)                                                                                      \
            for (int64_t i = 0; i < count; i++) to[i] = from[i] + to[i];                                    \
        else                                                                                                \
            for (int64_t i = 0; i < count; i++) to[i] = from[i] + GPB_PRODUCT_##kind(beta, to[i]);          \
    }
#include "dispatch/type.def"
#undef TYPE

static void add(const gpb_copy2d_job *r, const void *from, void *to, int64_t count)
{
    const bool pairs = r->hermitian && gpb_type_is_complex(r->type);     /* of real numbers: beta is real */
    if (pairs) count *= 2;
    switch (pairs ? gpb_type_real(r->type) : r->type) {
#define TYPE(letter, type, bytes, flops, kind) \
    case GPB_TYPE_##letter: add_##letter(from, to, count, (type)r->beta); break;
#include "dispatch/type.def"
#undef TYPE
    default: break;
    }
}

/* memcpy with streaming stores: whole cache lines of the target are neither read first nor kept in the
   caches. */
static void copy_streaming(const char *from, char *to, size_t bytes)
{
    size_t head = -(uintptr_t)to % LINE;
    if (head > bytes) head = bytes;
    memcpy(to, from, head);
    for (from += head, to += head, bytes -= head; bytes >= LINE; from += LINE, to += LINE, bytes -= LINE) {
        __m128i line[LINE / sizeof(__m128i)];
        memcpy(line, from, sizeof line);
        for (size_t i = 0; i < LINE / sizeof *line; i++) _mm_stream_si128((__m128i *)(void *)to + i, line[i]);
    }
    memcpy(to, from, bytes);
}

/* memcpy that moves the target out of this core's own caches into the last level, if the processor takes the
   hint. */
static void copy_demoted(const char *from, char *to, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += BLOCK) {
        const size_t block = bytes - at < BLOCK ? bytes - at : BLOCK;
        memcpy(to + at, from + at, block);
        for (size_t line = 0; line < block; line += LINE)
            __asm__ volatile("cldemote %0" : : "m"(to[at + line]));      /* no-op on others */
    }
}

/* A position in the rectangle. The order is down each column in steps, column after column. */
typedef struct place {
    int64_t row, col;
} place;

static void advance(const gpb_copy2d_job *r, int64_t step, place *p)
{
    p->row += step;
    if (p->row < r->rows) return;
    p->row = 0;
    p->col++;
}

/* Prefetches the lines that the step at this position will wait for: all of them, or with streaming stores
   only the lines that the step fills partly.
   always_inline, because gcc 12 finds that a function of prefetches has no effect, and leaves out its
   calls. */
static inline __attribute__((always_inline))
void prefetch(const gpb_copy2d_job *r, int64_t step, const place *p)
{
    if (p->col >= r->cols) return;
    const char *at = r->to + (size_t)(p->col * r->ld_to + p->row) * r->element;
    const char *end = at + (size_t)min(step, r->rows - p->row) * r->element;
    if (r->target != GPB_STORE_STREAMING) {
        for (; at < end; at += LINE) __builtin_prefetch(at, 1);
    } else {
        if ((uintptr_t)at % LINE) __builtin_prefetch(at, 1);
        if ((uintptr_t)end % LINE) __builtin_prefetch(end - 1, 1);
    }
}

static void run(const gpb_copy2d_job *r, int64_t step, const place *p)
{
    const int64_t rows = min(step, r->rows - p->row);
    const gpb_matrix_rows here = gpb_matrix_rows_of(r->uplo, r->row0 + p->row, rows, r->col0 + p->col);
    const int64_t first = p->row + here.first, last = p->row + here.last;
    if (first == last) return;
    const char *from = r->from + (size_t)(p->col * r->ld_from + first) * r->element;
    char *to = r->to + (size_t)(p->col * r->ld_to + first) * r->element;
    const size_t bytes = (size_t)(last - first) * r->element;
    const int64_t diagonal = r->col0 + p->col - r->row0;
    char *real = r->hermitian && diagonal >= first && diagonal < last
                 ? r->to + (size_t)(p->col * r->ld_to + diagonal) * r->element : NULL;
    if (r->adds) add(r, from, to, last - first);
    else if (r->target == GPB_STORE_STREAMING) copy_streaming(from, to, bytes);
    else if (r->target == GPB_STORE_DEMOTED) copy_demoted(from, to, bytes);
    else memcpy(to, from, bytes);
    if (real) gpb_type_make_real(r->type, real);
}

void gpb_copy2d(const gpb_copy2d_job *rectangle)
{
    gpb_copy2d_job r = *rectangle;
    if (r.rows <= 0 || r.cols <= 0) return;
    if (r.mirrors) {
        gpb_mirror(&r);
        return;
    }
    if (r.adds) r.target = GPB_STORE_PREFETCHED;
    if (r.uplo == 'G' && r.ld_from == r.rows && r.ld_to == r.rows) {
        r.rows *= r.cols;
        r.cols = 1;
    }
    const bool prefetches = r.target == GPB_STORE_PREFETCHED || r.target == GPB_STORE_STREAMING;
    const int64_t step = r.target == GPB_STORE_PREFETCHED ? STEP / (int64_t)r.element : r.rows;
    place scout = { 0, 0 };
    for (size_t bytes = 0; prefetches && bytes < AHEAD && scout.col < r.cols; advance(&r, step, &scout)) {
        prefetch(&r, step, &scout);
        bytes += (size_t)min(step, r.rows - scout.row) * r.element;
    }
    for (place now = { 0, 0 }; now.col < r.cols; advance(&r, step, &now)) {
        if (prefetches) {
            prefetch(&r, step, &scout);
            advance(&r, step, &scout);
        }
        run(&r, step, &now);
    }
    /* Before the job is marked done, because streaming stores keep no order. */
    if (r.target == GPB_STORE_STREAMING) _mm_sfence();
}
