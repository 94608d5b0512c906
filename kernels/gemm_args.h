/* SPDX-License-Identifier: MIT */
/* The argument blocks of the kernels, one struct each, compiled by nvcc, by the host and by tests/fakecuda. A
   kernel's only parameter is its struct, passed by value. All sizes and strides are in elements, never in
   bytes. */
#ifndef GPB_GEMM_ARGS_H
#define GPB_GEMM_ARGS_H

#ifdef __CUDACC_RTC__
typedef long long int64_t;
typedef unsigned uint32_t;
typedef unsigned long long uint64_t;
#else
#include <stdint.h>
#endif

/* One member of a pointer-array batch (device addresses). */
typedef struct gpb_gemm_item {
    const void *a, *b;
    void *c;
} gpb_gemm_item;

/* C[m x n] = alpha op(A)[m x k] op(B)[k x n] + beta C, for each of `batch` members. op(A)(i,p) is a[i*rsa +
   p*csa], op(B)(p,j) is b[p*rsb + j*csb], C(i,j) is c[i + j*ldc], so a transposition is only a matter of
   strides. beta == 0: C is written and never read. k == 0: C = beta C, and A and B are not read. Nothing
   outside the m x n block of C is touched. */
typedef struct gpb_gemm_args {
    int64_t m, n, k;                       /* of SLICED kernels those of the real product (sliced.h) */
    const void *a;
    int64_t rsa, csa;
    const void *b;
    int64_t rsb, csb;
    void *c;
    int64_t ldc;
    double alpha[2], beta[2];              /* real and imaginary part; the type's alpha and beta, exactly */
    int64_t batch;                         /* >= 1; member l of blockIdx.z = l, l + gridDim.z, ... */
    /* Member l starts at a + l*stride_a and so on, unless items is set. Of slices and planes in units of 4
       bytes. */
    int64_t stride_a, stride_b, stride_c;
    const gpb_gemm_item *items;            /* NULL, or on the device `batch` triples of addresses that replace
                                              a, b, c */
    /* splits > 1: k is cut into that many parts of whole k tiles (bk). Part s of member l is stored raw,
       without alpha and beta, at partials[(l*splits + s)*m*n + i + j*m], and gpb_sreduce adds up the parts. 0
       and 1: k is not cut. Not for SLICED kernels, which cut the k of their last tiles themselves and get
       room for it in partials and counters (sliced.h), nor for RESIDUES kernels, whose residues of C lie in
       partials (residues.h). */
    int64_t splits;
    void *partials;
    uint32_t *counters;
    /* Guard words: NULL, or one for each GPB_GUARD_ROWS rows of op(A) and GPB_GUARD columns of op(B). Those
       of member l begin l * stride_guard_x words after the first member's. They give the level of a block
       (gpb_guard_level); a block of C has the higher level of its rows and its columns. A SLICED kernel
       computes the blocks at `level`, a RESIDUES kernel those at level 0, any other those at `level` or above
       (its bm divides GPB_GUARD_ROWS, its bn GPB_GUARD). */
    const uint64_t *guard_a, *guard_b;
    int64_t stride_guard_a, stride_guard_b;
    /* Never 0. One for each operand, because an operand may have been sliced by an earlier launch. */
    uint64_t epoch_a, epoch_b;
    int level;
    /* Stream-K, for kernels that can (names.h), if streamk_blocks > 0: that many first blocks of the grid
       divide the k of the first streamk_tiles tiles of C evenly, k tile by k tile and across tile boundaries.
       Each further block computes a whole tile (ffma/streamk.cuh). Then splits <= 1, k > 0, alpha != 0 and
       streamk_tiles * (k tiles) >= streamk_blocks; of MAPPED kernels streamk_tiles < 2 * streamk_blocks, and
       there is one product. partials holds 2 * streamk_blocks tiles of bm * bn
       elements. counters holds streamk_blocks words, which are zero before the launch and after it. */
    unsigned streamk_tiles, streamk_blocks;
    int conj_a, conj_b;                    /* complex types: not 0 if op(A), op(B) are conjugated */
    /* 'U', 'L': m x n is square (of SLICED kernels of complex types m is twice n), only that triangle of C is
       computed, and what lies in the other one is neither read nor written. 0: all of C. The parts of k hold
       whatever their tiles have there. Not for PADDED_C kernels, nor for those with
       WHOLE (names.h). */
    int uplo;
    int hermitian;                         /* of a triangle: as in gpb_unpack_args */
} gpb_gemm_args;

/* What a tensor copy reads, as the driver describes it: a CUtensorMap, which the kernel cannot look into. */
typedef struct gpb_tensor_map {
    uint64_t opaque[16];
} __attribute__((aligned(128))) gpb_tensor_map;

/* The argument block of MAPPED kernels. a and b are in gpb_gemm_args as ever, but are read by the maps alone,
   which are not used if k or alpha is 0. items, if there are any, give the addresses of C alone.
   The map of an operand has four dimensions: its contiguous one, the other one, lines, the members of the
   batch (one member if the stride is 0). It is of FP64, so a complex number has two places in the first. A
   copy brings GPB_MAPPED_LINE bytes (of k, or of places of a tile) times GPB_MAPPED_BOX, in a swizzle of the
   same 128 bytes. Where k is not contiguous, and the places are whole lines, the first dimension is one line
   and the third counts them, so one copy brings all of a tile's. Else there is one in the third. (A copy
   takes its producer some 90 cycles: with one for each line z's products with k contiguous in neither operand
   took 1.2 to 1.33 times as long as the others, H200.)
   Of SYR2K and HER2K there may be a second product: C = alpha (op(A) op(B) + op(B)^T op(A)^T) + beta C, where
   conj_a and conj_b are of whatever stands on the left and on the right. Then there is one member, m is n,
   k is below 2^30 (complex: 2^29), and rsa is 1 where csb is. The k tiles of the second product follow those
   of the first, of which the last may be incomplete; splits are of all of them. */
typedef struct gpb_mapped_args {
    gpb_tensor_map map[4];                 /* of op(A), op(B); of the second product: op(B)^T, op(A)^T */
    gpb_gemm_args gemm;
    int products;                          /* 1 or 2 */
    unsigned in_lines;                     /* bit x: map x has lines in its third dimension */
} gpb_mapped_args;
#define GPB_MAPPED_LINE 128
/* Lines of a copy. k is contiguous: places of a tile, or half of them if two blocks share them. Else k. */
#define GPB_MAPPED_BOX(k_contiguous, edge, sharers, element) \
    ((k_contiguous) ? (edge) / (sharers) : GPB_MAPPED_LINE / (element))
/* Whether an operand's places are whole lines, where k is not contiguous. */
#define GPB_MAPPED_IN_LINES(k_contiguous, places, element) \
    (!(k_contiguous) && (places) % (GPB_MAPPED_LINE / (element)) == 0)

#define GPB_GUARD 128
/* Rows of op(A) that share a guard word. A complex row is two rows of the slices (sliced.h). */
#define GPB_GUARD_ROWS(is_complex) ((is_complex) ? GPB_GUARD / 2 : GPB_GUARD)
#define GPB_MAX_STREAMK_BLOCKS 1024          /* the most counters that a launch may need */

/* What a guard word says. Where several marks meet, the highest stays. Words are not cleared before they are
   written: any other value is no mark. They have 64 bits, because a block of C would be computed by nobody if
   a stale word happened to equal the epoch.
   none     level 0: FP16 slices are as accurate as FP32 arithmetic
   FULL     level 0. If rows and columns are both FULL, the product of the low slices counts
            (sliced/README.md), and a SLICED kernel of two slices adds it. No other code needs to know.
   WIDE     level 1: the rows reach over too many powers of two for FP16 slices, but not for BF16 slices
   EXTREME  level 2: for neither (NaN, Inf, very large or small numbers, few elements that count) */
enum { GPB_MARK_FULL = 1, GPB_MARK_WIDE, GPB_MARK_EXTREME };
#define GPB_GUARD_FULL(epoch)    ((epoch) ^ (uint64_t)1 << 62)
#define GPB_GUARD_WIDE(epoch)    (epoch)
#define GPB_GUARD_EXTREME(epoch) ((epoch) ^ (uint64_t)1 << 63)
#ifdef __CUDACC__
#define GPB_GUARD_INLINE static __host__ __device__ __forceinline__
#else
#define GPB_GUARD_INLINE static inline
#endif
GPB_GUARD_INLINE uint64_t gpb_guard_word(int mark, uint64_t epoch)
{
    return mark == GPB_MARK_EXTREME ? GPB_GUARD_EXTREME(epoch)
           : mark == GPB_MARK_WIDE  ? GPB_GUARD_WIDE(epoch)
                                    : GPB_GUARD_FULL(epoch);
}
GPB_GUARD_INLINE int gpb_guard_level(uint64_t word, uint64_t epoch)
{
    return word == GPB_GUARD_EXTREME(epoch) ? 2 : word == GPB_GUARD_WIDE(epoch) ? 1 : 0;
}
GPB_GUARD_INLINE int gpb_guard_full(uint64_t word, uint64_t epoch) { return word == GPB_GUARD_FULL(epoch); }
GPB_GUARD_INLINE int gpb_guard_mark(uint64_t word, uint64_t epoch)
{
    const int level = gpb_guard_level(word, epoch);
    return level ? level + 1 : gpb_guard_full(word, epoch);
}

/* gpb_sreduce: C = alpha (sum of the parts, in order) + beta C. beta == 0 never reads C. */
typedef struct gpb_reduce_args {
    int64_t m, n, splits;
    const void *partials;                  /* as in gpb_gemm_args */
    void *c;
    int64_t ldc;
    double alpha[2], beta[2];
    int64_t batch, stride_c;
    const gpb_gemm_item *items;            /* NULL, or addresses of C instead of c */
    int uplo, hermitian;                   /* as in gpb_gemm_args */
} gpb_reduce_args;

/* gpb_<p>pack: dst[rows_padded x cols_padded], column-major with leading dimension ld. Inside rows x cols it
   is src[i*rs + j*cs], outside zero. */
typedef struct gpb_pack_args {
    const void *src;
    int64_t rs, cs;
    int64_t rows, cols;
    void *dst;
    int64_t ld, rows_padded, cols_padded;
    int64_t batch, stride_src, stride_dst;
    const void *const *src_items;          /* NULL, or a device array of `batch` source addresses */
} gpb_pack_args;

/* gpb_<p>unpack: C(i,j) = W(i,j) + beta C(i,j) for the m x n block, W column-major with ldw. beta == 0 never
   reads C. uplo 'G': the whole block. 'U' (i + row0 <= j + col0) or 'L' (i + row0 >= j + col0): only that
   triangle of the whole matrix. */
typedef struct gpb_unpack_args {
    int64_t m, n;
    const void *w;
    int64_t ldw;
    void *c;
    int64_t ldc;
    double beta[2];
    int64_t row0, col0;                    /* where the block lies in the whole C */
    int64_t batch, stride_w, stride_c;
    void *const *c_items;                  /* NULL, or a device array of `batch` addresses of C */
    int uplo;
    int hermitian;                         /* the diagonal's imaginary parts are not read and become 0, and
                                              beta is real */
} gpb_unpack_args;

#endif
