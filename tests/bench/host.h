/* SPDX-License-Identifier: MIT */
/* What the benches on host memory share: GEMM by any name that a library has it under, operands that no
   cache and no earlier call has seen, the error of a result against FP64, and the time that no library can
   beat. */
#ifndef GPB_BENCH_HOST_H
#define GPB_BENCH_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dispatch/call.h"

/* A library's GEMM in each type: CBLAS or Fortran, integers of 32 or 64 bits. */
typedef struct blas {
    const char *spelling;                /* of SGEMM */
    void *library, *call[GPB_TYPES];
    bool wide, fortran;
} blas;

/* Under that spelling; NULL: the first that it has. Exits with 77 if the library cannot be opened, with 1 if
   it has no SGEMM by it. */
blas blas_open(const char *path, const char *spelling);
/* The same name as the dynamic linker would bind it for a program linked with that library: a preloaded
   library comes first. */
blas blas_as_linked(const char *path);
/* A call given column-major. If g->row_major, it is made as its row-major twin, on the same bytes. */
void blas_call(const blas *b, const gpb_call *g);

/* A product of that size in s, packed, operands not yet there. */
gpb_call host_call(int64_t m, int64_t n, int64_t k, double beta);

/* Bytes that the operands of a call take: of A and B, of C. */
typedef struct room { size_t in, out; } room;
room room_of(const gpb_call *g);

/* Host memory full of random numbers of the type that is asked for, handed out in turn. When it has all been
   handed out, `fresh` memory is written anew with other numbers. So no earlier call has seen any of it, and
   what is handed out next has left the caches. */
typedef struct slab {
    char *at;
    size_t bytes, used;
    bool fresh;
    size_t real;                         /* bytes of the numbers that are there; 0: none are */
    uint64_t generation;
} slab;
/* Results do not become operands, because after a few calls these would leave the range of floats. */
typedef struct memory { slab in, out; } memory;

memory memory_make(room r, bool fresh);
/* In memory that is there already. */
memory memory_at(void *at, room r);
/* Operands for a call, as its leading dimensions want them; `inside`: in the middle of the rows that these
   leave room for. */
void memory_operands(memory *from, gpb_call *g, bool inside);

/* Entries of C, corners first, drawn before a call (and poisoned, if beta = 0) and judged after it. */
enum { CHECKED = 48 };
typedef struct check {
    int64_t i[CHECKED], j[CHECKED];
    gpb_element old[CHECKED];
    int count;
} check;
void check_draw(check *c, const gpb_call *g, int count);
/* The worst error in units of the bound of tests/reference.h: right if at most 1. INFINITY: not a number. */
double check_worst(const check *c, const gpb_call *g);

double host_flops(const gpb_call *g);
/* Seconds that no schedule beats (host.c has the reason), at 50 GB/s each way and 200 TFLOP/s (60 in d and
   z); with few cores at most what as many threads stage. cores 0: enough of them. */
double host_ideal(const gpb_call *g, int cores);

#endif
