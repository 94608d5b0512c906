/* SPDX-License-Identifier: MIT */
/* The embedded BLAS of one precision, which serves every exported name if the machine has no other BLAS, and
   LAPACK's solvers if it has no LAPACK. s.c, d.c, c.c and z.c set the precision and include this file. The
   bodies are written once for all four; the entries are included twice, for 32- and 64-bit integers.
   Semantics are netlib's. An illegal argument is reported to the exported xerbla_, so that the program's own
   handler is called, and then the routine returns. The CBLAS entries call the exported Fortran names, so that
   a host without CBLAS still does the work.
   Compile with -O3 -fcx-fortran-rules (gcc), because Fortran multiplies complex numbers without C's recovery
   of infinities. */
#ifndef GPB_EMBEDDED_H
#define GPB_EMBEDDED_H

#include <math.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "dispatch/numbers.h"
#include "src/host/condition.h"
#include "src/host/embedded/error.h"
#include "src/host/lapack.h"
#include "src/host/lapack_abi.h"
#include "src/host/level3.h"
#include "src/host/level3_abi.h"

#if COMPLEX
#define T R _Complex
#define SCALAR const T *                   /* how CBLAS passes alpha and beta */
#define BY_ADDRESS(scalar) (scalar)
#define AT(scalar_address) (scalar_address)
#define REAL(x) __real__(x)                /* GNU C: parts of a complex number, and ~ for its conjugate */
#define CONJ(x) (~(x))
#define SYMMETRIC_LETTERS "NT"             /* that SYRK and SYR2K take */
#define ABS1(x) (fabs(__real__(x)) + fabs(__imag__(x)))
#define ABS2(x) ((WIDE)__real__(x) * __real__(x) + (WIDE)__imag__(x) * __imag__(x))
#else
#define T R
#define SCALAR T
#define BY_ADDRESS(scalar) (&(scalar))
#define AT(scalar_address) (*(scalar_address))
#define REAL(x) (x)
#define CONJ(x) (x)
#define SYMMETRIC_LETTERS "NTC"
#define ABS1(x) fabs(x)
#define ABS2(x) ((WIDE)(x) * (x))
#endif

/* F77(gemm): the body of sgemm_. CBLAS(gemm): the body of cblas_sgemm. BLAS(gemm): the exported sgemm_. The
   macros with _OF take other first letters. */
#define PASTE_(a, b, c, d) a##b##c##d
#define PASTE(a, b, c, d) PASTE_(a, b, c, d)
#define F77_OF(p, stem) PASTE(gpb_embedded_, p, stem, F77_TAIL)
#define CBLAS_OF(p, stem) PASTE(gpb_embedded_cblas_, p, stem, C_TAIL)
#define BLAS_OF(p, stem) PASTE(, p, stem, F77_TAIL)
#define F77(stem) F77_OF(P, stem)
#define CBLAS(stem) CBLAS_OF(P, stem)
#define BLAS(stem) BLAS_OF(P, stem)
#define IP PASTE(i, P, , )                 /* isamax */
#define LOCAL(name) PASTE(name, WIDTH, , ) /* a static function with integers of this width */

#define TYPE_OF_P PASTE(GPB_TYPE_, P, , )
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define NAME(stem) TEXT(P) #stem
/* If `info` is not 0, reports it as the number of an illegal parameter, and is true. */
#define BAD(stem, info) gpb_embedded_bad(WIDTH, NAME(stem), info)
/* False, after a report, if one of CBLAS's leading enumerations is not legal for its kind
   (embedded/error.h). */
#define LEGAL(stem, kinds, ...) gpb_embedded_legal(WIDTH, NAME(stem), kinds, (const int[]){__VA_ARGS__})

/* Row-major complex calls need conj(A), which Fortran's letters cannot express. This bit on the letter
   expresses it for our own bodies. */
#define CONJUGATED 0x80

static inline int64_t at_least_1(int64_t n) { return n > 1 ? n : 1; }

/* The upper-case letter at p (and CONJUGATED), if the set has it; else 0. */
static inline int letter_of(const char *set, const char *p)
{
    int bit = *p & CONJUGATED, letter = *p & ~CONJUGATED & 0xff;
    if (letter >= 'a' && letter <= 'z') letter -= 'a' - 'A';
    return letter && strchr(set, letter) ? letter | bit : 0;
}

enum { ROW_MAJOR = 101 };                  /* CBLAS's enumeration of the layout */

/* The letter of a legal enumerator of CBLAS. */
static inline char letter(int value)
{
    return value <= 113   ? "NTC"[value - 111]
           : value <= 122 ? "UL"[value - 121]
           : value <= 132 ? "NU"[value - 131]
                          : "LR"[value - 141];
}

/* A row-major matrix is the column-major one transposed: with the other triangle, on the other side, with the
   other transposition. */
static inline char uplo_letter(int layout, int uplo)
{
    return letter(layout == ROW_MAJOR ? 121 + 122 - uplo : uplo);
}
static inline char side_letter(int layout, int side)
{
    return letter(layout == ROW_MAJOR ? 141 + 142 - side : side);
}
static inline char trans_letter(int layout, int trans)
{
    if (layout != ROW_MAJOR) return letter(trans);
    return trans == 111 ? 'T' : (char)('N' | (trans == 113 && COMPLEX ? CONJUGATED : 0));
}

/* In the other triangle of a Hermitian matrix the elements are also conjugated. */
static inline char hermitian_letter(int layout, int uplo)
{
    return (char)(uplo_letter(layout, uplo) | (COMPLEX && layout == ROW_MAJOR ? CONJUGATED : 0));
}

/* For a rank-k update, whose transpositions are N and `other`. An unknown one is returned unchanged, to be
   reported. */
static inline char rank_k_letter(int layout, int trans, char other)
{
    char t = letter(trans);
    if (layout != ROW_MAJOR) return t;
    return t == 'N' ? other : t == other || !COMPLEX ? 'N' : t;
}

#include "src/host/embedded/vector.h"
#include "src/host/embedded/matvec.h"
#include "src/host/embedded/matmul.h"
#include "src/host/embedded/factor.h"
#include "src/host/embedded/condition.h"

#define INT int32_t
#define WIDTH 32
#define F77_TAIL _
#define C_TAIL
#include "src/host/embedded/entries.h"
#undef INT
#undef WIDTH
#undef F77_TAIL
#undef C_TAIL
#define INT int64_t
#define WIDTH 64
#define F77_TAIL _64_
#define C_TAIL _64
#include "src/host/embedded/entries.h"

#endif
