/* SPDX-License-Identifier: MIT */
/* The RESIDUES form: what gpb_?residues makes of an operand, RESIDUES kernels multiply on INT8 tensor cores,
   and gpb_?combine makes C of. It is Ozaki's second scheme (Ozaki, Uchino, Imamura, arXiv 2504.08009), with
   integers that are rounded to nearest. X is op(A), or op(B) transposed: rows x k.

   Row i is scaled by a power of two, 2^s(i), so that its 2-norm is at most GPB_RESIDUE_LIMIT, and rounded to
   integers of 59 bits. A product of two such rows is at most P / 2 in magnitude, because of Cauchy and
   Schwarz, where P is the product of the moduli. So its residues modulo each of them give it exactly. The
   rounding to integers is the only error before the sum is rounded to double (README.md says how large it
   is).

   A plane holds one residue, a signed byte, of each element. A real operand has one plane for each modulus. A
   complex one has three, of re, im and re + im, because three products of integers give a complex one
   exactly. Planes lie one after another, in a plane chunks of GPB_RESIDUE_CHUNK k, in a chunk row by row of
   128 bytes. The eight 16-byte pieces of a row are permuted: piece q lies at place q ^ row % 8, which is the
   128-byte swizzle of the tensor cores. Rows are padded to a multiple of the tile's edge with whatever is
   there, and k to a multiple of the chunk with zeros.

   Behind the planes lie -s(i) as an int32_t for each padded row, then the guard words (gemm_args.h). A member
   of a batch takes gpb_residue_bytes. */
#ifndef GPB_RESIDUES_H
#define GPB_RESIDUES_H

#include "kernels/gemm_args.h"
#include "kernels/triangle.h"

/* Pairwise coprime and at most 256. Their product P is 2^117.8. With one fewer the factor of kappa in the
   bound would be 0.67 and not 0.048 (README.md), so the error would be about that of FMAs. */
#define GPB_MODULI(X)                                                                                \
    X(256) X(255) X(253) X(251) X(247) X(241) X(239) X(233) X(229) X(227) X(223) X(217) X(211) X(199) \
    X(197)
enum { GPB_RESIDUE_MODULI = 15 };
#define GPB_RESIDUE_LIMIT 0x1.4fbfp58      /* at most (1 - 2^-12) sqrt(P / 2) */
#define GPB_RESIDUE_CHUNK 128              /* k of a chunk */
#define GPB_RESIDUE_BM    128              /* a tile of the product */
#define GPB_RESIDUE_BN    256
#define GPB_RESIDUE_MAX_K 65536            /* 2^14 k < 2^30: sums of products of bytes (multiply.cuh) */
#define GPB_RESIDUE_REACH 480              /* largest exponent, of either sign, of a row's largest element */
/* The kappa of README.md up to which the bound is that of FMAs, divided by the root of the number of
   products. */
#define GPB_RESIDUE_KAPPA 20.0f

/* gpb_?combine: blocks that share a tile's upper or lower 64 rows, and their threads. */
#define GPB_COMBINE_SPLIT   8
#define GPB_COMBINE_THREADS 128
#define GPB_COMBINE_BLOCKS(uplo, m, n) \
    (GPB_TILES_OF(uplo, m, n, GPB_RESIDUE_BM, GPB_RESIDUE_BN) * 2 * GPB_COMBINE_SPLIT)

#ifdef __CUDACC__
#define GPB_RESIDUE_BOTH static __host__ __device__ __forceinline__
#else
#define GPB_RESIDUE_BOTH static inline
#endif

/* A row's elements are counted from these shares of its root mean square on. */
enum { GPB_RESIDUE_THETAS = 3 };
GPB_RESIDUE_BOTH double gpb_residue_theta(int x) { return 0.25 / (1 << x); }

GPB_RESIDUE_BOTH int gpb_residue_planes(int is_complex)
{
    return is_complex ? 3 * GPB_RESIDUE_MODULI : GPB_RESIDUE_MODULI;
}
GPB_RESIDUE_BOTH int64_t gpb_residue_rows(int is_a, int64_t rows)
{
    const int64_t edge = is_a ? GPB_RESIDUE_BM : GPB_RESIDUE_BN;
    return (rows + edge - 1) / edge * edge;
}
GPB_RESIDUE_BOTH int64_t gpb_residue_chunks(int64_t k)
{
    return (k + GPB_RESIDUE_CHUNK - 1) / GPB_RESIDUE_CHUNK;
}
/* Rows that share a guard word. Those of op(A) are as the kernels expect that compute marked blocks. */
GPB_RESIDUE_BOTH int64_t gpb_residue_guard_rows(int is_complex, int is_a)
{
    return is_a ? GPB_GUARD_ROWS(is_complex) : GPB_GUARD;
}

/* Where a member's exponents and its guard words lie, in bytes from its start; and where the next member
   starts. */
GPB_RESIDUE_BOTH int64_t gpb_residue_exponents(int is_complex, int is_a, int64_t rows, int64_t k)
{
    return gpb_residue_planes(is_complex) * gpb_residue_chunks(k) * gpb_residue_rows(is_a, rows)
           * GPB_RESIDUE_CHUNK;
}
GPB_RESIDUE_BOTH int64_t gpb_residue_guard(int is_complex, int is_a, int64_t rows, int64_t k)
{
    return gpb_residue_exponents(is_complex, is_a, rows, k) + 4 * gpb_residue_rows(is_a, rows);
}
GPB_RESIDUE_BOTH int64_t gpb_residue_bytes(int is_complex, int is_a, int64_t rows, int64_t k)
{
    const int64_t words = gpb_residue_rows(is_a, rows) / gpb_residue_guard_rows(is_complex, is_a);
    return (gpb_residue_guard(is_complex, is_a, rows, k) + 8 * words + 1023) / 1024 * 1024;
}

/* Bytes of the residues of a member's C, or of its triangle: those of whole tiles. */
GPB_RESIDUE_BOTH int64_t gpb_residue_product_bytes(int is_complex, int uplo, int64_t m, int64_t n)
{
    return gpb_residue_planes(is_complex) * GPB_TILES_OF(uplo, m, n, GPB_RESIDUE_BM, GPB_RESIDUE_BN)
           * (GPB_RESIDUE_BM * GPB_RESIDUE_BN);
}

#endif
