/* SPDX-License-Identifier: MIT */
/* Fortran passes integers by address. A 32-bit caller's are copied to 64 bits for a host with 64-bit integers; a 64-bit caller's stay where
   they are for one with 32-bit integers, which reads their lower halves (x86-64 has them first), as long as they fit; if not, the
   embedded BLAS computes. C's names come here by way of the embedded BLAS, which calls the Fortran ones. */
#include "src/host/adapt.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { REGISTERS = 6, STACK = 10 };

/* As trampoline.S lays them out: the stack's arguments where the host will find them, then the registers', then room for integers. */
typedef struct arguments {
    void *stack[STACK], *in_register[REGISTERS];
    int64_t wide[REGISTERS + STACK];
} arguments;

extern void *const gpb_adapters[GPB_SYMBOLS];      /* trampoline.S: an entry a name, which asks gpb_adapt_target for the target */
static _Atomic(void *) behind[GPB_SYMBOLS];

static const char *integers_of(const char *stem)
{
    static const struct { const char *end, *arguments; } rows[] = {
#define INTEGERS(end, arguments) { #end, arguments },
#include "src/host/integers.def"
#undef INTEGERS
    };
    const size_t length = strlen(stem);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const size_t end = strlen(rows[i].end);
        if (length >= end && strcmp(stem + length - end, rows[i].end) == 0) return rows[i].arguments;
    }
    return NULL;
}

/* symbols.h spells the two widths one after the other. */
enum gpb_symbol gpb_adapt_twin(enum gpb_symbol symbol)
{
    const gpb_symbol_row *row = &gpb_symbol_rows[symbol];
    if (row->language != GPB_LANGUAGE_F77 || !integers_of(row->stem)) return symbol;
    return row->width == 32 ? symbol + 1 : symbol - 1;
}

void *gpb_adapt(enum gpb_symbol symbol, void *address)
{
    atomic_store(&behind[symbol], address);
    return gpb_adapters[symbol];
}

void *gpb_adapt_behind(enum gpb_symbol symbol, void *address)
{
    return address == gpb_adapters[symbol] ? atomic_load(&behind[symbol]) : address;
}

/* From trampoline.S: makes the arguments the host's, and returns whom to call with them. */
void *gpb_adapt_target(enum gpb_symbol symbol, arguments *given)
{
    const gpb_symbol_row *row = &gpb_symbol_rows[symbol];
    const char *kind = integers_of(row->stem);
    for (int i = 0; kind[i]; i++) {
        void **argument = i < REGISTERS ? &given->in_register[i] : &given->stack[i - REGISTERS];
        if (kind[i] != 'i') continue;
        if (row->width == 64 && *(const int64_t *)*argument != *(const int32_t *)*argument) return row->embedded;
        if (row->width == 64) continue;
        given->wide[i] = *(const int32_t *)*argument;
        *argument = &given->wide[i];
    }
    return atomic_load_explicit(&behind[symbol], memory_order_relaxed);
}
