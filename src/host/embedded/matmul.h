/* SPDX-License-Identifier: MIT */
/* The bodies of Level 3. There is one blocked product of packed operands. A symmetric matrix is an operand
   that packs its mirror image; a rank-k update is a product that stores one triangle; a triangular product or
   solve is a sweep of products along the diagonal. */

/* A(i,j) = a[i*rs + j*cs], conjugated if `conjugate`. stored: 'G' all of A; 'U', 'L' that triangle of a
   symmetric or Hermitian matrix. */
typedef struct operand {
    const T *a;
    int64_t rs, cs;
    bool conjugate;
    char stored;
} operand;

/* The matrix to which a product is added: C(i,j) = c[i*rs + j*cs], all of it ('G') or one triangle. */
typedef struct target {
    T *c;
    int64_t rs, cs;
    char uplo;
} target;

static operand op_of(int trans, const T *a, int64_t lda)
{
    return (operand){a, trans == 'N' ? 1 : lda, trans == 'N' ? lda : 1, trans == 'C', 'G'};
}

static operand transposed(operand o)
{
    return (operand){o.a, o.cs, o.rs, o.conjugate, o.stored == 'U' ? 'L' : o.stored == 'L' ? 'U' : o.stored};
}

static operand conjugated(operand o)
{
    o.conjugate = !o.conjugate;
    return o;
}

/* The part of a 'G' operand from (i,j) on. */
static operand part(operand o, int64_t i, int64_t j)
{
    o.a += i * o.rs + j * o.cs;
    return o;
}

/* Element (i,j) of any operand. hermitian: the mirror image of a triangle is conjugated, and the diagonal is
   real. */
static inline T element(const operand *o, int64_t i, int64_t j, bool hermitian)
{
    bool mirrored = (o->stored == 'U' && i > j) || (o->stored == 'L' && i < j);
    T x = mirrored ? o->a[j * o->rs + i * o->cs] : o->a[i * o->rs + j * o->cs];
    if (hermitian && i == j) x = REAL(x);
    return conj_if(o->conjugate != (hermitian && mirrored), x);
}

/* A tile is 32 bytes of rows by NR columns. Its sums fill the 16 registers of AVX, or nearly those of SSE.
   The packed blocks of A and B (8 and 36 KiB) stay in the first two caches. They are on the stack, of which a
   thread may have only 128 KiB in all, with OpenBLAS's 60 KiB of thread-local storage, where it lacks a
   routine (GEMMTR). */
typedef R vec __attribute__((vector_size(32), may_alias));
enum { MR = 32 / sizeof(R), NR = COMPLEX ? 3 : 6, PLANES = COMPLEX ? 2 : 1, KC = 512 / sizeof(T),
       MC = 16, NC = 72 };

/* Packs op(A)(i0.., p0..) of rows x depth: `width` rows at a time, for each depth in turn. Complex numbers
   are packed as `width` real parts, then `width` imaginary parts. Rows after the last are zeros. */
static void pack(R *to, const operand *o, bool hermitian, int64_t i0, int64_t p0, int64_t rows, int64_t depth,
                 int width)
{
    for (int64_t i = i0; i < i0 + rows; i += width)
        for (int64_t p = p0; p < p0 + depth; p++, to += PLANES * width)
            for (int r = 0; r < width; r++) {
                T x = i + r >= i0 + rows ? 0
                      : o->stored == 'G' ? conj_if(o->conjugate, o->a[(i + r) * o->rs + p * o->cs])
                                         : element(o, i + r, p, hermitian);
                to[r] = REAL(x);
#if COMPLEX
                to[width + r] = __imag__ x;
#endif
            }
}

/* sums = the product of one packed panel of A and one of B. */
static inline __attribute__((always_inline)) void tile_body(int64_t depth, const R *a, const R *b, vec *sums)
{
    vec re[NR] = {0};
#if COMPLEX
    vec im[NR] = {0};
    for (; depth > 0; depth--, a += 2 * MR, b += 2 * NR) {
        vec x = *(const vec *)a, y = *(const vec *)(a + MR);
#pragma GCC unroll 6
        for (int j = 0; j < NR; j++) {
            re[j] += x * b[j] - y * b[NR + j];
            im[j] += x * b[NR + j] + y * b[j];
        }
    }
    memcpy(sums + NR, im, sizeof im);
#else
    for (; depth > 0; depth--, a += MR, b += NR) {
        vec x = *(const vec *)a;
#pragma GCC unroll 6
        for (int j = 0; j < NR; j++) re[j] += x * b[j];
    }
#endif
    memcpy(sums, re, sizeof re);
}

static void tile_sse(int64_t depth, const R *a, const R *b, vec *sums) { tile_body(depth, a, b, sums); }

__attribute__((target("avx2"))) static void tile_avx(int64_t depth, const R *a, const R *b, vec *sums)
{
    tile_body(depth, a, b, sums);
}

/* C += alpha sums, at rows from i and columns from j on. */
static void store(const target *c, int64_t i, int64_t j, int64_t rows, int64_t cols, T alpha, const vec *sums)
{
    const R *sum = (const R *)sums;
    for (int64_t l = 0; l < cols; l++, sum += MR) {
        int64_t from = c->uplo == 'L' ? max(0, j + l - i) : 0,
                to = c->uplo == 'U' ? min(rows, j + l - i + 1) : rows;
        T x[MR];
        for (int r = 0; r < MR; r++) {
            x[r] = sum[r];
#if COMPLEX
            __imag__ x[r] = sum[NR * MR + r];
#endif
        }
        axpy(to - from, alpha, x + from, 1, c->c + (i + from) * c->rs + (j + l) * c->cs, c->rs, false);
    }
}

/* C += alpha A B for an m x k operand A and a k x n operand B. One of them may be symmetric, or Hermitian if
   `hermitian`. */
static void multiply(int64_t m, int64_t n, int64_t k, T alpha, const operand *a, const operand *b,
                     bool hermitian, const target *c)
{
    alignas(64) R a_block[MC * KC * PLANES], b_block[NC * KC * PLANES];
    vec sums[NR * PLANES];
    operand bt = transposed(*b);
    void (*tile)(int64_t, const R *, const R *, vec *) = __builtin_cpu_supports("avx2") ? tile_avx : tile_sse;
    for (int64_t j0 = 0; j0 < n; j0 += NC)
        for (int64_t p0 = 0; p0 < k; p0 += KC) {
            int64_t depth = min(KC, k - p0), j1 = min(j0 + NC, n);
            int64_t first = c->uplo == 'L' ? j0 / MC * MC : 0, end = c->uplo == 'U' ? min(j1, m) : m;
            pack(b_block, &bt, hermitian, j0, p0, j1 - j0, depth, NR);
            for (int64_t i0 = first; i0 < end; i0 += MC) {
                int64_t i1 = min(i0 + MC, m);
                pack(a_block, a, hermitian, i0, p0, i1 - i0, depth, MR);
                for (int64_t j = j0; j < j1; j += NR)
                    for (int64_t i = i0; i < i1; i += MR) {
                        if ((c->uplo == 'U' && i >= j + NR) || (c->uplo == 'L' && i + MR <= j)) continue;
                        tile(depth, a_block + (i - i0) * depth * PLANES, b_block + (j - j0) * depth * PLANES,
                             sums);
                        store(c, i, j, min(MR, i1 - i), min(NR, j1 - j), alpha, sums);
                    }
            }
        }
}

/* C = beta C, all of it or a triangle; if beta is 0, C is not read. real_beta: multiplies by the real part of
   beta only. */
static void scale_matrix(int uplo, int64_t m, int64_t n, T beta, bool real_beta, T *c, int64_t ldc)
{
    if (beta == 1) return;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = uplo == 'L' ? j : 0; i < (uplo == 'U' ? j + 1 : m); i++) {
            T *x = c + i + j * ldc;
            *x = beta == 0 ? 0 : real_beta ? REAL(beta) * *x : beta * *x;
        }
}

/* B = A B, or to solve B = A^-1 B, for an m x m triangular operand A and m x n B, in blocks along the
   diagonal. The block's own triangle is computed by Level 2, the rest of its rows by products with rows of B
   that still have their old values (or, to solve, already have their new values). */
static void triangular_sweep(bool solve, bool upper, bool unit, int64_t m, int64_t n, const operand *a,
                             const target *b)
{
    enum { BLOCK = 32 };
    T corner[BLOCK * BLOCK], x[BLOCK];
    operand bs = {b->c, b->rs, b->cs, false, 'G'};
    int64_t blocks = ceil_div(m, BLOCK);
    for (int64_t step = 0; step < blocks; step++) {
        int64_t i = (upper != solve ? step : blocks - 1 - step) * BLOCK, size = min(BLOCK, m - i);
        int64_t others = upper ? i + size : 0, count = upper ? m - others : i;
        operand left = part(*a, i, others), right = part(bs, others, 0);
        target here = {b->c + i * b->rs, b->rs, b->cs, 'G'};
        columns corner_columns = triangle(FULL, upper ? 'U' : 'L', corner, size, BLOCK);
        for (int64_t q = 0; q < size; q++)
            for (int64_t p = upper ? 0 : q; p < (upper ? q + 1 : size); p++)
                corner[p + q * BLOCK] = unit && p == q
                                            ? 1
                                            : conj_if(a->conjugate, a->a[(i + p) * a->rs + (i + q) * a->cs]);
        if (solve) multiply(size, n, count, -1, &left, &right, false, &here);
        for (int64_t j = 0; j < n; j++) {
            for (int64_t p = 0; p < size; p++) x[p] = here.c[p * here.rs + j * here.cs];
            triangular_matvec(solve, 'N', unit, &corner_columns, x, 1);
            for (int64_t p = 0; p < size; p++) here.c[p * here.rs + j * here.cs] = x[p];
        }
        if (!solve) multiply(size, n, count, 1, &left, &right, false, &here);
    }
}
