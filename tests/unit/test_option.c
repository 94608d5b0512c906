/* SPDX-License-Identifier: MIT */
/* The option table (options.golden), the environment, setting and asking from many threads. The
   environment is read once a process, so those cases run in children. usage: test_option options.golden |
   test_option --print */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>

#include "include/gpublas.h"
#include "src/service/log.h"
#include "src/service/option.h"
#include "tests/unit/golden.h"

static void golden(void **state)
{
    assert_true(golden_matches(gpb_option_print, *state));
}

static char heard[1 << 16];

/* Runs `ask` in a child with these variables and returns what it returns. `heard` is what the child wrote
   to stderr. */
static int with(const char *const *variables, int (*ask)(void))
{
    int errors[2], status;
    assert_int_equal(pipe(errors), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(errors[1], 2);
        gpb_log_note_stderr();
        for (; *variables; variables += 2) setenv(variables[0], variables[1], 1);
        _exit(ask());
    }
    close(errors[1]);
    size_t length = 0;
    for (ssize_t more; (more = read(errors[0], heard + length, sizeof heard - 1 - length)) > 0;)
        length += (size_t)more;
    heard[length] = 0;
    close(errors[0]);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int good_values(void)
{
    return gpb_option_number(GPB_OPTION_OFFLOAD) == 1 && gpb_option_number(GPB_OPTION_MATH) == 2
           && gpb_option_number(GPB_OPTION_MEMORY) == INT64_C(3) << 30
           && gpb_option_number(GPB_OPTION_VERBOSE) == 2
           && strcmp(gpb_option_text(GPB_OPTION_HOST_BLAS), "/x/libblas.so") == 0
           && gpb_option_text(GPB_OPTION_KERNEL) == NULL
           && strcmp(gpb_option_text(GPB_OPTION_DEVICES), "1,2") == 0;
}

static int defaults(void)
{
    for (int i = 0; i < 3; i++)                      /* asked again, warned no more */
        if (gpb_option_number(GPB_OPTION_OFFLOAD) || gpb_option_number(GPB_OPTION_MATH)
            || gpb_option_number(GPB_OPTION_MEMORY) || gpb_option_number(GPB_OPTION_VERBOSE)
            || gpb_option_text(GPB_OPTION_HOST_BLAS) || gpb_option_text(GPB_OPTION_KERNEL)
            || strcmp(gpb_option_text(GPB_OPTION_DEVICES), "auto") != 0)
            return 0;
    return 1;
}

static void environment(void **state)
{
    (void)state;
    const char *good[] = { "GPUBLAS_OFFLOAD", "always", "GPUBLAS_MATH", "TF32", "GPUBLAS_MEMORY", "3g",
                           "GPUBLAS_VERBOSE", "2", "GPUBLAS_HOST_BLAS", "/x/libblas.so", "GPUBLAS_KERNEL", "",
                           "GPUBLAS_DEVICES", "1,2", NULL };
    assert_int_equal(with(good, good_values), 1);
    assert_string_equal(heard, "");
    const char *none[] = { NULL };
    assert_int_equal(with(none, defaults), 1);
    assert_string_equal(heard, "");
}

static void bad_values_warn_once(void **state)
{
    (void)state;
    const char *bad[] = {
        "GPUBLAS_OFFLOAD", "sometimes", "GPUBLAS_VERBOSE", "3", "GPUBLAS_MEMORY", "4X", NULL
    };
    assert_int_equal(with(bad, defaults), 1);
    assert_string_equal(
        heard, "gpublas: warning: GPUBLAS_OFFLOAD=sometimes is not one of auto|always|never|eager; "
               "using auto\n"
               "gpublas: warning: GPUBLAS_MEMORY=4X is not a number of bytes; using 0\n"
               "gpublas: warning: GPUBLAS_VERBOSE=3 is not in 0..2; using 0\n");
}

static void unknown_names_warn(void **state)
{
    (void)state;
    const char *slip[] = { "GPUBLAS_OFLOAD", "always", NULL };
    assert_int_equal(with(slip, defaults), 1);
    assert_string_equal(heard,
                        "gpublas: warning: unknown option GPUBLAS_OFLOAD; did you mean GPUBLAS_OFFLOAD?\n");
    const char *lower[] = { "GPUBLAS_verbose", "1", NULL };
    assert_int_equal(with(lower, defaults), 1);
    assert_string_equal(heard,
                        "gpublas: warning: unknown option GPUBLAS_verbose; did you mean GPUBLAS_VERBOSE?\n");
    const char *strange[] = { "GPUBLAS_COLOUR_OF_THE_SKY", "blue", "NOT_GPUBLAS_X", "1", NULL };
    assert_int_equal(with(strange, defaults), 1);
    assert_string_equal(heard, "gpublas: warning: unknown option GPUBLAS_COLOUR_OF_THE_SKY\n");
}

static void set_and_get(void **state)
{
    (void)state;
    static const struct { const char *name, *value, *got; } good[] = {
        { "OFFLOAD", "never", "never" }, { "gpublas_offload", "AUTO", "auto" },
        { "Verbose", "1", "1" },         { "verbose", "", "0" },
        { "MEMORY", "1024", "1K" },      { "MEMORY", "1536m", "1536M" },
        { "MEMORY", "1000", "1000" },    { "MEMORY", "2T", "2T" },
        { "MEMORY", NULL, "0" },         { "KERNEL", "naive", "naive" },
        { "KERNEL", NULL, "" },          { "GPUBLAS_DEVICES", "all", "all" },
        { "DEVICES", NULL, "auto" },
    };
    static const struct { const char *name, *value; } bad[] = {
        { "OFFLOAD", "alway" },
        { "OFFLOAD", "always|never" },
        { "OFFLOAD", "alwaysx" },
        { "VERBOSE", "3" },
        { "VERBOSE", "-1" },
        { "VERBOSE", "1x" },
        { "VERBOSE", "99999999999999999999" },
        { "MEMORY", "-1" },
        { "MEMORY", "1Q" },
        { "MEMORY", "1GB" },
        { "MEMORY", "9999999T" },
        { "MEMORY", "G" },
        { "MEMORY", "99999999999999999999" },
        { "OFFLOADS", "auto" }, { "", "auto" }, { "GPUBLAS_", "auto" }, { NULL, "auto" },
    };
    char text[64];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(gpublas_set_option(good[i].name, good[i].value), 0);
        assert_int_equal(gpublas_get_option(good[i].name, text, sizeof text), strlen(good[i].got));
        assert_string_equal(text, good[i].got);
    }
    gpublas_set_option("OFFLOAD", "always");
    gpublas_set_option("VERBOSE", "2");
    gpublas_set_option("MEMORY", "7K");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(gpublas_set_option(bad[i].name, bad[i].value), -1);
    assert_int_equal(gpb_option_number(GPB_OPTION_OFFLOAD), 1);
    assert_int_equal(gpb_option_number(GPB_OPTION_VERBOSE), 2);
    assert_int_equal(gpb_option_number(GPB_OPTION_MEMORY), 7 << 10);
    assert_int_equal(gpublas_get_option("NOTHING", text, sizeof text), -1);
    assert_int_equal(gpublas_get_option("OFFLOAD", text, 3), 6);         /* cut, and terminated */
    assert_string_equal(text, "al");
    gpublas_set_option("OFFLOAD", NULL);
    gpublas_set_option("VERBOSE", NULL);
    gpublas_set_option("MEMORY", NULL);
}

static void texts_stay(void **state)
{
    (void)state;
    gpb_option_set("KERNEL", "naive");
    const char *first = gpb_option_text(GPB_OPTION_KERNEL);
    gpb_option_set("KERNEL", "coalesced");
    assert_string_equal(gpb_option_text(GPB_OPTION_KERNEL), "coalesced");
    assert_string_equal(first, "naive");
    gpb_option_set("KERNEL", "naive");
    assert_ptr_equal(gpb_option_text(GPB_OPTION_KERNEL), first);  /* no more memory for a value seen before */
    gpb_option_set("KERNEL", NULL);
    assert_null(gpb_option_text(GPB_OPTION_KERNEL));
    assert_string_equal(first, "naive");
}

static pthread_barrier_t together;

static void *ask_and_set(void *number)
{
    pthread_barrier_wait(&together);
    static const char *names[] = { "naive", "coalesced", "shared" };
    intptr_t wrong = 0;
    for (int i = 0; i < 3000; i++) {
        if ((i + (intptr_t)number) % 7 == 0) {
            gpb_option_set("KERNEL", names[i % 3]);
            gpb_option_set("OFFLOAD", i % 2 ? "never" : "auto");
        }
        const char *text = gpb_option_text(GPB_OPTION_KERNEL);
        int64_t offload = gpb_option_number(GPB_OPTION_OFFLOAD);
        wrong += text && strcmp(text, "naive") && strcmp(text, "coalesced") && strcmp(text, "shared");
        wrong += offload != 0 && offload != 2;
    }
    return (void *)wrong;
}

/* In a child: the first question comes from all threads at once. */
static int from_many_threads(void)
{
    pthread_t threads[8];
    intptr_t wrong = 0;
    pthread_barrier_init(&together, NULL, 8);
    for (intptr_t i = 0; i < 8; i++) pthread_create(&threads[i], NULL, ask_and_set, (void *)i);
    for (int i = 0; i < 8; i++) {
        void *more;
        pthread_join(threads[i], &more);
        wrong += (intptr_t)more;
    }
    return wrong == 0;
}

static void threads(void **state)
{
    (void)state;
    const char *bad[] = { "GPUBLAS_VERBOSE", "9", NULL };
    for (int i = 0; i < 20; i++) {
        assert_int_equal(with(bad, from_many_threads), 1);
        assert_string_equal(heard, "gpublas: warning: GPUBLAS_VERBOSE=9 is not in 0..2; using 0\n");
    }
}

int main(int count, char **arguments)
{
    static const char *ours[] = { "OFFLOAD", "KERNEL", "MATH", "HOST_BLAS", "DEVICES", "MEMORY", "VERBOSE" };
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {  /* whatever the tester's shell has set */
        char name[64];
        snprintf(name, sizeof name, "GPUBLAS_%s", ours[i]);
        unsetenv(name);
    }
    golden_print(gpb_option_print, count, arguments);
    /* The children come first, because nothing has been read yet. */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(environment),
        cmocka_unit_test(bad_values_warn_once),
        cmocka_unit_test(unknown_names_warn),
        cmocka_unit_test(threads),
        cmocka_unit_test_prestate(golden, count > 1 ? arguments[1] : "tests/unit/options.golden"),
        cmocka_unit_test(set_and_get),
        cmocka_unit_test(texts_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
