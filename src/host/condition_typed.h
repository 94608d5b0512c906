/* SPDX-License-Identifier: MIT */
/* Vectors of one type, for condition.c, which includes this once for each type with LETTER and ELEMENT
   defined. */
#define PASTE(x, letter) x##_##letter
#define NAME_(x, letter) PASTE(x, letter)
#define NAME(x) NAME_(x, LETTER)
#define REAL __typeof__(__real__(ELEMENT)0)

static double NAME(size)(const void *at, int64_t i)
{
    const ELEMENT x = ((const ELEMENT *)at)[i];
    return modulus((double)__real__ x, (double)__imag__ x);
}

static double NAME(sum)(int64_t n, const void *x)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += NAME(size)(x, i);
    return sum;
}

static int64_t NAME(largest)(int64_t n, const void *x)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (NAME(size)(x, i) > NAME(size)(x, best)) best = i;
    return best;
}

/* x / |x|; 1 for 0. False: x is real, and these are the signs of the last time, so nothing more is to be
   found. */
static bool NAME(take_signs)(int64_t n, void *at, signed char *signs)
{
    ELEMENT *x = at;
    bool changed = sizeof(ELEMENT) > sizeof(REAL);
    for (int64_t i = 0; i < n; i++) {
        const double size = NAME(size)(x, i);
        const signed char sign = __real__ x[i] >= 0 ? 1 : -1;
        changed = changed || sign != signs[i];
        signs[i] = sign;
        if (sizeof(ELEMENT) == sizeof(REAL)) x[i] = sign;
        else x[i] = size > 0 ? (ELEMENT)__builtin_complex((REAL)(__real__ x[i] / size),
                                                          (REAL)(__imag__ x[i] / size)) : 1;
    }
    return changed;
}

static void NAME(set_unit)(int64_t n, void *x, int64_t j)
{
    for (int64_t i = 0; i < n; i++) ((ELEMENT *)x)[i] = i == j;
}

static void NAME(set_all)(int64_t n, void *x)
{
    for (int64_t i = 0; i < n; i++) ((ELEMENT *)x)[i] = (ELEMENT)(1 / (double)n);
}

static void NAME(set_alternating)(int64_t n, void *x)
{
    for (int64_t i = 0; i < n; i++)
        ((ELEMENT *)x)[i] = (ELEMENT)((i % 2 ? -1 : 1) * (1 + (double)i / (double)(n - 1)));
}

#undef REAL
#undef PASTE
#undef NAME_
#undef NAME
#undef LETTER
#undef ELEMENT
