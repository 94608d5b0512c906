/* SPDX-License-Identifier: MIT */
/* Tables of addresses; see address_table.h. */
#include "src/run/address_table.h"

#include <stddef.h>

#include "dispatch/numbers.h"
#include "src/gpu/dma.h"
#include "src/gpu/kernels.h"

enum { TABLES = GPB_OPERANDS + 1 };
static const int64_t table_bytes[TABLES] = { sizeof(void *), sizeof(void *), sizeof(void *),
                                             sizeof(gpb_gemm_item) };

/* Where a table begins, in bytes from the first one. */
static int64_t table_place(const gpb_plan *plan, int which)
{
    int64_t at = 0;
    for (int i = 0; i < which; i++) at += round_up(table_bytes[i] * plan->group, 256);
    return at;
}

CUdeviceptr gpb_address_table(const gpb_run *r, int which)
{
    return r->tables + (CUdeviceptr)table_place(r->plan, which);
}

int64_t gpb_address_table_bytes(const gpb_call *call, const gpb_plan *plan)
{
    return gpb_call_arrays(call) ? table_place(plan, TABLES) : 0;
}

/* Where the members of an operand are, from the tile's first member on. */
typedef struct members {
    CUdeviceptr at;                       /* the first member */
    const void *const *array;             /* the caller's addresses, if the others lie as far from the first
                                             as these do; else NULL: */
    int64_t between;                      /* bytes from one member to the next */
} members;

static members members_of(const gpb_run *r, const gpb_run_operand *x, const gpb_view *view,
                          const gpb_region *t)
{
    if (!view) return (members){ 0 };
    return (members){ view->at, view->scattered ? x->stored.array + t->member : NULL,
                      view->member_stride * (int64_t)r->element };
}

/* Writes the addresses of members [first, first + count), `every` addresses apart. This takes a nanosecond
   each, because batches have thousands. */
static void write_column(CUdeviceptr *to, int every, const members *x, int64_t first, int64_t count)
{
    if (x->array) {
        const CUdeviceptr on = x->at - (CUdeviceptr)(uintptr_t)x->array[0];
        for (int64_t l = 0; l < count; l++) to[l * every] = (CUdeviceptr)(uintptr_t)x->array[first + l] + on;
    } else {
        CUdeviceptr at = x->at + (CUdeviceptr)(first * x->between);
        for (int64_t l = 0; l < count; l++, at += (CUdeviceptr)x->between) to[l * every] = at;
    }
}

/* Sends a table for kernels: a row of `columns` addresses for each member. It is written into the lane's own
   pinned memory, as many rows at a time as fit. */
static CUresult send_table(gpb_run *r, int which, const members *column, int columns, int64_t rows)
{
    const gpb_driver *driver = gpb_driver_get();
    const size_t bytes = (size_t)columns * sizeof(CUdeviceptr);
    CUresult result = CUDA_SUCCESS;
    for (int64_t row = 0, count; row < rows && !result; row += count) {
        if (GPB_TABLE_BYTES - r->table_used < bytes) {
            result = driver->cuStreamSynchronize(r->stream);      /* what was sent before has been read */
            if (result) break;
            r->table_used = 0;
        }
        count = min(rows - row, (int64_t)((GPB_TABLE_BYTES - r->table_used) / bytes));
        CUdeviceptr *at = (CUdeviceptr *)(void *)(r->lane->table + r->table_used);
        for (int i = 0; i < columns; i++) write_column(at + i, columns, &column[i], row, count);
        result = gpb_dma_send(gpb_address_table(r, which) + (CUdeviceptr)row * bytes, at,
                              (size_t)count * bytes, r->stream);
        r->table_used += (size_t)count * bytes;
    }
    return result;
}

CUresult gpb_address_send(gpb_run *r, const gpb_run_operand *x, const gpb_region *t)
{
    const members column = members_of(r, x, &x->source, t);
    return send_table(r, x->which, &column, 1, t->members);
}

CUresult gpb_address_bind_args(gpb_run *r, const gpb_region *t, const gpb_view *a, const gpb_view *b,
                               const gpb_view *c, gpb_gemm_args *args)
{
    args->rsa = args->csa = args->rsb = args->csb = 1;
    if (a) {
        args->a = gpb_pointer(a->at);
        args->rsa = a->rs;
        args->csa = a->cs;
        args->stride_a = a->member_stride;
        args->b = gpb_pointer(b->at);
        args->rsb = b->cs;
        args->csb = b->rs;
        args->stride_b = b->member_stride;
    }
    args->c = gpb_pointer(c->at);
    args->ldc = c->cs;
    args->stride_c = c->member_stride;
    args->items = NULL;
    if (!c->scattered && !(a && (a->scattered || b->scattered))) return CUDA_SUCCESS;
    _Static_assert(sizeof(gpb_gemm_item) == 3 * sizeof(CUdeviceptr)
                       && offsetof(gpb_gemm_item, b) == sizeof(CUdeviceptr)
                       && offsetof(gpb_gemm_item, c) == 2 * sizeof(CUdeviceptr),
                   "a row of the table is an item");
    const members column[] = { members_of(r, &r->x[GPB_A], a, t), members_of(r, &r->x[GPB_B], b, t),
                               members_of(r, &r->x[GPB_C], c, t) };
    args->items = gpb_pointer(gpb_address_table(r, GPB_ADDRESS_TRIPLES));
    return send_table(r, GPB_ADDRESS_TRIPLES, column, GPB_OPERANDS, t->members);
}
