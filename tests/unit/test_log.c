/* SPDX-License-Identifier: MIT */
/* What is written to stderr, how often, and that errno survives. Each case runs in a child whose stderr is
   a pipe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/service/log.h"

static char heard[1 << 20];

/* Runs `speak` in a child and returns its exit status. `heard` is what it wrote to stderr. A byte on
   stdout fails. */
static int listen_to(void (*speak)(void))
{
    int errors[2], output[2], status;
    assert_int_equal(pipe(errors) | pipe(output), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(errors[1], 2);
        dup2(output[1], 1);
        close(errors[0]);
        close(output[0]);
        gpb_log_note_stderr();                       /* as if the library were loaded now */
        speak();
        _exit(0);
    }
    close(errors[1]);
    close(output[1]);
    size_t length = 0;
    for (ssize_t more; (more = read(errors[0], heard + length, sizeof heard - 1 - length)) > 0;)
        length += (size_t)more;
    heard[length] = 0;
    char byte;
    assert_int_equal(read(output[0], &byte, 1), 0);
    close(errors[0]);
    close(output[0]);
    waitpid(child, &status, 0);
    return status;
}

static void say_warnings(void)
{
    for (int i = 0; i < 5; i++) gpb_log_warn("once, %d", i);
    char copy[] = "once, %d";  /* The same text elsewhere, as in another translation unit. */
    const char *volatile other = copy;
    (gpb_log_warn)(other, 9);
    gpb_log_warn("another");
}

static void warnings_once(void **state)
{
    (void)state;
    assert_int_equal(listen_to(say_warnings), 0);
    assert_string_equal(heard, "gpublas: once, 0\ngpublas: another\n");
}

static void say_lines(void)
{
    for (int i = 0; i < 3; i++) gpb_log_line("line %s", "x");
    gpb_log_debug("not heard");
}

static void say_debug(void)
{
    setenv("GPUBLAS_VERBOSE", "2", 1);
    gpb_log_debug("heard %d", 7);
}

static void lines_always_debug_when_asked(void **state)
{
    (void)state;
    unsetenv("GPUBLAS_VERBOSE");
    assert_int_equal(listen_to(say_lines), 0);
    assert_string_equal(heard, "gpublas: line x\ngpublas: line x\ngpublas: line x\n");
    assert_int_equal(listen_to(say_debug), 0);
    assert_string_equal(heard, "gpublas: heard 7\n");
}

static void say_long(void)
{
    char text[5000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    gpb_log_line("%s", text);
    gpb_log_line("next");
}

static void long_lines_are_cut(void **state)
{
    (void)state;
    assert_int_equal(listen_to(say_long), 0);
    char *end = strchr(heard, '\n');
    assert_non_null(end);
    assert_int_equal(end - heard, 1023);
    assert_string_equal(end + 1, "gpublas: next\n");
}

static void say_nothing_heard(void)
{
    close(2);
    errno = ERANGE;
    gpb_log_line("into the void");
    gpb_log_warn("into the void");
    if (errno != ERANGE) _exit(1);
    int full = open("/dev/full", O_WRONLY);
    if (full != 2) _exit(2);
    gpb_log_note_stderr();
    errno = EDOM;
    gpb_log_line("no room");
    if (errno != EDOM) _exit(3);
}

static void never_fails(void **state)
{
    (void)state;
    assert_int_equal(listen_to(say_nothing_heard), 0);
    assert_string_equal(heard, "");
}

/* A file of the program's has the number of stderr: it closed that, or never had one. */
static void say_beside_a_file(void)
{
    const int home = dup(2), file = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    dup2(file, 2);
    gpb_log_line("not for this file");
    gpb_log_warn("nor is this");
    if (lseek(file, 0, SEEK_END) != 0) _exit(1);
    dup2(home, 2);
    gpb_log_line("home again");
    close(2);
    gpb_log_note_stderr();
    if (dup2(file, 2) != 2) _exit(2);
    gpb_log_line("not for this file");
    if (lseek(file, 0, SEEK_END) != 0) _exit(3);
}

static void spares_other_files(void **state)
{
    (void)state;
    assert_int_equal(listen_to(say_beside_a_file), 0);
    assert_string_equal(heard, "gpublas: home again\n");
}

/* A locale whose decimal point is a comma. It is made here, because Debian's own may not be installed. */
static bool comma(void)
{
    char folder[] = "/tmp/gpublas-locale-XXXXXX", command[256];
    if (!mkdtemp(folder)) return false;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 --no-archive %s/comma >/dev/null 2>&1",
             folder);
    setenv("LOCPATH", folder, 1);
    bool made = system(command) != -1 && setlocale(LC_ALL, "comma") && *localeconv()->decimal_point == ',';
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) != -1 && made;
}

static void say_number(void)
{
    char own[8];
    if (!comma()) _exit(77);
    gpb_log_line("ms=%.3f", 1.5);
    snprintf(own, sizeof own, "%.1f", 1.5);
    if (strcmp(own, "1,5")) _exit(1);                /* the program keeps its own locale */
}

static void decimal_point_in_any_locale(void **state)
{
    (void)state;
    int status = listen_to(say_number);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) skip();
    assert_int_equal(status, 0);
    assert_string_equal(heard, "gpublas: ms=1.500\n");
}

/* stderr is a pipe that nobody reads, and SIGPIPE ends the process, as by default. No line of ours may end
   the program, nor take a signal that is its own. */
static void say_into_closed_pipe(void)
{
    int ends[2];
    sigset_t set;
    signal(SIGPIPE, SIG_DFL);
    if (pipe(ends) || dup2(ends[1], 2) != 2) _exit(1);
    gpb_log_note_stderr();
    close(ends[0]);
    errno = ERANGE;
    gpb_log_line("to nobody");
    gpb_log_warn("to nobody");
    if (errno != ERANGE) _exit(2);
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    if (sigismember(&set, SIGPIPE)) _exit(3);        /* the mask is as before */
    sigpending(&set);
    if (sigismember(&set, SIGPIPE)) _exit(4);        /* nothing is left to be delivered later */
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    raise(SIGPIPE);
    gpb_log_line("to nobody");
    sigpending(&set);
    if (!sigismember(&set, SIGPIPE)) _exit(5);       /* the program's own is still there */
}

static void survives_a_closed_pipe(void **state)
{
    (void)state;
    assert_int_equal(listen_to(say_into_closed_pipe), 0);
}

static void *say_cancelled(void *unused)
{
    pthread_cancel(pthread_self());
    gpb_log_line("not cancelled here");
    gpb_log_warn("nor here");
    return unused;
}

static void say_while_cancelled(void)
{
    pthread_t thread;
    void *how;
    pthread_create(&thread, NULL, say_cancelled, NULL);
    pthread_join(thread, &how);
    if (how == PTHREAD_CANCELED) _exit(1);
}

static void no_cancellation_point(void **state)
{
    (void)state;
    assert_int_equal(listen_to(say_while_cancelled), 0);
    assert_string_equal(heard, "gpublas: not cancelled here\ngpublas: nor here\n");
}

static void *say_many(void *letter)
{
    char word[9] = { 0 };
    memset(word, *(char *)letter, 8);
    for (int i = 0; i < 500; i++) gpb_log_line("%s", word);
    return letter;
}

static void say_in_threads(void)
{
    static char letters[] = "abcd";
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, say_many, &letters[i]);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}

static void lines_do_not_mix(void **state)
{
    (void)state;
    assert_int_equal(listen_to(say_in_threads), 0);
    int lines = 0;
    for (char *line = heard, *end; (end = strchr(line, '\n')); line = end + 1, lines++) {
        char expected[9] = { 0 };
        memset(expected, line[9], 8);
        *end = 0;
        assert_memory_equal(line, "gpublas: ", 9);
        assert_string_equal(line + 9, expected);
    }
    assert_int_equal(lines, 2000);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warnings_once),
        cmocka_unit_test(lines_always_debug_when_asked),
        cmocka_unit_test(long_lines_are_cut),
        cmocka_unit_test(never_fails),
        cmocka_unit_test(spares_other_files),
        cmocka_unit_test(decimal_point_in_any_locale),
        cmocka_unit_test(survives_a_closed_pipe),
        cmocka_unit_test(no_cancellation_point),
        cmocka_unit_test(lines_do_not_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
