/* SPDX-License-Identifier: MIT */
/* See groups.h. */
#include "src/doors/groups.h"

int64_t gpb_groups_integer(const gpb_groups *all, const void *array, int64_t g)
{
    return all->width == 64 ? ((const int64_t *)array)[g] : ((const int32_t *)array)[g];
}

char gpb_groups_letter(const gpb_groups *all, const void *array, int64_t g, char (*letter_of)(int))
{
    return all->letters ? gpb_letter((const char *)array + g) : letter_of(((const int *)array)[g]);
}

gpb_scalar gpb_groups_scalar(const gpb_groups *all, const void *array, int64_t g)
{
    const char *at = (const char *)array + (size_t)g * gpb_type_bytes(all->type);
    switch (all->type) {
    case GPB_TYPE_s: return gpb_scalar_s(at);
    case GPB_TYPE_d: return gpb_scalar_d(at);
    case GPB_TYPE_c: return gpb_scalar_c(at);
    default:         return gpb_scalar_z(at);
    }
}

gpb_call gpb_groups_call(const gpb_groups *all, int64_t g)
{
    return (gpb_call){ .symbol = all->symbol, .width = all->width, .type = all->type,
                       .m = all->m ? gpb_groups_integer(all, all->m, g) : 0,
                       .n = gpb_groups_integer(all, all->n, g),
                       .k = all->k ? gpb_groups_integer(all, all->k, g) : 0,
                       .batch = gpb_groups_integer(all, all->size, g),
                       .alpha = gpb_groups_scalar(all, all->alpha, g),
                       .beta = all->beta ? gpb_groups_scalar(all, all->beta, g) : 0 };
}

gpb_matrix gpb_groups_operand(const gpb_groups *all, const void *const *array, const void *ld, int64_t g,
                              int64_t first)
{
    return (gpb_matrix){ .array = array + first, .ld = gpb_groups_integer(all, ld, g), .trans = 'N' };
}

static bool same_shape(const gpb_call *g, const gpb_call *h)
{
    bool same = g->m == h->m && g->n == h->n && g->k == h->k && g->alpha == h->alpha && g->beta == h->beta;
    for (int x = 0; x < GPB_OPERANDS; x++)
        same &= g->x[x].trans == h->x[x].trans && g->x[x].ld == h->x[x].ld && g->x[x].uplo == h->x[x].uplo
                && g->x[x].diag == h->x[x].diag && g->x[x].structure == h->x[x].structure;
    return same;
}

bool gpb_groups_next(const gpb_groups *all, gpb_join *at, gpb_call *call)
{
    at->g += at->count;
    at->first += at->members;
    if (at->g >= all->count) return false;
    *call = all->call(all, at->g, at->first);
    for (at->count = 1; call->batch > 0 && at->g + at->count < all->count; at->count++) {
        const gpb_call next = all->call(all, at->g + at->count, at->first);
        if (next.batch <= 0 || !same_shape(call, &next)) break;
        call->batch += next.batch;
    }
    at->members = call->batch > 0 ? call->batch : 0;
    return true;
}

bool gpb_groups_legal(const gpb_groups *all)
{
    bool legal = all->count >= 0 && (all->layout == GPB_ROW_MAJOR || all->layout == GPB_COL_MAJOR);
    for (int64_t g = 0, first = 0; legal && g < all->count; g++) {
        gpb_call call = all->call(all, g, first);
        legal = gpb_offload_legal(&call);
        first += legal ? call.batch : 0;
    }
    return legal;
}
