/* SPDX-License-Identifier: MIT */
/* Factorisations and solves whose matrices stay on the GPU from the first step to the last: what they need
   there, and whether that pays. The other way, by calls (hub/factor.c), sends operands once for each product.
   Pure. */
#ifndef GPB_RESIDENT_H
#define GPB_RESIDENT_H

#include "dispatch/call.h"
#include "dispatch/factor.h"
#include "dispatch/inverse.h"

/* What is done with a system: its matrix is factored, or holds factors already; B is divided, or there is
   none. Or a triangle divides or multiplies B, from either side (TRSM, TRMM): then the system has the
   triangle and B's address. Or it is inverted (getri, potri, trtri): then B is the identity, which the GPU
   makes, and what it becomes takes A's place. Or the norm of its inverse is estimated (gecon, pocon): then
   the factors are read alone, and B is a vector of the estimate's. Or X is refined (dsgesv): then B is given
   elsewhere, the system's b is where X goes, and the factors are of single precision. If that does not
   suffice, X is B and the system is solved as by gesv. */
typedef struct gpb_resident {
    gpb_system system;
    bool factors, solves;                /* solves: there is a B */
    bool inverts;                        /* the system's B is A */
    bool divides;                        /* by A's diagonal, of which the first zero is INFO; then nothing is
                                            written (getri, potri, trtri, trtrs; not TRSM) */
    const void *given;                   /* NULL, or B of a refined X, with ldgiven */
    int64_t ldgiven;
    int64_t *iter;                       /* netlib's ITER, with `given` */
    double *inverse_norm;                /* NULL, or where the estimate goes: infinite, if the inverse is too
                                            large to be estimated */
    bool of_rows;                        /* it is the infinity-norm */
    const gpb_triangular *triangular;    /* NULL, or the TRSM or TRMM, or the triangle that is inverted;
                                            factors is false and solves true */
} gpb_resident;

gpb_resident gpb_resident_of_triangular(const gpb_triangular *t);
/* The inverse from factors. */
gpb_resident gpb_resident_of_factors(const gpb_factor *factors);
/* A triangle's inverse as the solve that it is; for gpb_resident_of_inverse. */
gpb_triangular gpb_resident_solve_of(const gpb_inverse *inverse);
gpb_resident gpb_resident_of_inverse(const gpb_triangular *solve);
/* True if columns of B, or of each panel of its rows, come home from the last to the first, because the host
   would need the others for the rest after a failure. */
bool gpb_resident_backwards(const gpb_resident *work);
/* Inverses go by columns, in place (dispatch/inverse.h), in blocks of so many. */
int64_t gpb_resident_inverse_block(const gpb_resident *work);
static inline bool gpb_resident_inverts_lu(const gpb_resident *work)
{
    return work->inverts && gpb_factor_is_lu(&work->system.a);
}
/* TRSM and TRMM from the right: rows of B are independent, where else columns are. */
bool gpb_resident_by_rows(const gpb_resident *work);
/* No launch writes to A, so that each may read it before the one before it has ended. */
static inline bool gpb_resident_only_reads_a(const gpb_resident *work)
{
    return !work->factors && !work->inverts;
}
/* Panels of B's columns, or rows, that are computed together and go home while others are computed, if home
   is the host: panel x is [first[x], first[x + 1]). */
enum { GPB_RESIDENT_PANELS = 8 };
typedef struct gpb_resident_panels {
    int count;
    int64_t first[GPB_RESIDENT_PANELS + 1];
} gpb_resident_panels;
gpb_resident_panels gpb_resident_cut(const gpb_resident *work);
/* The order of the triangles on the diagonal that TRMM by levels begins with. */
int64_t gpb_resident_level(const gpb_resident *work);
/* Rows and columns of B; 0 columns if there is none. */
int64_t gpb_resident_b_rows(const gpb_resident *work);
int64_t gpb_resident_b_cols(const gpb_resident *work);
/* Columns of the arena beside B: for a block of L (getri), where X's takes its place. */
int64_t gpb_resident_beside(const gpb_resident *work);

/* A product that takes as many operations as all of it, on operands of that size: what predictions and
   decisions are made from, and where `where` of the facts comes from. */
gpb_call gpb_resident_equivalent(const gpb_resident *work);
/* Seconds beyond those of such a product, on the GPU: columns of panels one after the other, and many small
   launches; on the host's cores: its panels, and threads that wait for each other. */
double gpb_resident_gpu_steps_s(const gpb_resident *work);
double gpb_resident_host_steps_s(const gpb_resident *work, int cores);
/* The leading dimension of A and B on the device: columns begin at multiples of 32 bytes. */
int64_t gpb_resident_ld(const gpb_resident *work);
/* A refined X's system in single precision, without addresses. */
gpb_resident gpb_resident_narrow(const gpb_resident *work);
/* Bytes of what a refined X needs beside: B, R, and the narrow A and X. */
int64_t gpb_resident_refined_bytes(const gpb_resident *work);
/* Bytes of A, B and what pivots need, and of those. */
int64_t gpb_resident_bytes(const gpb_resident *work);
/* Bytes beside those for what becomes of B where B does not stay in the program's device memory: of TRMM,
   which then goes by levels; else 0. Where the budget has no room for them, TRMM goes without. */
int64_t gpb_resident_results(const gpb_resident *work);
/* Bytes beside them for the products' workspace on that GPU: more than this gains nothing; less than an
   eighth of it is too little. */
int64_t gpb_resident_workspace(const gpb_resident *work, int arch);
/* True if that GPU has the kernels and the shared memory for it. */
bool gpb_resident_fits(const gpb_resident *work, int arch, int sms);
/* Bytes of shared memory that a block of gpb_<p>swap can have. */
int64_t gpb_resident_swap_shared(int arch);
/* Exchanges of rows that one launch can make in a matrix of so many rows. */
int64_t gpb_resident_exchanges(int64_t rows, int arch);
/* True if a panel of so many rows is one cluster's, on a GPU that has clusters. */
bool gpb_resident_one_cluster(int64_t rows, int arch);

#endif
