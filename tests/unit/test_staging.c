/* SPDX-License-Identifier: MIT */
/* Staging rings (src/copy/staging.h): what goes in comes out, in its place, and nothing is written beside
   the ring, which lies between forbidden pages. The driver and the crew are this file's. Both do their
   work as late as they may. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "src/copy/staging.c"
#include "tests/unit/random.h"

enum { PAGE = 4096, RING = 64 * PAGE, MATRIX = 640 << 10, PLANS = 200 };

static bool chance(int64_t of) { return below(of) == 0; }

CUresult gpb_pinned_ready(gpb_pinned *pinned, CUdevice device, size_t bytes)
{
    (void)pinned;
    (void)device;
    (void)bytes;
    return CUDA_SUCCESS;
}
void gpb_pinned_forget(gpb_pinned *pinned) { (void)pinned; }
void gpb_pinned_free(gpb_pinned *pinned) { (void)pinned; }

/* ---- the crew: jobs wait until they are asked for */

void gpb_crew_begin(gpb_crew_queue *queue) { queue->first = queue->posted = queue->reaped = 0; }
int gpb_crew_size(void) { return 1; }

bool gpb_crew_post(gpb_crew_queue *queue, const gpb_copy2d_job *job)
{
    if (queue->posted - queue->reaped == GPB_CREW_JOBS) return false;
    queue->jobs[queue->posted++ % GPB_CREW_JOBS].of.rectangle = *job;
    return true;
}

bool gpb_crew_reap(gpb_crew_queue *queue)
{
    if (queue->reaped == queue->posted || chance(2)) return false;
    gpb_copy2d(&queue->jobs[queue->reaped++ % GPB_CREW_JOBS].of.rectangle);
    return true;
}

bool gpb_crew_help(gpb_crew_queue *queue) { return gpb_crew_reap(queue); }

void gpb_crew_end(gpb_crew_queue *queue)
{
    while (queue->reaped != queue->posted) gpb_crew_reap(queue);
}

/* ---- the driver: one stream, whose copies are made when an event is asked about */

typedef struct order {
    CUevent event;                       /* recorded, or NULL: */
    char *to;
    const char *from;
    size_t to_pitch, from_pitch, width, height;
} order;

enum { ORDERS = 4096 };
static order orders[ORDERS];
static unsigned ordered, done;
static uint64_t recorded[GPB_STAGING_EVENTS], happened[GPB_STAGING_EVENTS];  /* numbers of orders, from 1 */
static char *ring;

static CUresult give(order what)
{
    assert_in_range(ordered - done, 0, ORDERS - 1);
    orders[ordered++ % ORDERS] = what;
    return CUDA_SUCCESS;
}

static void carry_out_one(void)
{
    const order *o = &orders[done++ % ORDERS];
    if (o->event) happened[(uintptr_t)o->event - 1] = done;
    for (size_t row = 0; row < o->height; row++)
        memcpy(o->to + row * o->to_pitch, o->from + row * o->from_pitch, o->width);
}

static CUresult record_event(CUevent event, CUstream stream)
{
    (void)stream;
    recorded[(uintptr_t)event - 1] = ordered + 1;
    return give((order){ .event = event });
}

static CUresult query_event(CUevent event)
{
    for (unsigned some = (unsigned)below(4); some && done < ordered; some--) carry_out_one();
    return happened[(uintptr_t)event - 1] >= recorded[(uintptr_t)event - 1] ? CUDA_SUCCESS
                                                                            : CUDA_ERROR_NOT_READY;
}

static unsigned waits;
static CUresult await_event(CUstream stream, CUevent event, unsigned flags)
{
    (void)stream, (void)event, (void)flags;
    waits++;
    return CUDA_SUCCESS;
}

static CUresult copy_up(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    (void)stream;
    return give((order){ .to = (char *)(uintptr_t)to, .from = from, .width = bytes, .height = 1 });
}

static CUresult copy_down(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    return give((order){ .to = to, .from = (char *)(uintptr_t)from, .width = bytes, .height = 1 });
}

static CUresult copy_2d(const CUDA_MEMCPY2D *p, CUstream stream)
{
    const bool up = p->dstMemoryType == CU_MEMORYTYPE_DEVICE;
    (void)stream;
    return give((order){ .to = up ? (char *)(uintptr_t)p->dstDevice : p->dstHost,
                         .from = up ? p->srcHost : (char *)(uintptr_t)p->srcDevice, .to_pitch = p->dstPitch,
                         .from_pitch = p->srcPitch, .width = p->WidthInBytes,
                         .height = p->Height });
}

const gpb_driver *gpb_driver_get(void)
{
    static const gpb_driver driver = { .cuEventRecord = record_event, .cuEventQuery = query_event,
                                       .cuStreamWaitEvent = await_event, .cuMemcpyHtoDAsync = copy_up,
                                       .cuMemcpyDtoHAsync = copy_down, .cuMemcpy2DAsync = copy_2d };
    return &driver;
}

/* ---- the tests */

static gpb_staging staging;

static void set_up(bool crew, size_t job_bytes)
{
    signal(SIGSEGV, SIG_DFL);
    if (!ring) {
        ring = mmap(NULL, RING + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(ring, MAP_FAILED);
        ring += PAGE;
        assert_int_equal(mprotect(ring, RING, PROT_READ | PROT_WRITE), 0);
    }
    staging.ring = ring;
    staging.size = RING;
    for (int i = 0; i < GPB_STAGING_EVENTS; i++) staging.event[i] = (CUevent)(uintptr_t)(i + 1);
    gpb_staging_begin(&staging, crew, job_bytes, (CUstream)(uintptr_t)1);
}

/* A matrix of `rows` bytes a column, and where it goes. Columns may be wider apart on one side or on both. */
typedef struct way {
    int64_t rows, cols, ld, pitch;       /* the program's; on the device */
    int64_t most;                        /* bytes of a chunk, but at least a column */
    char *program, *device;
} way;

static way draw_way(void)
{
    static char program[MATRIX], device[MATRIX];
    way w = { .rows = 4 * (1 + (int64_t)below(chance(4) ? 6000 : 60)), .program = program, .device = device };
    if (chance(3)) w.rows = 4 << below(12);      /* then some chunks end where the ring does */
    w.ld = w.rows + 4 * (int64_t)below(3);
    w.pitch = chance(2) ? w.rows : w.rows + 4 * (int64_t)below(40);
    w.cols = 1 + (int64_t)below((MATRIX / (w.ld > w.pitch ? w.ld : w.pitch)));
    w.most = 1 + (int64_t)below(chance(8) ? RING / 2 : 8000);
    for (int i = 0; i < MATRIX; i++) {
        program[i] = (char)below(256);
        device[i] = (char)below(256);
    }
    return w;
}

static gpb_chunk load_of(const way *w, int64_t col, bool up)
{
    const int64_t fit = w->most / w->rows ? w->most / w->rows : 1, left = w->cols - col,
                  cols = fit < left ? fit : left;
    gpb_chunk load = { .device = (CUdeviceptr)(uintptr_t)(w->device + col * w->pitch),
                       .width = (size_t)w->rows, .pitch = (size_t)w->pitch, .cols = cols, .count = cols,
                       .ends_tile = col + cols == w->cols,
                       .copy = { .rows = w->rows / 4, .cols = cols, .element = 4, .uplo = 'G',
                                 .target = GPB_STORE_PREFETCHED } };
    if (up) {
        load.copy.from = w->program + col * w->ld;
        load.copy.ld_from = w->ld / 4;
        load.copy.ld_to = w->rows / 4;
    } else {
        load.copy.to = w->program + col * w->ld;
        load.copy.ld_to = w->ld / 4;
        load.copy.ld_from = w->rows / 4;
    }
    return load;
}

/* True if all columns are in their places, and nothing has changed between them on the side that was
   written. */
static void check(const way *w, const char *before, bool up)
{
    const char *from = up ? w->program : w->device, *to = up ? w->device : w->program;
    const int64_t from_ld = up ? w->ld : w->pitch, to_ld = up ? w->pitch : w->ld;
    for (int64_t at = 0, col = 0, row = 0; at < MATRIX; at++) {
        const bool mine = col < w->cols && row < w->rows;
        if (to[at] != (mine ? from[col * from_ld + row] : before[at])) fail_msg("byte %lld", (long long)at);
        if (++row == to_ld) {
            row = 0;
            col++;
        }
    }
}

static void test_up(void **state)
{
    (void)state;
    static char before[MATRIX];
    for (int plan = 0; plan < PLANS; plan++) {
        way w = draw_way();
        set_up(!chance(5), 4096);
        memcpy(before, w.device, MATRIX);
        uint64_t offered = 0, waited = 0;
        waits = 0;
        bool busy;
        for (int64_t col = 0; col < w.cols || staging.done < staging.made;) {
            gpb_chunk load = load_of(&w, col < w.cols ? col : 0, true);
            load.after = chance(7) ? (CUevent)(uintptr_t)1 : NULL;
            if (col < w.cols && gpb_staging_push(&staging, &load)) {
                col += load.cols;
                offered += (uint64_t)(load.cols * w.rows);
                waited += load.after != NULL;
            } else assert_int_equal(gpb_staging_send(&staging, col >= w.cols, &busy), CUDA_SUCCESS);
        }
        gpb_staging_end(&staging);
        assert_true(staging.bytes == offered && staging.ready == 0 && waits == waited);
        check(&w, before, true);
    }
}

static void test_down(void **state)
{
    (void)state;
    static char before[MATRIX];
    for (int plan = 0; plan < PLANS; plan++) {
        way w = draw_way();
        const gpb_chunk *home;
        set_up(!chance(5), 1 + below(20000));
        memcpy(before, w.program, MATRIX);
        int64_t came = 0;
        for (int64_t col = 0; came < w.cols;) {
            const gpb_chunk load = load_of(&w, col < w.cols ? col : 0, false);
            bool arrived;
            if (col < w.cols && gpb_staging_has_room(&staging, &load)) {
                assert_int_equal(gpb_staging_pull(&staging, &load), CUDA_SUCCESS);
                col += load.cols;
            }
            assert_int_equal(gpb_staging_arrived(&staging, &arrived), CUDA_SUCCESS);
            if (arrived) gpb_staging_drain(&staging);
            while ((home = gpb_staging_drained(&staging))) {
                came += home->count;
                assert_int_equal(home->ends_tile, came == w.cols);
            }
        }
        gpb_staging_end(&staging);
        assert_int_equal(staging.bytes, (uint64_t)(w.cols * w.rows));
        check(&w, before, false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_up), cmocka_unit_test(test_down) };
    return cmocka_run_group_tests_name("staging", tests, NULL, NULL);
}
