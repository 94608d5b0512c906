/* SPDX-License-Identifier: MIT */
/* Fortran passes integers by address. For a host with 64-bit integers, a 32-bit caller's integers are copied
   to 64 bits. For a host with 32-bit integers, a 64-bit caller's integers stay where they are, because the
   host reads their lower halves (x86-64 stores these first). If one does not fit into 32 bits, the embedded
   BLAS computes. C names come here through the embedded BLAS, which calls the Fortran names. */
#include "src/host/adapt.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { REGISTERS = 6, STACK = 10 };

/* As trampoline.S lays them out: the arguments on the stack, where the host expects them; the arguments in
   registers; room for integers. */
typedef struct arguments {
    void *stack[STACK], *in_register[REGISTERS];
    int64_t wide[REGISTERS + STACK];
} arguments;

extern void *const gpb_adapters[GPB_SYMBOLS];      /* trampoline.S: one entry per name, which asks
                                                      gpb_adapt_target for its target */
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

/* For trampoline.S: converts the arguments for the host. Returns the function to call with them. */
void *gpb_adapt_target(enum gpb_symbol symbol, arguments *given)
{
    const gpb_symbol_row *row = &gpb_symbol_rows[symbol];
    const char *kind = integers_of(row->stem);
    for (int i = 0; kind[i]; i++) {
        void **argument = i < REGISTERS ? &given->in_register[i] : &given->stack[i - REGISTERS];
        if (kind[i] != 'i') continue;
        const bool fits = row->width == 32 || *(const int64_t *)*argument == *(const int32_t *)*argument;
        if (!fits) return row->embedded;
        if (row->width == 64) continue;
        given->wide[i] = *(const int32_t *)*argument;
        *argument = &given->wide[i];
    }
    return atomic_load_explicit(&behind[symbol], memory_order_relaxed);
}
