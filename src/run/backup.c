/* SPDX-License-Identifier: MIT */
/* See backup.h. */
#include "src/run/backup.h"

#include "dispatch/numbers.h"
#include "src/gpu/dma.h"

static int64_t length(const gpb_backup *b) { return b->by_rows ? b->of.rows : b->of.cols; }

/* Pieces of 2 MB and more, so that a small matrix has one, and a large one's first is soon there. */
gpb_backup gpb_backup_begin(gpb_lane *lane, const gpb_carry_matrix *of, bool by_rows, bool forwards)
{
    enum { PIECE = 2 << 20, GRAIN = 64 };
    gpb_backup b = { .lane = lane, .of = *of, .by_rows = by_rows, .forwards = forwards };
    const int64_t bytes = of->rows * of->cols * (int64_t)gpb_type_bytes(of->type);
    const int64_t wanted = clamp(bytes / PIECE, 1, GPB_BACKUP_PIECES);
    b.piece = round_up(ceil_div(max(1, length(&b)), wanted), GRAIN);
    b.count = (int)ceil_div(length(&b), b.piece);
    return b;
}

/* Copies the piece that is number `number` in their order. */
static CUresult copy(const gpb_backup *b, int number, bool up)
{
    const size_t e = gpb_type_bytes(b->of.type);
    const int64_t first = (b->forwards ? number : b->count - 1 - number) * b->piece;
    const int64_t last = min(first + b->piece, length(b));
    const int64_t row = b->by_rows ? first : 0, col = b->by_rows ? 0 : first;
    const gpb_dma_shape shape = { .rows = b->by_rows ? last - first : b->of.rows,
                                  .cols = b->by_rows ? b->of.cols : last - first, .ld = b->of.ld,
                                  .ld_arena = b->of.ld_arena, .element = e, .uplo = 'G' };
    return gpb_dma_copy(&shape, (const char *)b->of.caller + (size_t)(row + col * b->of.ld) * e,
                        b->of.arena + (CUdeviceptr)(row + col * b->of.ld_arena) * e, up,
                        b->lane->up->stream);
}

static CUresult queue(gpb_backup *b)
{
    CUresult result = copy(b, b->queued, true);
    if (result) return result;
    b->queued++;
    return gpb_driver_record(gpb_driver_get(), b->lane->made_in, b->lane->tile[b->queued - 1],
                             b->lane->up->stream);
}

CUresult gpb_backup_await(gpb_backup *b, int64_t row, int64_t col, int64_t rows, int64_t cols)
{
    enum { AHEAD = 2 };
    const int64_t first = b->by_rows ? row : col, last = first + (b->by_rows ? rows : cols);
    const int64_t most = b->forwards ? (last - 1) / b->piece : b->count - 1 - first / b->piece;
    CUresult result = CUDA_SUCCESS;
    while (!result && b->queued < min(b->count, most + 1 + AHEAD)) result = queue(b);
    if (result || most < b->awaited) return result;
    b->awaited = (int)most + 1;
    return gpb_driver_get()->cuStreamWaitEvent(b->lane->stream, b->lane->tile[most], 0);
}

void gpb_backup_put_back(const gpb_backup *b)
{
    for (int i = 0; i < b->queued; i++) copy(b, i, false);
    gpb_driver_get()->cuStreamSynchronize(b->lane->up->stream);
}
