/* SPDX-License-Identifier: MIT */
/* GPUBLAS_VERIFY's check finds right products right and wrong ones wrong, in all four types: each element by
   itself, and groups of columns. A wrong C is put back before the host computes it, and its operands can be
   saved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "src/hub/verify.c"
#include "tests/unit/plain_product.h"

enum { M = 9, N = 7, K = 40, LD = 44, MAX_BYTES = LD * LD * 16 };

static _Alignas(16) char a[MAX_BYTES], b[MAX_BYTES], c[MAX_BYTES], before[MAX_BYTES], seen[MAX_BYTES];
static int repairs;

bool gpb_repair(const gpb_job *job)
{
    (void)job;
    repairs++;
    memcpy(seen, c, sizeof c);
    return true;
}

static void fill(enum gpb_type type, void *at)
{
    static uint64_t state = 1;
    for (int64_t x = 0; x < LD * LD * (is_real(type) ? 1 : 2); x++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        write_real(type, at, x, (double)(int64_t)state * 0x1p-63);
    }
}

static gpb_call call_of(enum gpb_type type, char transa, char transb, char uplo, bool adds)
{
    const double _Complex i = is_real(type) ? 0 : __builtin_complex(0.0, 1.0);
    gpb_call g = { .symbol = "gemm", .type = type, .m = uplo == 'G' ? M : N, .n = N, .k = K, .batch = 1,
                   .alpha = 1.5 + 0.25 * i, .beta = adds ? 0.75 - 0.5 * i : 0,
                   .x = { { .base = a, .ld = LD, .trans = transa }, { .base = b, .ld = LD, .trans = transb },
                          { .base = c, .ld = LD, .trans = 'N', .uplo = uplo } } };
    fill(type, a);
    fill(type, b);
    fill(type, c);
    memcpy(before, c, sizeof c);
    return g;
}

static gpb_verify verify_of(const gpb_call *g)
{
    gpb_verify verify = { .wanted = true };
    if (g->beta != 0) {
        verify.old = malloc((size_t)(g->m * g->n) * gpb_call_element(g));
        assert_non_null(verify.old);
        copy(g, verify.old, false);
    }
    return verify;
}

/* Makes an element NaN. */
static void spoil(enum gpb_type type, void *at, int64_t which)
{
    const int parts = is_real(type) ? 1 : 2;
    for (int part = 0; part < parts; part++) write_real(type, at, which * parts + part, __builtin_nan(""));
}

/* Far above the bound of one element here, and far below what a wrong element is off by. */
static double fault_of(const gpb_call *g) { return 4096 * K * (is_single(g->type) ? 0x1p-24 : 0x1p-53); }

/* Every element and each of its parts must be seen to be wrong, and only if it is. */
static void judges(const gpb_call *g)
{
    const int parts = is_real(g->type) ? 1 : 2;
    gpb_verify verify = verify_of(g);
    sight s = { .call = g };
    multiply(g);
    assert_true(is_right(&verify, g, &s));
    for (int64_t j = 0; j < g->n; j++) {
        const gpb_matrix_rows rows = gpb_matrix_rows_of(g->x[GPB_C].uplo, 0, g->m, j);
        for (int64_t x = (rows.first + j * LD) * parts; x < (rows.last + j * LD) * parts; x++) {
            const double right = read_real(g->type, c, x);
            write_real(g->type, c, x, right + fault_of(g));
            assert_false(is_right(&verify, g, &s));
            assert_int_equal(s.i + s.j * LD, x / parts);
            /* Nothing but 0 is right for the imaginary part of a real diagonal. */
            const bool is_zero = gpb_call_hermitian(g) && s.i == s.j && x % 2;
            assert_true(is_zero || (s.error > s.bound && s.error < 2 * fault_of(g)));
            write_real(g->type, c, x, right);
        }
    }
    free(verify.old);
}

static void every_form(void **state)
{
    (void)state;
    for (enum gpb_type type = 0; type < GPB_TYPES; type++)
        for (int form = 0; form < 54; form++) {
            const gpb_call g = call_of(type, "NTC"[form % 3], "NTC"[form / 3 % 3], "GUL"[form / 9 % 3],
                                       form / 27);
            judges(&g);
        }
}

/* A symmetric or Hermitian operand on either side. What is not stored of it is NaN. */
static void every_side(void **state)
{
    (void)state;
    for (enum gpb_type type = 0; type < GPB_TYPES; type++)
        for (int form = 0; form < (is_real(type) ? 4 : 8); form++) {
            gpb_call g = call_of(type, 'N', 'N', 'G', form & 1);
            const enum gpb_operand x = form & 2 ? GPB_B : GPB_A;
            g.m = M;
            g.k = x == GPB_A ? M : N;
            g.x[x].uplo = "UL"[form & 1];
            g.x[x].structure = form & 4 ? GPB_HERMITIAN : GPB_SYMMETRIC;
            for (int64_t j = 0; j < g.k; j++)
                for (int64_t i = 0; i < g.k; i++)
                    if (is_image(&g.x[x], i, j)) spoil(type, (char *)(uintptr_t)g.x[x].base, i + j * LD);
            judges(&g);
        }
}

/* Both products of SYR2K and HER2K count, with an old C of which the diagonal is real. */
static void both_products(void **state)
{
    (void)state;
    for (enum gpb_type type = 0; type < GPB_TYPES; type++)
        for (int form = 0; form < (is_real(type) ? 8 : 16); form++) {
            const bool hermitian = form & 8, down = form & 1;
            const char other = hermitian ? 'C' : 'T';
            gpb_call g = call_of(type, down ? other : 'N', down ? 'N' : other, "LU"[form / 2 % 2], form & 4);
            g.routine = GPB_ROUTINE_SYR2K;
            if (hermitian) g.x[GPB_C].structure = GPB_HERMITIAN;
            if (hermitian) g.beta = __real__ g.beta;
            judges(&g);
        }
}

/* A group's sum is off by as much as its wrong element. */
static void groups(void **state)
{
    (void)state;
    for (enum gpb_type type = 0; type < GPB_TYPES; type++) {
        const gpb_call g = call_of(type, 'N', 'C', 'G', true);
        const int64_t last = 5 + 6 * LD, which = is_real(type) ? last : 2 * last + 1;
        gpb_verify verify = verify_of(&g);
        sight s = { .call = &g, .a = a, .b = b, .c = c, .old = verify.old, .cols = N };
        _Alignas(16) char room[6][K * 32];
        s.bs = room[0];
        s.babs = room[1];
        s.want = room[2];
        s.size = room[3];
        s.product = room[4];
        s.magnitude = room[5];
        multiply(&g);
        assert_true(check_group(&s));
        write_real(type, c, which, read_real(type, c, which) + fault_of(&g));
        assert_false(check_group(&s));
        assert_int_equal(s.i, 5);
        free(verify.old);
    }
}

/* TF32 rounds singles only. */
static void coarse(void **state)
{
    (void)state;
    for (enum gpb_type type = 0; type < GPB_TYPES; type++) {
        const gpb_call g = call_of(type, 'N', 'N', 'G', false);
        gpb_verify verify = verify_of(&g);
        sight s = { .call = &g, .coarse = true };
        multiply(&g);
        write_real(type, c, 0, read_real(type, c, 0) + 0x1p-10);
        assert_int_equal(is_right(&verify, &g, &s), is_single(type));
    }
}

/* A NaN or an infinity may be neither lost nor invented, except where the type overflows. */
static void special_values(void **state)
{
    (void)state;
    for (enum gpb_type type = 0; type < GPB_TYPES; type++) {
        const double odd[] = { __builtin_nan(""), __builtin_inf() };
        for (int which = 0; which < 2; which++) {
            gpb_call g = call_of(type, 'N', 'N', 'G', false);
            gpb_verify verify = verify_of(&g);
            sight s = { .call = &g };
            multiply(&g);
            write_real(type, a, 0, odd[which]);
            assert_false(is_right(&verify, &g, &s));
            multiply(&g);
            assert_true(is_right(&verify, &g, &s));
            fill(type, a);
            assert_false(is_right(&verify, &g, &s));
            g.alpha = is_single(type) ? 0x1p127 : 0x1p1023;
            for (int64_t x = 0; x < LD * 2; x++) write_real(type, c, x, odd[which]);
            g.n = 1;
            fill(type, a);
            for (int64_t x = 0; x < K; x++) write_real(type, b, is_real(type) ? x : 2 * x, 1);
            assert_true(is_right(&verify, &g, &s));
        }
    }
}

/* A dumped symmetric operand is whole, so that none of its numbers is a NaN of the triangle that is not
   read. */
static void dumps_symmetric(void **state)
{
    (void)state;
    const char *folder = getenv("GPUBLAS_VERIFY_DUMP");
    char path[256];
    double numbers[N * N];
    gpb_call g = call_of(GPB_TYPE_d, 'N', 'N', 'G', false);
    snprintf(path, sizeof path, "%s/operand", folder);
    g.k = N;
    g.x[GPB_B].uplo = 'L';
    g.x[GPB_B].structure = GPB_SYMMETRIC;
    for (int64_t j = 0; j < N; j++)
        for (int64_t i = 0; i < j; i++) spoil(GPB_TYPE_d, b, i + j * LD);
    const int file = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(file >= 0);
    write_operand(file, &g, GPB_B, b);
    assert_int_equal(pread(file, numbers, sizeof numbers, 0), sizeof numbers);
    for (int64_t j = 0; j < N; j++)
        for (int64_t i = 0; i < N; i++)
            assert_true(numbers[i + j * N] == read_real(GPB_TYPE_d, b, i < j ? j + i * LD : i + j * LD));
    close(file);
    unlink(path);
}

/* From begin to end. Of C, only the call's own part comes back. */
static void puts_back_and_dumps(void **state)
{
    (void)state;
    const char *folder = getenv("GPUBLAS_VERIFY_DUMP");
    for (enum gpb_type type = 0; type < GPB_TYPES; type++) {
        const gpb_call g = call_of(type, 'N', 'T', 'L', true);
        const gpb_facts facts = { 0 };
        const gpb_outcome out = { .done = true };
        char path[256], header[256];
        struct stat file;
        gpb_verify verify = gpb_verify_begin(&g, &facts);
        assert_non_null(verify.old);
        multiply(&g);
        write_real(type, c, 0, 1000);
        repairs = 0;
        assert_false(gpb_verify_end(&verify, &g, &facts, &out));
        assert_int_equal(repairs, 1);
        assert_memory_equal(seen, before, sizeof c);
        snprintf(path, sizeof path, "%s/gpublas-%d-%d.dump", folder, (int)getpid(), (int)type + 1);
        FILE *dumped = fopen(path, "r");
        assert_non_null(dumped);
        assert_non_null(fgets(header, sizeof header, dumped));
        fclose(dumped);
        const char head[] = { 't', 'y', 'p', 'e', '=', gpb_type_of(type)->letter, ' ', 0 };
        assert_non_null(strstr(header, head));
        assert_int_equal(stat(path, &file), 0);
        assert_int_equal((size_t)file.st_size - strlen(header),
                         (size_t)(N * K + N * K + N * N + N * N) * gpb_type_bytes(type));
        unlink(path);
    }
}

int main(void)
{
    char folder[] = "/tmp/test_verify.XXXXXX";
    if (!mkdtemp(folder)) return 1;
    setenv("GPUBLAS_VERIFY", "1", 1);
    setenv("GPUBLAS_VERIFY_DUMP", folder, 1);
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_form), cmocka_unit_test(every_side),
                                        cmocka_unit_test(both_products),
                                        cmocka_unit_test(groups),
                                        cmocka_unit_test(coarse), cmocka_unit_test(special_values),
                                        cmocka_unit_test(dumps_symmetric),
                                        cmocka_unit_test(puts_back_and_dumps) };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
