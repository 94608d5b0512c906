/* SPDX-License-Identifier: MIT */
/* The text of what is kept of programs: what is printed is read again, nothing else is believed, and the
   oldest program goes when there are too many. usage: test_history_file */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "src/learn/history_file.h"
#include "tests/unit/random.h"

static gpb_history_file kept, again;
static char text[GPB_HISTORY_FILE_BYTES];

static uint64_t name_of(int i) { return UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(i + 1); }

static size_t fill(int programs)
{
    kept = (gpb_history_file){ .start_s = { 0.341, 0.029 }, .lost_s = { 0.036, 0.01 } };
    for (int i = 0; i < programs; i++)
        gpb_history_file_put(&kept, name_of(i), (gpb_history){ 1 + i % 1000, i % 2, 0.5 * i,
                                                               { 0.375 * i, 0.25 * i } });
    return gpb_history_file_print(&kept, text, sizeof text);
}

static void comes_back(void **state)
{
    (void)state;
    for (int programs = 0; programs <= GPB_HISTORY_PROGRAMS; programs += 128) {
        const size_t length = fill(programs);
        char small[64];
        assert_true(length > 0 && length == strlen(text) && gpb_history_file_parse(&again, text, length));
        static char second[GPB_HISTORY_FILE_BYTES];
        assert_true(again.programs == programs && again.start_s[0] == 0.341 && again.lost_s[1] == 0.01);
        assert_true(gpb_history_file_print(&again, second, sizeof second) == length);
        assert_string_equal(text, second);
        if (programs) assert_int_equal(gpb_history_file_print(&kept, small, sizeof small), 0);
    }
    /* The longest numbers that there can be fit. */
    for (int i = 0; i < GPB_HISTORY_PROGRAMS; i++)
        kept.row[i] = (struct gpb_history_row){
            UINT64_MAX, { GPB_START_MAX_RUNS, GPB_START_MAX_RUNS, 1e6, { 1e6, 1e6 } } };
    assert_true(gpb_history_file_print(&kept, text, sizeof text) > 0);
}

static void oldest_goes(void **state)
{
    (void)state;
    fill(GPB_HISTORY_PROGRAMS);
    gpb_history_file_put(&kept, name_of(0), (gpb_history){ 7, 1, 8, { 4, 3 } });   /* known: now first */
    gpb_history_file_put(&kept, 42, (gpb_history){ 1, 0, 2, { 1, 1 } });           /* new: the last goes */
    assert_int_equal(kept.programs, GPB_HISTORY_PROGRAMS);
    assert_true(kept.row[0].program == 42 && kept.row[1].program == name_of(0));
    assert_true(gpb_history_file_find(&kept, name_of(0)).total_s == 8);
    assert_int_equal(gpb_history_file_find(&kept, name_of(1)).runs, 0);
    assert_int_equal(gpb_history_file_find(&kept, name_of(2)).runs, 3);
}

static bool is_read(const char *body) { return gpb_history_file_parse(&again, body, strlen(body)); }

#define HEAD "gpublas programs 2\n"
static void nothing_else_is_believed(void **state)
{
    (void)state;
    assert_true(is_read(HEAD "end\n") && is_read(HEAD "start_us 1 2\nprogram 1 2 1 1 30 25 20\nend\n"));
    static const char *const bad[] = { "",
                                       HEAD,
                                       HEAD "end",
                                       HEAD "end\n\n",
                                       "gpublas programs 1\nend\n",
                                       HEAD "start_us 1\nend\n", HEAD "lost_us 1 2 3\nend\n",
                                       HEAD "start_us 1 9999999999999\nend\n",
                                       HEAD "program 1 2 1 1 30 20\nend\n",
                                       HEAD "program 1 2 1 1 30 20 20 1\nend\n",
                                       HEAD "program 1 2 0 0 30 20 20\nend\n",
                                       HEAD "program 1 2 1001 1 30 20 20\nend\n",
                                       HEAD "program 1 2 1 1 20 30 20\nend\n",
                                       HEAD "program 1 2 1 1 20 20 30\nend\n",
                                       HEAD "program 1 2 1 2 30 20 20\nend\n",
                                       HEAD "program 4294967296 2 1 1 30 20 20\nend\n",
                                       HEAD "program -1 2 1 1 30 20 20\nend\n",
                                       HEAD "program 1 2 1 1 99999999999999 20 20\nend\n",
                                       HEAD "other 1\nend\n" };
    fill(3);
    again = kept;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(is_read(bad[i]));
    assert_memory_equal(&kept, &again, sizeof kept);
}

/* Whatever is read is in bounds, and can be printed and read again. */
static void mutations(void **state)
{
    (void)state;
    static char copy[GPB_HISTORY_FILE_BYTES], page[GPB_HISTORY_FILE_BYTES];
    static gpb_history_file read, third;
    const size_t whole = fill(4);
    int good = 0;
    for (int i = 0; i < 100000; i++) {
        size_t length = whole;
        memcpy(copy, text, whole);
        for (int64_t changes = 1 + below(3); changes; changes--) {
            const size_t at = (size_t)below((int64_t)length);
            if (below(3)) copy[at] = (char)"0123456789 \nx"[below(13)];
            else length = below(2) ? at + 1 : length;
        }
        if (!gpb_history_file_parse(&read, copy, length)) continue;
        good++;
        assert_true(read.programs >= 0 && read.programs <= GPB_HISTORY_PROGRAMS);
        for (int j = 0; j < read.programs; j++) {
            const gpb_history *runs = &read.row[j].runs;
            assert_true(runs->runs >= 1 && runs->quiet_runs >= 0 && runs->quiet_runs <= runs->runs);
            assert_true(runs->total_s <= 1e6);
            for (int at = 0; at < GPB_START_MOMENTS; at++)
                assert_true(runs->late_s[at] >= 0 && runs->late_s[at] <= runs->total_s);
        }
        const size_t printed = gpb_history_file_print(&read, page, sizeof page);
        assert_true(printed > 0 && gpb_history_file_parse(&third, page, printed));
    }
    assert_true(good > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(comes_back), cmocka_unit_test(oldest_goes),
                                        cmocka_unit_test(nothing_else_is_believed),
                                        cmocka_unit_test(mutations) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
