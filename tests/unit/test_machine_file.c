/* SPDX-License-Identifier: MIT */
/* The calibration's text. What is printed is read again, and nothing else is believed: 10^5 random
   mutations leave every figure in bounds and crash nothing. usage: test_machine_file */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/learn/file.h"
#include "src/learn/machine_file.h"

static const char key[] = "Some CPU @ 3 GHz, 16 cores, NVIDIA H200, CUDA 13000, libgpublas 0.1.0";
static gpb_machine first, again;
static char text[GPB_MACHINE_FILE_BYTES];

static uint64_t seed = 88172645463325252u;

static uint64_t below(uint64_t limit)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % limit;
}

static void fill(gpb_machine *machine, int every)
{
    memset(machine, 0, sizeof *machine);
    machine->dma_mbs = 50900;
    machine->core_mbs = 10100;
    machine->launch_ns = 11300;
    for (int i = 0; i < GPB_LEARN_CLASSES; i += every) {
        for (int t = 0; t < GPB_MACHINE_THREADS; t++)
            gpb_learn_set(&machine->host[t], i,
                          (gpb_learn_cell){ .ratio = (uint32_t)(65536 * (0.5 + (i + t) % 7)),
                                            .seen = 2 + i % 7 });
        gpb_learn_set(&machine->gpu[i % GPB_MACHINE_GPU], i, (gpb_learn_cell){ .ratio = 1024, .seen = 8 });
    }
}

static void comes_back(void **state)
{
    (void)state;
    for (int every = 1; every < 60; every += 29) {      /* at 1 every class is there, and still fits */
        fill(&first, every);
        size_t length = gpb_machine_file_print(&first, key, text, sizeof text);
        assert_true(length > 100 && length == strlen(text));
        memset(&again, 0, sizeof again);
        assert_true(gpb_machine_file_parse(&again, key, text, length));
        assert_memory_equal(&first, &again, sizeof first);
        char small[64];
        assert_int_equal(gpb_machine_file_print(&first, key, small, sizeof small), 0);
    }
    /* What was learnt in the meantime is kept. */
    size_t length = gpb_machine_file_print(&first, key, text, sizeof text);
    gpb_learn_set(&again.host[2], 0, (gpb_learn_cell){ .ratio = 77777, .seen = 3 });
    assert_true(gpb_machine_file_parse(&again, key, text, length));
    assert_int_equal(((gpb_learn_cell)again.host[2].cell[0]).ratio, 77777);
}

/* Reads a text of these lines after the title and the key. */
static bool parses(const char *lines)
{
    memset(&again, 0, sizeof again);
    snprintf(text, sizeof text, "gpublas calibration 1\nmachine %s\n%s", key, lines);
    bool good = gpb_machine_file_parse(&again, key, text, strlen(text));
    memset(&first, 0, sizeof first);
    if (!good) assert_memory_equal(&first, &again, sizeof first);      /* all or nothing */
    return good;
}

static void refused(void **state)
{
    (void)state;
    assert_true(parses("end\n") && parses("dma_mbs 100\ncore_mbs 500000\nlaunch_ns 500\nend\n"));
    assert_true(parses("host 5 119 8 4194304\ngpu 1 0 2 1024\ngpu 2 0 2 1024\nend\n"));
    static const char *const wrong[] = { "", "end", "end\nend\n", "end\n ", "\nend\n", "dma_mbs 99\nend\n",
                                         "dma_mbs 2000001\nend\n", "launch_ns -1\nend\n",
                                         "launch_ns 0\nend\n", "launch_ns\nend\n", "launch_ns \nend\n",
                                         "launch_ns 600 \nend\n", "launch_ns 600x\nend\n",
                                         "launch_ns  600\nend\n", "launch_ns 1e4\nend\n",
                                         "launch_ns 600 600\nend\n",
                                         "launch_ns 9999999999999999999999\nend\n", "start 5\nend\n",
                                         "host 6 0 2 65536\nend\n", "host 0 2400 2 65536\nend\n",
                                         "host 0 0 1 65536\nend\n", "host 0 0 9 65536\nend\n",
                                         "host 0 0 2 1023\nend\n", "host 0 0 2 4194305\nend\n",
                                         "host 0 0 2 4295032832\nend\n", "gpu 3 0 2 65536\nend\n",
                                         "gpu 0 0 2\nend\n", "gpu 0 0 2 65536 1\nend\n",
                                         "gpu 0 0 2 +65536\nend\n", "host -1 0 2 65536\nend\n",
                                         "dma_mbs 100\nnonsense\nend\n" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) assert_false(parses(wrong[i]));
    assert_false(gpb_machine_file_parse(&again, "another", "gpublas calibration 1\nmachine some\nend\n", 37));
    assert_false(gpb_machine_file_parse(&again, "some", "gpublas calibration 2\nmachine some\nend\n", 37));
    assert_true(gpb_machine_file_parse(&again, "some", "gpublas calibration 1\nmachine some\nend\n", 39));
    assert_false(gpb_machine_file_parse(&again, "some", "gpublas calibration 1\nmachine some\nend\n\0", 40));
}

static void check_bounds(gpb_machine *machine)
{
    assert_true(machine->dma_mbs == 0 || (machine->dma_mbs >= 100 && machine->dma_mbs <= 2000000));
    assert_true(machine->core_mbs == 0 || (machine->core_mbs >= 100 && machine->core_mbs <= 500000));
    assert_true(machine->launch_ns == 0 || (machine->launch_ns >= 500 && machine->launch_ns <= 10000000));
    for (int t = 0; t < GPB_MACHINE_THREADS + GPB_MACHINE_GPU; t++)
        for (int i = 0; i < GPB_LEARN_CLASSES; i += 7) {
            const gpb_learn *table = t < GPB_MACHINE_THREADS ? &machine->host[t]
                                                             : &machine->gpu[t - GPB_MACHINE_THREADS];
            double ratio = gpb_learn_ratio(table, (gpb_learn_key){ i, 0, 1 }, true);
            assert_true(ratio >= 1.0 / 64 && ratio <= 64);
        }
}

static size_t mutate(char *at, size_t length)
{
    static const char letters[] = "0123456789 \n\n-+.xe\0\xff";
    for (uint64_t i = 1 + below(3); i > 0; i--) {
        size_t where = below(length);
        switch (below(4)) {
        case 0: at[where] = letters[below(sizeof letters)]; break;
        case 1: at[where] ^= (char)(1 << below(8)); break;
        case 2:
            memmove(at + where, at + where + 1, length - where - 1);
            length -= length > 1;
            break;
        default: length = below(4) ? length : 1 + where;
        }
    }
    return length;
}

static void mutations(void **state)
{
    (void)state;
    int believed = 0;
    fill(&first, 40);
    const size_t whole = gpb_machine_file_print(&first, key, text, sizeof text);
    char *copy = malloc(whole);  /* exactly as long as the text, so that the sanitizer sees a step too far */
    for (int round = 0; round < 100000; round++) {
        memcpy(copy, text, whole);
        size_t length = mutate(copy, whole);
        memset(&again, 0, sizeof again);
        if (!gpb_machine_file_parse(&again, key, copy, length)) continue;
        believed++;
        if (believed % 16 == 0) check_bounds(&again);
    }
    free(copy);
    assert_true(believed > 1000 && believed < 90000);
}

static bool load(const char *wanted, const char *path)
{
    size_t length;
    char *read = gpb_file_read(path, GPB_MACHINE_FILE_BYTES, &length);
    const bool good = read && gpb_machine_file_parse(&again, wanted, read, length);
    free(read);
    return good;
}

/* Makes or removes files that processes left when they were killed while saving. Their names are those
   that this process might choose. */
static void leave_behind(const char *path, bool there)
{
    char name[96];
    snprintf(name, sizeof name, "%s.%ld", path, (long)getpid());
    if (there) assert_true(close(open(name, O_CREAT | O_EXCL | O_WRONLY, 0600)) == 0);
    else unlink(name);
}

static void files(void **state)
{
    (void)state;
    char folder[] = "/tmp/gpublas.XXXXXX", path[64], other[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    fill(&first, 9);
    leave_behind(path, true);
    assert_null(gpb_machine_file_save(&first, key, path));
    leave_behind(path, false);
    memset(&again, 0, sizeof again);
    assert_true(load(key, path));
    assert_memory_equal(&first, &again, sizeof first);
    assert_false(load("another", path) || load(key, folder));
    assert_int_equal(symlink(path, other), 0);
    assert_false(load(key, other));
    assert_int_equal(chmod(path, 0620), 0);
    assert_false(load(key, path));
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(truncate(path, GPB_MACHINE_FILE_BYTES), 0);
    assert_false(load(key, path));
    unlink(other);
    unlink(path);
    rmdir(folder);
    assert_non_null(gpb_machine_file_save(&first, key, "/proc/nowhere/at/all"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back), cmocka_unit_test(refused), cmocka_unit_test(mutations),
        cmocka_unit_test(files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
