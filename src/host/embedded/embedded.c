/* SPDX-License-Identifier: MIT */
/* The parts of the embedded BLAS that have no precision: the error handlers, which print to stderr and
   return, and Fortran's LSAME. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "src/host/embedded/error.h"

enum { NAME_SIZE = 32 };

/* The exported handlers, which are the program's own if it has them. */
void xerbla_(const char *name, const int32_t *info, size_t length);
void xerbla_64_(const char *name, const int64_t *info, size_t length);
void cblas_xerbla(int32_t info, const char *name, const char *form, ...);
void cblas_xerbla_64(int64_t info, const char *name, const char *form, ...);

bool gpb_embedded_bad(int width, const char *name, int info)
{
    if (!info) return false;
    char upper[NAME_SIZE];
    size_t length = 0;
    for (; name[length] && length < sizeof upper - 1; length++)
        upper[length] = name[length] >= 'a' && name[length] <= 'z' ? name[length] - 'a' + 'A' : name[length];
    while (length < 6) upper[length++] = ' ';
    upper[length] = 0;                          /* for handlers written in C */
    if (width == 32) xerbla_(upper, &(int32_t){info}, length);
    else xerbla_64_(upper, &(int64_t){info}, length);
    return true;
}

bool gpb_embedded_legal(int width, const char *name, const char *kinds, const int *values)
{
    static const struct { char kind; int first, last; const char *word; } rules[] = {
        {'L', 101, 102, "layout"}, {'T', 111, 113, "Trans"}, {'U', 121, 122, "Uplo"}, {'D', 131, 132, "Diag"},
        {'S', 141, 142, "Side"},
    };
    char routine[NAME_SIZE];
    snprintf(routine, sizeof routine, "cblas_%s", name);
    for (int i = 0; kinds[i]; i++)
        for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
            if (kinds[i] != rules[r].kind || (values[i] >= rules[r].first && values[i] <= rules[r].last))
                continue;
            if (width == 32)
                cblas_xerbla(i + 1, routine, "Illegal %s setting, %d\n", rules[r].word, values[i]);
            else cblas_xerbla_64(i + 1, routine, "Illegal %s setting, %d\n", rules[r].word, values[i]);
            return false;
        }
    return true;
}

/* C callers may pass no length. The register then holds some other value, and the name ends with its NUL. */
static void print_illegal(const char *name, long long info, size_t length)
{
    length = strnlen(name, length < NAME_SIZE ? length : NAME_SIZE);
    while (length && name[length - 1] == ' ') length--;
    fprintf(stderr, " ** On entry to %.*s parameter number %2lld had an illegal value\n", (int)length, name,
            info);
}

void gpb_embedded_xerbla_(const char *name, const int32_t *info, size_t length)
{
    print_illegal(name, *info, length);
}
void gpb_embedded_xerbla_64_(const char *name, const int64_t *info, size_t length)
{
    print_illegal(name, *info, length);
}

static void print_cblas(long long info, const char *routine, const char *form, va_list more)
{
    if (info) fprintf(stderr, "Parameter %lld to routine %s was incorrect\n", info, routine);
    vfprintf(stderr, form, more);
}

/* netlib's handler ends the process here; a library should not. */
void gpb_embedded_cblas_xerbla(int32_t info, const char *routine, const char *form, ...)
{
    va_list more;
    va_start(more, form);
    print_cblas(info, routine, form, more);
    va_end(more);
}

void gpb_embedded_cblas_xerbla_64(int64_t info, const char *routine, const char *form, ...)
{
    va_list more;
    va_start(more, form);
    print_cblas(info, routine, form, more);
    va_end(more);
}

/* The name is an array of characters, which C callers pass without a hidden length. */
static size_t blank_padded(char *to, const char *name, long long length)
{
    memset(to, ' ', NAME_SIZE);
    memcpy(to, name, length < 0 ? 0 : length < NAME_SIZE ? (size_t)length : NAME_SIZE);
    return NAME_SIZE;
}

void gpb_embedded_xerbla_array_(const char *name, const int32_t *name_length, const int32_t *info)
{
    char padded[NAME_SIZE];
    xerbla_(padded, info, blank_padded(padded, name, *name_length));
}

void gpb_embedded_xerbla_array_64_(const char *name, const int64_t *name_length, const int64_t *info)
{
    char padded[NAME_SIZE];
    xerbla_64_(padded, info, blank_padded(padded, name, *name_length));
}

static int same(char a, char b)
{
    if (a >= 'a' && a <= 'z') a += 'A' - 'a';
    if (b >= 'a' && b <= 'z') b += 'A' - 'a';
    return a == b;
}

int32_t gpb_embedded_lsame_(const char *a, const char *b) { return same(*a, *b); }
int64_t gpb_embedded_lsame_64_(const char *a, const char *b) { return same(*a, *b); }
