/* SPDX-License-Identifier: MIT */
/* Level 1, Fortran. */

void F77(axpy)(const INT *n, const T *alpha, const T *x, const INT *incx, T *y, const INT *incy)
{
    if (*n > 0 && *alpha != 0)
        axpy(*n, *alpha, FIRST(x, *n, *incx), *incx, FIRST(y, *n, *incy), *incy, false);
}

void F77(copy)(const INT *n, const T *x, const INT *incx, T *y, const INT *incy)
{
    x = FIRST(x, *n, *incx);
    y = FIRST(y, *n, *incy);
    for (int64_t i = 0; i < *n; i++) y[i * *incy] = x[i * *incx];
}

void F77(swap)(const INT *n, T *x, const INT *incx, T *y, const INT *incy)
{
    x = FIRST(x, *n, *incx);
    y = FIRST(y, *n, *incy);
    for (int64_t i = 0; i < *n; i++) {
        T held = x[i * *incx];
        x[i * *incx] = y[i * *incy];
        y[i * *incy] = held;
    }
}

void F77(scal)(const INT *n, const T *alpha, T *x, const INT *incx)
{
    T by = *alpha;
    if (*incx > 0)
        for (int64_t i = 0; i < *n; i++) x[i * *incx] = by * x[i * *incx];
}

R F77_OF(RP, asum)(const INT *n, const T *x, const INT *incx)
{
    R sum = 0;
    if (*incx > 0)
        for (int64_t i = 0; i < *n; i++) sum += ABS1(x[i * *incx]);
    return sum;
}

R F77_OF(RP, nrm2)(const INT *n, const T *x, const INT *incx)
{
    WIDE sum = 0;
    x = FIRST(x, *n, *incx);
    for (int64_t i = 0; i < *n; i++) sum += ABS2(x[i * *incx]);
    return sqrtl(sum);
}

INT F77_OF(IP, amax)(const INT *n, const T *x, const INT *incx)
{
    if (*n < 1 || *incx <= 0) return 0;
    INT at = 0;
    R largest = ABS1(x[0]);
    for (INT i = 1; i < *n; i++) {
        R here = ABS1(x[(int64_t)i * *incx]);
        if (here > largest) {
            largest = here;
            at = i;
        }
    }
    return at + 1;
}

void F77_OF(PR, rot)(const INT *n, T *x, const INT *incx, T *y, const INT *incy, const R *c, const R *s)
{
    x = FIRST(x, *n, *incx);
    y = FIRST(y, *n, *incy);
    for (int64_t i = 0; i < *n; i++) {
        T xi = x[i * *incx], yi = y[i * *incy];
        x[i * *incx] = *c * xi + *s * yi;
        y[i * *incy] = *c * yi - *s * xi;
    }
}

#if COMPLEX

void F77_OF(PR, scal)(const INT *n, const R *alpha, T *x, const INT *incx)
{
    R by = *alpha;
    if (*incx > 0)
        for (int64_t i = 0; i < *n; i++) x[i * *incx] = by * x[i * *incx];
}

R F77_OF(RR, cabs1)(const T *x)
{
    return ABS1(*x);
}

T F77(dotu)(const INT *n, const T *x, const INT *incx, const T *y, const INT *incy)
{
    return dot(*n, FIRST(x, *n, *incx), *incx, FIRST(y, *n, *incy), *incy, false);
}

T F77(dotc)(const INT *n, const T *x, const INT *incx, const T *y, const INT *incy)
{
    return dot(*n, FIRST(x, *n, *incx), *incx, FIRST(y, *n, *incy), *incy, true);
}

/* c real, s complex with [c s; -conj(s) c] [a; b] = [r; 0]. Squares are taken in WIDE,
   so nothing needs scaling. */
void F77(rotg)(T *a, const T *b, R *c, T *s)
{
    WIDE a2 = ABS2(*a), b2 = ABS2(*b), both = sqrtl(a2 + b2), a1 = sqrtl(a2);
    if (b2 == 0) {
        *c = 1;
        *s = 0;
    } else if (a2 == 0) {
        *c = 0;
        *s = CONJ((WIDE _Complex)*b) / both;
        *a = both;
    } else {
        WIDE _Complex direction = (WIDE _Complex)*a / a1;
        *c = a1 / both;
        *s = direction * (CONJ((WIDE _Complex)*b) / both);
        *a = direction * both;
    }
}

#else

R F77(dot)(const INT *n, const R *x, const INT *incx, const R *y, const INT *incy)
{
    return dot(*n, FIRST(x, *n, *incx), *incx, FIRST(y, *n, *incy), *incy, false);
}

/* On return a is r, and b is z, from which c and s can be computed again. */
void F77(rotg)(R *a, R *b, R *c, R *s)
{
    if (*b == 0) {
        *c = 1;
        *s = 0;
        return;
    }
    if (*a == 0) {
        *c = 0;
        *s = 1;
        *a = *b;
        *b = 1;
        return;
    }
    bool a_larger = fabs(*a) > fabs(*b);
    WIDE r = copysign(1, a_larger ? *a : *b) * sqrtl(ABS2(*a) + ABS2(*b));
    *c = *a / r;
    *s = *b / r;
    *b = a_larger ? *s : *c != 0 ? 1 / *c : 1;
    *a = r;
}

/* param is flag, h11, h21, h12, h22. The flag says which of the four have implied values instead (-1 none; 0
   h11 = h22 = 1; 1 h21 = -1, h12 = 1; -2 H is the identity). */
void F77(rotm)(const INT *n, R *x, const INT *incx, R *y, const INT *incy, const R *param)
{
    R flag = param[0];
    if (flag == -2) return;
    R h11 = flag == 0 ? 1 : param[1], h22 = flag == 0 ? 1 : param[4];
    R h21 = flag > 0 ? -1 : param[2], h12 = flag > 0 ? 1 : param[3];
    x = FIRST(x, *n, *incx);
    y = FIRST(y, *n, *incy);
    for (int64_t i = 0; i < *n; i++) {
        R xi = x[i * *incx], yi = y[i * *incy];
        x[i * *incx] = xi * h11 + yi * h12;
        y[i * *incy] = xi * h21 + yi * h22;
    }
}

/* The modified Givens rotation (Lawson, Hanson, Kincaid, Krogh 1979): an H that makes the second component of
   H (sqrt(d1) x1, sqrt(d2) y1) zero. */
void F77(rotmg)(R *d1, R *d2, R *x1, const R *y1, R *param)
{
    const R gam = 4096, large = 16777216, small = 1 / large;
    R flag = -1, h11 = 0, h21 = 0, h12 = 0, h22 = 0;
    R p1 = *d1 * *x1, p2 = *d2 * *y1, q1 = p1 * *x1, q2 = p2 * *y1;
    if (*d1 >= 0 && p2 == 0) {
        param[0] = -2;
        return;
    }
    if (!(*d1 < 0) && fabs(q1) > fabs(q2)) {
        R u = 1 + p2 / p1 * (*y1 / *x1);
        if (u > 0) {
            flag = 0;
            h21 = -*y1 / *x1;
            h12 = p2 / p1;
            *d1 /= u;
            *d2 /= u;
            *x1 *= u;
        }
    } else if (!(*d1 < 0) && !(q2 < 0)) {
        flag = 1;
        h11 = p1 / p2;
        h22 = *x1 / *y1;
        R u = 1 + h11 * h22, held = *d2 / u;
        *d2 = *d1 / u;
        *d1 = held;
        *x1 = *y1 * u;
    }
    if (flag < 0) *d1 = *d2 = *x1 = 0;
    /* Scales d1 and |d2| to lie between small and large, which needs all of H. An infinity would never get
       there. */
    for (int which = 0; which < 2; which++) {
        R *d = which ? d2 : d1, *left = which ? &h21 : &h11, *right = which ? &h22 : &h12;
        while (*d != 0 && isfinite(*d) && (fabs(*d) <= small || fabs(*d) >= large)) {
            if (flag == 0) h11 = h22 = 1;
            if (flag == 1) {
                h21 = -1;
                h12 = 1;
            }
            flag = -1;
            bool up = fabs(*d) <= small;
            R by = up ? 1 / gam : gam;
            *d *= up ? large : small;
            *left *= by;
            *right *= by;
            if (!which) *x1 *= by;
        }
    }
    param[0] = flag;
    if (flag <= 0) {
        param[2] = h21;
        param[3] = h12;
    }
    if (flag != 0) {
        param[1] = h11;
        param[4] = h22;
    }
}

#if SINGLE

/* Products are summed in double; sdsdot rounds the sum with sb. */
double F77_OF(ds, dot)(const INT *n, const float *x, const INT *incx, const float *y, const INT *incy)
{
    double sum = 0;
    x = FIRST(x, *n, *incx);
    y = FIRST(y, *n, *incy);
    for (int64_t i = 0; i < *n; i++) sum += (double)x[i * *incx] * y[i * *incy];
    return sum;
}

float F77_OF(sds, dot)(const INT *n, const float *sb, const float *x, const INT *incx, const float *y,
                       const INT *incy)
{
    return *sb + F77_OF(ds, dot)(n, x, incx, y, incy);
}

#endif
#endif
