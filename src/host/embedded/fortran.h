/* SPDX-License-Identifier: MIT */
/* The exported Fortran names, as the CBLAS entries and the batches call them. A host may be compiled Fortran,
   so each character argument has its hidden length. */

/* for routines without character arguments, declared as our own body */
#define SAME(p, stem) extern __typeof__(F77_OF(p, stem)) BLAS_OF(p, stem);
SAME(P, axpy) SAME(P, copy) SAME(P, swap) SAME(P, scal) SAME(P, rotg) SAME(RP, asum) SAME(RP, nrm2)
SAME(IP, amax) SAME(PR, rot)
#if COMPLEX
SAME(PR, scal) SAME(RR, cabs1) SAME(P, dotu) SAME(P, dotc) SAME(P, geru) SAME(P, gerc)
#else
SAME(P, dot) SAME(P, rotm) SAME(P, rotmg) SAME(P, ger)
#endif
#if SINGLE
SAME(ds, dot) SAME(sds, dot)
#endif
#undef SAME

void BLAS(gemv)(const char *, const INT *, const INT *, const T *, const T *, const INT *, const T *,
                const INT *, const T *, T *, const INT *, size_t);
void BLAS(gbmv)(const char *, const INT *, const INT *, const INT *, const INT *, const T *, const T *,
                const INT *, const T *, const INT *, const T *, T *, const INT *, size_t);
void BLAS(SYMMETRIC(mv))(const char *, const INT *, const T *, const T *, const INT *, const T *,
                         const INT *, const T *, T *, const INT *, size_t);
void BLAS(SYMMETRIC_BAND(mv))(const char *, const INT *, const INT *, const T *, const T *, const INT *,
                              const T *, const INT *, const T *, T *, const INT *, size_t);
void BLAS(SYMMETRIC_PACKED(mv))(const char *, const INT *, const T *, const T *, const T *,
                                const INT *, const T *, T *, const INT *, size_t);
void BLAS(SYMMETRIC(r))(const char *, const INT *, const R *, const T *, const INT *, T *,
                        const INT *, size_t);
void BLAS(SYMMETRIC_PACKED(r))(const char *, const INT *, const R *, const T *, const INT *, T *, size_t);
void BLAS(SYMMETRIC(r2))(const char *, const INT *, const T *, const T *, const INT *, const T *, const INT *,
                         T *, const INT *, size_t);
void BLAS(SYMMETRIC_PACKED(r2))(const char *, const INT *, const T *, const T *, const INT *, const T *,
                                const INT *, T *, size_t);

#define FULL_(stem) void BLAS(stem)(const char *, const char *, const char *, const INT *, const T *, \
                                    const INT *, T *, const INT *, size_t, size_t, size_t);
#define BAND_(stem) void BLAS(stem)(const char *, const char *, const char *, const INT *, const INT *, \
                                    const T *, const INT *, T *, const INT *, size_t, size_t, size_t);
#define PACKED_(stem) void BLAS(stem)(const char *, const char *, const char *, const INT *, const T *, \
                                      T *, const INT *, size_t, size_t, size_t);
FULL_(trmv) FULL_(trsv) BAND_(tbmv) BAND_(tbsv) PACKED_(tpmv) PACKED_(tpsv)
#undef FULL_
#undef BAND_
#undef PACKED_

void BLAS(gemm)(GPB_F77_GEMM_PARAMS(T, INT), size_t, size_t);
#if COMPLEX
void BLAS(gemm3m)(GPB_F77_GEMM_PARAMS(T, INT), size_t, size_t);
#endif
void BLAS(gemm_batch_strided)(GPB_F77_GEMM_BATCH_STRIDED_PARAMS(T, INT), size_t, size_t);
void BLAS(syrk_batch_strided)(GPB_F77_SYRK_BATCH_STRIDED_PARAMS(T, INT), size_t, size_t);
void BLAS(trsm_batch_strided)(GPB_F77_TRSM_BATCH_STRIDED_PARAMS(T, INT), size_t, size_t, size_t, size_t);
void BLAS(gemmtr)(GPB_F77_GEMMTR_PARAMS(T, INT), size_t, size_t, size_t);
void BLAS(gemmt)(GPB_F77_GEMMTR_PARAMS(T, INT), size_t, size_t, size_t);

#define SYMM_(stem) void BLAS(stem)(GPB_F77_SYMM_PARAMS(T, INT), size_t, size_t);
#define SYRK_(stem, S) void BLAS(stem)(GPB_F77_SYRK_PARAMS(T, S, INT), size_t, size_t);
#define SYR2K_(stem, S) void BLAS(stem)(GPB_F77_SYR2K_PARAMS(T, S, INT), size_t, size_t);
#define TRMM_(stem) void BLAS(stem)(GPB_F77_TRSM_PARAMS(T, INT), size_t, size_t, size_t, size_t);
SYMM_(symm) SYRK_(syrk, T) SYR2K_(syr2k, T) TRMM_(trmm) TRMM_(trsm)
#if COMPLEX
SYMM_(hemm) SYRK_(herk, R) SYR2K_(her2k, R)
#endif
#undef SYMM_
#undef SYRK_
#undef SYR2K_
#undef TRMM_

/* LAPACK */
void BLAS(getrf)(GPB_GETRF_PARAMS(T, INT));
void BLAS(potrf)(GPB_POTRF_PARAMS(T, INT), size_t);
void BLAS(getrs)(GPB_GETRS_PARAMS(T, INT), size_t);
void BLAS(potrs)(GPB_POTRS_PARAMS(T, INT), size_t);
