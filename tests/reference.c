/* SPDX-License-Identifier: MIT */
/* The reference product. Products of floats are exact in double, and their sum is off by k 2^-53 of it, far
   below any bound of ours. Products of doubles are split into two doubles by an FMA, and so are the roundings
   of their sum: together they are as good as arithmetic of 106 bits (Ogita, Rump and Oishi, "Accurate sum and
   dot product", 2005). */
#include <float.h>
#include <immintrin.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/reference.h"

/* ---- elements */

/* The real and the imaginary part. Sums are formed part by part: C's complex product would guess at
   infinities. */
typedef struct number {
    double part[2];
} number;

static bool is_complex(const gpb_call *g) { return gpb_type_of(g->type)->kind == GPB_TYPE_COMPLEX; }
static bool is_single(const gpb_call *g) { return g->type == GPB_TYPE_s || g->type == GPB_TYPE_c; }
static int parts_of(const gpb_call *g) { return is_complex(g) ? 2 : 1; }

double gpb_reference_value(const gpb_call *g, const void *element, int part)
{
    return is_single(g) ? (double)((const float *)element)[part] : ((const double *)element)[part];
}

static number read_number(const gpb_call *g, const void *element)
{
    return (number){ { gpb_reference_value(g, element, 0),
                       is_complex(g) ? gpb_reference_value(g, element, 1) : 0 } };
}

/* The element `at` of a buffer. */
static const void *element(const gpb_call *g, const void *base, int64_t at)
{
    return (const char *)base + at * (int64_t)gpb_call_element(g);
}

/* Where an element of C is. */
static int64_t place_of(const gpb_call *g, int64_t i, int64_t j, int64_t l)
{
    return i + j * g->x[GPB_C].ld + l * g->x[GPB_C].stride;
}

/* The element in that place of a matrix. It is another one's, or none's, where only a triangle is stored. */
static number stored(const gpb_call *g, const gpb_matrix *x, const void *member, int64_t row, int64_t col)
{
    const bool is_there = x->uplo == 'U' ? row <= col : x->uplo == 'L' ? row >= col : true;
    if (x->structure == GPB_TRIANGULAR && row == col && x->diag == 'U') return (number){ { 1, 0 } };
    if (x->structure == GPB_TRIANGULAR && !is_there) return (number){ { 0, 0 } };
    const bool mirrored = x->structure != GPB_GENERAL && !is_there;
    number n = read_number(g, element(g, member, mirrored ? col + row * x->ld : row + col * x->ld));
    if (x->structure == GPB_HERMITIAN && row == col) n.part[1] = 0;
    if (x->structure == GPB_HERMITIAN && mirrored) n.part[1] = -n.part[1];
    return n;
}

/* Element (row, col) of op(A) or op(B). */
static number operand(const gpb_call *g, enum gpb_operand which, const void *member, int64_t row, int64_t col)
{
    const gpb_matrix *x = &g->x[which];
    const bool transposed = gpb_matrix_transposed(x);
    number n = stored(g, x, member, transposed ? col : row, transposed ? row : col);
    if ((x->trans == 'C') != x->conj) n.part[1] = -n.part[1];
    return n;
}

/* ---- sums */

/* head + tail is the sum, and `size` the sum of absolute values. The head is what plain double arithmetic
   gives. */
typedef struct sum {
    double head, tail, size;
} sum;

static void add_product(sum *s, double x, double y)
{
    const double product = x * y, head = s->head + product, before = head - product;
    s->tail += (s->head - before) + (product - (head - before)) + fma(x, y, -product);
    s->head = head;
    s->size += fabs(product);
}

/* One part of x y. */
static void add_complex(sum *s, number x, number y, int part)
{
    add_product(s, x.part[0], y.part[part]);
    add_product(s, part ? x.part[1] : -x.part[1], y.part[1 - part]);
}

/* The same for numbers whose products are exact. */
static void add_exact(sum *s, double x, double y)
{
    const double product = x * y;
    s->head += product;
    s->size += fabs(product);
}

/* A row of op(A) or a column of op(B), of general matrices: the first element, bytes from one to the next. */
typedef struct line {
    const char *at;
    int64_t step;
    double sign;                                                  /* of imaginary parts */
} line;

static line line_of(const gpb_call *g, enum gpb_operand which, int64_t which_line, int64_t l)
{
    const gpb_matrix *x = &g->x[which];
    const int64_t bytes = (int64_t)gpb_call_element(g);
    const bool is_down = gpb_call_k_down(g, which);
    return (line){ (const char *)gpb_call_member(g, which, l) + which_line * bytes * (is_down ? x->ld : 1),
                   is_down ? bytes : bytes * x->ld, (x->trans == 'C') != x->conj ? -1 : 1 };
}

/* Of general matrices, which are by far the most frequent: without a look at each element's type and
   structure. */
static inline __attribute__((always_inline)) void add_lines(sum of[2], int64_t k, line a, line b,
                                                            bool single, bool complex)
{
    void (*const add)(sum *, double, double) = single ? add_exact : add_product;
    for (int64_t p = 0; p < k; p++, a.at += a.step, b.at += b.step) {
        const float *xs = (const float *)a.at, *ys = (const float *)b.at;
        const double *xd = (const double *)a.at, *yd = (const double *)b.at;
        const double x = single ? (double)xs[0] : xd[0], y = single ? (double)ys[0] : yd[0];
        add(&of[0], x, y);
        if (!complex) continue;
        const double xi = a.sign * (single ? (double)xs[1] : xd[1]),
                     yi = b.sign * (single ? (double)ys[1] : yd[1]);
        add(&of[0], -xi, yi);
        add(&of[1], x, yi);
        add(&of[1], xi, y);
    }
}

static void add_general(const gpb_call *g, int64_t i, int64_t j, int64_t l, sum of[2])
{
    const line a = line_of(g, GPB_A, i, l), b = line_of(g, GPB_B, j, l);
    if (is_complex(g) && is_single(g)) add_lines(of, g->k, a, b, true, true);
    else if (is_complex(g)) add_lines(of, g->k, a, b, false, true);
    else if (is_single(g)) add_lines(of, g->k, a, b, true, false);
    else add_lines(of, g->k, a, b, false, false);
}

/* Both parts of a row of op(A) times a column of op(B). */
static void dot(const gpb_call *g, int64_t i, int64_t j, int64_t l, sum of[2])
{
    const void *a = gpb_call_member(g, GPB_A, l), *b = gpb_call_member(g, GPB_B, l);
    memset(of, 0, 2 * sizeof *of);
    if (g->x[GPB_A].structure == GPB_GENERAL && g->x[GPB_B].structure == GPB_GENERAL)
        return add_general(g, i, j, l, of);
    for (int64_t p = 0; p < g->k; p++) {
        const number x = operand(g, GPB_A, a, i, p), y = operand(g, GPB_B, b, p, j);
        for (int part = 0; part < parts_of(g); part++) {
            if (is_complex(g)) add_complex(&of[part], x, y, part);
            else add_product(&of[part], x.part[0], y.part[0]);
        }
    }
}

static number scalar(gpb_scalar x) { return (number){ GPB_SCALAR_RE_IM(x) }; }

/* SYR2K and HER2K add the product in which A and B have changed places, of HER2K times conj(alpha). */
static int products_of(const gpb_call *g) { return g->routine == GPB_ROUTINE_SYR2K ? 2 : 1; }

static gpb_call exchanged(const gpb_call *g)
{
    const gpb_matrix *a = &g->x[GPB_A], *b = &g->x[GPB_B];
    gpb_call other = *g;
    other.x[GPB_A] = (gpb_matrix){ .base = b->base, .ld = b->ld, .trans = a->trans };
    other.x[GPB_B] = (gpb_matrix){ .base = a->base, .ld = a->ld, .trans = b->trans };
    return other;
}

static number factor_of(const gpb_call *g, int product)
{
    number alpha = scalar(g->alpha);
    if (product && gpb_call_hermitian(g)) alpha.part[1] = -alpha.part[1];
    return alpha;
}

/* Adds one part of alpha times A B, of which both parts are there. */
static void add_scaled(sum *to, const gpb_call *g, number alpha, const gpb_reference_element of[2], int part)
{
    for (int x = 0; x < parts_of(g); x++) {
        const double factor = x && !part ? -alpha.part[x] : alpha.part[x];
        const gpb_reference_element *e = &of[is_complex(g) ? part ^ x : 0];
        const double size = to->size + fabs(factor) * e->product;
        add_product(to, factor, e->value);
        to->tail += factor * e->rest;
        to->size = size;
    }
}

/* What a sum is as an element. Singles need no rest. */
static gpb_reference_element element_of(const gpb_call *g, const sum *s)
{
    const double rest = is_single(g) || !isfinite(s->tail) ? 0 : s->tail;
    return (gpb_reference_element){ .value = s->head, .product = s->size, .rest = rest };
}

static bool is_real(const gpb_call *g, int64_t i, int64_t j)
{
    const bool is_touched = gpb_call_multiplies(g) || g->beta != 1;
    return is_complex(g) && gpb_call_hermitian(g) && i == j && is_touched;
}

void gpb_reference_sums(const gpb_call *g, int64_t i, int64_t j, int64_t l,
                        gpb_reference_element sums[GPB_REFERENCE_SUMS])
{
    for (int x = 0; x < products_of(g); x++) {
        const gpb_call product = x ? exchanged(g) : *g;
        sum of[2] = { { 0, 0, 0 } };
        if (gpb_call_multiplies(g)) dot(&product, i, j, l, of);      /* else not even a NaN in A counts */
        for (int part = 0; part < parts_of(g); part++) sums[2 * x + part] = element_of(g, &of[part]);
    }
    sums[0].real = is_real(g, i, j);
}

/* ---- many sums of one call */

/* Of each product, op(A)'s rows and op(B)'s columns of all members in double, each side by side with zeros
   behind it, real and imaginary parts apart. */
enum { LANES = 4, HIGH = 16 };
struct gpb_reference_lines {
    const gpb_call *g;
    int64_t length;
    double *of[GPB_REFERENCE_SUMS / 2][2][2];
};

/* A few lines at a time, because some lie across memory. */
static bool pack(const gpb_call *g, enum gpb_operand which, int64_t length, double *to[2])
{
    const int64_t lines = gpb_call_extent(g, which), all = lines * g->batch;
    for (int part = 0; part < parts_of(g); part++)
        if (!(to[part] = calloc((size_t)(all * length), sizeof(double)))) return false;
    for (int64_t first = 0; first < all; first += HIGH)
        for (int64_t p = 0; p < g->k; p++)
            for (int64_t line = first; line < all && line < first + HIGH; line++) {
                const int64_t i = line % lines;
                const void *member = gpb_call_member(g, which, line / lines);
                const number x = which == GPB_A ? operand(g, GPB_A, member, i, p)
                                                : operand(g, GPB_B, member, p, i);
                for (int part = 0; part < parts_of(g); part++) to[part][line * length + p] = x.part[part];
            }
    return true;
}

gpb_reference_lines *gpb_reference_lines_make(const gpb_call *g, int64_t count)
{
    const bool can = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    gpb_reference_lines *x = NULL;
    bool made = can && gpb_call_multiplies(g) && count > 2 * (g->m + g->n) * g->batch
        && (x = calloc(1, sizeof *x));
    if (!made) return NULL;
    x->g = g;
    x->length = (g->k + LANES - 1) / LANES * LANES;
    for (int y = 0; y < products_of(g); y++) {
        const gpb_call product = y ? exchanged(g) : *g;
        made = made && pack(&product, GPB_A, x->length, x->of[y][GPB_A])
            && pack(&product, GPB_B, x->length, x->of[y][GPB_B]);
    }
    if (made) return x;
    gpb_reference_lines_free(x);
    return NULL;
}

void gpb_reference_lines_free(gpb_reference_lines *x)
{
    double **all = x ? x->of[0][0] : NULL;
    for (size_t i = 0; x && i < sizeof x->of / sizeof *all; i++) free(all[i]);
    free(x);
}

/* Adds LANES sums to one. */
__attribute__((target("avx2,fma"))) static void add_lanes(sum *s, __m256d head, __m256d tail, __m256d size)
{
    double heads[LANES], tails[LANES], sizes[LANES], all = s->size;
    _mm256_storeu_pd(heads, head);
    _mm256_storeu_pd(tails, tail);
    _mm256_storeu_pd(sizes, size);
    for (int lane = 0; lane < LANES; lane++) {
        add_product(s, heads[lane], 1);
        s->tail += tails[lane];
        all += sizes[lane];
    }
    s->size = all;
}

/* What add_exact and add_product do for one product, for all of two lines. sign: 1 or -1. */
__attribute__((target("avx2,fma"))) static void add_line(sum *s, int64_t length, const double *x,
                                                         const double *y, double sign, bool exact)
{
    const __m256d turn = _mm256_set1_pd(sign < 0 ? -0.0 : 0), minus = _mm256_set1_pd(-0.0);
    __m256d head = _mm256_setzero_pd(), tail = head, size = head;
    for (int64_t p = 0; p < length; p += LANES) {
        const __m256d a = _mm256_xor_pd(_mm256_loadu_pd(x + p), turn), b = _mm256_loadu_pd(y + p);
        const __m256d product = _mm256_mul_pd(a, b), sum = _mm256_add_pd(head, product);
        if (!exact) {
            const __m256d before = _mm256_sub_pd(sum, product);
            const __m256d lost = _mm256_add_pd(_mm256_sub_pd(head, before),
                                               _mm256_sub_pd(product, _mm256_sub_pd(sum, before)));
            tail = _mm256_add_pd(tail, _mm256_add_pd(lost, _mm256_fmsub_pd(a, b, product)));
        }
        head = sum;
        size = _mm256_add_pd(size, _mm256_andnot_pd(minus, product));
    }
    add_lanes(s, head, tail, size);
}

/* Both parts of one product's sum; false if they are not finite: then the order may count. */
static bool add_pair(const gpb_reference_lines *x, int product, int64_t i, int64_t j, int64_t l, sum of[2])
{
    const gpb_call *g = x->g;
    const int64_t at_a = (l * g->m + i) * x->length, at_b = (l * g->n + j) * x->length;
    double *const *a = x->of[product][GPB_A], *const *b = x->of[product][GPB_B];
    add_line(&of[0], x->length, a[0] + at_a, b[0] + at_b, 1, is_single(g));
    if (is_complex(g)) {
        add_line(&of[0], x->length, a[1] + at_a, b[1] + at_b, -1, is_single(g));
        add_line(&of[1], x->length, a[0] + at_a, b[1] + at_b, 1, is_single(g));
        add_line(&of[1], x->length, a[1] + at_a, b[0] + at_b, 1, is_single(g));
    }
    return isfinite(of[0].size) && isfinite(of[0].head) && isfinite(of[1].size) && isfinite(of[1].head);
}

void gpb_reference_lines_sums(const gpb_reference_lines *x, int64_t i, int64_t j, int64_t l,
                              gpb_reference_element sums[GPB_REFERENCE_SUMS])
{
    const gpb_call *g = x->g;
    for (int y = 0; y < products_of(g); y++) {
        sum of[2] = { { 0, 0, 0 } };
        if (!add_pair(x, y, i, j, l, of)) {
            gpb_reference_sums(g, i, j, l, sums);
            return;
        }
        for (int part = 0; part < parts_of(g); part++) sums[2 * y + part] = element_of(g, &of[part]);
    }
    sums[0].real = is_real(g, i, j);
}

gpb_reference_element gpb_reference_scaled(const gpb_call *g,
                                           const gpb_reference_element sums[GPB_REFERENCE_SUMS],
                                           const void *before, int part)
{
    sum total = { 0, 0, 0 };
    if (sums[0].real && part) return element_of(g, &total);
    for (int x = 0; x < products_of(g) && gpb_call_multiplies(g); x++)
        add_scaled(&total, g, factor_of(g, x), sums + 2 * x, part);
    const double product = total.size;
    total.size = 0;
    if (g->beta != 0) {
        const number old = read_number(g, before);
        if (gpb_call_hermitian(g)) add_product(&total, __real__ g->beta, old.part[part]);
        else if (is_complex(g)) add_complex(&total, scalar(g->beta), old, part);
        else add_product(&total, scalar(g->beta).part[0], old.part[0]);
    }
    gpb_reference_element e = element_of(g, &total);
    e.product = product;
    e.old = total.size;
    return e;
}

gpb_reference_element gpb_reference_part(const gpb_call *g, const void *c_before, int64_t i, int64_t j,
                                         int64_t l, int part)
{
    gpb_reference_element sums[GPB_REFERENCE_SUMS];
    gpb_reference_sums(g, i, j, l, sums);
    return gpb_reference_scaled(g, sums, c_before ? element(g, c_before, place_of(g, i, j, l)) : NULL, part);
}

gpb_reference_element gpb_reference_at(const gpb_call *g, const void *c_before, int64_t i, int64_t j,
                                       int64_t l)
{
    return gpb_reference_part(g, c_before, i, j, l, 0);
}

/* ---- errors */

static double alpha_size(const gpb_call *g)
{
    const number alpha = scalar(g->alpha);
    return is_complex(g) ? fabs(alpha.part[0]) + fabs(alpha.part[1]) : fabs(alpha.part[0]);
}

double gpb_reference_bound(enum gpb_math math, const gpb_call *g, gpb_reference_element e)
{
    const int terms = parts_of(g), products = products_of(g);
    const double u = is_single(g) ? 0x1p-24 : 0x1p-53, smallest = is_single(g) ? 0x1p-149 : 0x1p-1074;
    const double steps = products * terms * (double)g->k + 4;
    /* the last term: each rounding may also lose half of the smallest number of the type */
    const double bound = steps * u * e.product + (terms + products) * u * e.old
        + steps * fmax(1, alpha_size(g)) * smallest;
    return math == GPB_MATH_TF32 ? bound + ldexp(e.product, -9) : bound;
}

double gpb_reference_error(enum gpb_math math, const gpb_call *g, gpb_reference_element e, const void *result,
                           int part)
{
    const double value = gpb_reference_value(g, result, part);
    const double largest = is_single(g) ? (double)FLT_MAX : DBL_MAX;
    if (isnan(e.value)) return isnan(value) ? 0 : INFINITY;
    if (isinf(e.value)) return value == e.value ? 0 : INFINITY;
    /* sums that may leave the range of the type on their way may end in an infinity, or in NaN */
    const double peak = fmax(e.product, g->alpha != 0 ? e.product / alpha_size(g) : 0) + e.old;
    if (!isfinite(value)) return peak >= largest ? 0 : INFINITY;
    return fabs(value - e.value - e.rest) / gpb_reference_bound(math, g, e);
}

gpb_reference_quick gpb_reference_quick_of(enum gpb_math math, const gpb_call *g)
{
    const int terms = parts_of(g), products = products_of(g);
    const double u = is_single(g) ? 0x1p-24 : 0x1p-53, slack = 0x1p-49;
    const number alpha = scalar(g->alpha), beta = scalar(g->beta);
    const bool can = math != GPB_MATH_TF32 && products == 1 && !gpb_call_hermitian(g);
    return (gpb_reference_quick){
        .parts = terms, .single = is_single(g), .can = can, .reads = g->beta != 0,
        .alpha = { alpha.part[0], terms == 2 ? alpha.part[1] : 0 },
        .beta = { beta.part[0], terms == 2 ? beta.part[1] : 0 },
        .of_product = (terms * (double)g->k + 4) * u - slack, .of_old = (terms + 1) * u - slack
    };
}

/* ---- all of C, or a sample */

/* Rows of column j that the call writes. */
static gpb_matrix_rows rows_of(const gpb_call *g, int64_t j)
{
    return gpb_matrix_rows_of(g->x[GPB_C].uplo, 0, g->m, j);
}

static double error_at(enum gpb_math math, const gpb_call *g, const void *c_before, int64_t i, int64_t j,
                       int64_t l)
{
    const int64_t at = place_of(g, i, j, l);
    const void *now = element(g, g->x[GPB_C].base, at), *before = c_before ? element(g, c_before, at) : NULL;
    double worst = 0;
    gpb_reference_element sums[GPB_REFERENCE_SUMS];
    gpb_reference_sums(g, i, j, l, sums);
    for (int part = 0; part < parts_of(g); part++) {
        const gpb_reference_element e = gpb_reference_scaled(g, sums, before, part);
        worst = fmax(worst, gpb_reference_error(math, g, e, now, part));
    }
    return worst;
}

double gpb_reference_check(enum gpb_math math, const gpb_call *g, const void *c_before, size_t bytes)
{
    const int64_t count = (int64_t)(bytes / gpb_call_element(g));
    const char *c = g->x[GPB_C].base;
    double worst = 0;
    unsigned char *owned = calloc((size_t)count + 1, 1);          /* elements that the call had to write */
    if (!owned) return INFINITY;
    for (int64_t l = 0; l < g->batch; l++)
        for (int64_t j = 0; j < g->n; j++) {
            const gpb_matrix_rows rows = rows_of(g, j);
            for (int64_t i = rows.first; i < rows.last; i++) {
                owned[place_of(g, i, j, l)] = 1;
                worst = fmax(worst, error_at(math, g, c_before, i, j, l));
            }
        }
    for (int64_t at = 0; at < count; at++)
        if (!owned[at] && memcmp(element(g, c, at), element(g, c_before, at), gpb_call_element(g)))
            worst = INFINITY;
    free(owned);
    return worst;
}

/* True if these elements, which lie side by side, are all finite. */
static bool are_finite(const gpb_call *g, const void *first, int64_t count)
{
    double sum = 0;                                               /* NaN if one of them is not finite */
    for (int64_t x = 0; x < count * parts_of(g); x++) sum += gpb_reference_value(g, first, (int)x) * 0;
    return sum == 0;
}

/* True if nothing between the blocks has changed, and all in them is finite. */
static bool is_whole(const gpb_call *g, const void *c_before, size_t bytes)
{
    const void *c = g->x[GPB_C].base;
    const size_t each = gpb_call_element(g);
    int64_t from = 0, end = (int64_t)(bytes / each);
    for (int64_t l = 0; l < g->batch; l++)
        for (int64_t j = 0; j < g->n; j++) {
            const gpb_matrix_rows rows = rows_of(g, j);
            const int64_t at = place_of(g, rows.first, j, l), gap = at - from;
            if (gap > 0 && memcmp(element(g, c, from), element(g, c_before, from), (size_t)gap * each))
                return false;
            if (!are_finite(g, element(g, c, at), rows.last - rows.first)) return false;
            from = place_of(g, rows.last, j, l);
        }
    return from >= end
        || !memcmp(element(g, c, from), element(g, c_before, from), (size_t)(end - from) * each);
}

double gpb_reference_sample(enum gpb_math math, const gpb_call *g, const void *c_before, size_t bytes,
                            int64_t sample, uint64_t *state)
{
    const int64_t columns = g->n * g->batch;
    double worst = is_whole(g, c_before, bytes) ? 0 : INFINITY;
    for (int64_t x = 0; x < sample && columns > 0 && worst <= 1; x++) {
        const int64_t column = sample < columns ? (int64_t)gpb_reference_draw(state, (uint64_t)columns)
                                                : x % columns;
        const int64_t j = column % g->n, l = column / g->n;
        const gpb_matrix_rows rows = rows_of(g, j);
        if (rows.first >= rows.last) continue;
        const int64_t i = rows.first + (int64_t)gpb_reference_draw(state, (uint64_t)(rows.last - rows.first));
        worst = fmax(worst, error_at(math, g, c_before, i, j, l));
    }
    return worst;
}

/* ---- random numbers */

static uint64_t next_random(uint64_t *state)                      /* splitmix64 */
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

uint64_t gpb_reference_draw(uint64_t *state, uint64_t below) { return next_random(state) % below; }

void gpb_reference_fill(float *x, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++) x[i] = (float)((double)(next_random(&seed) >> 40) / 8388608.0 - 1.0);
}
