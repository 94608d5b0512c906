/* SPDX-License-Identifier: MIT */
/* Every exported name, spelled out from the rows of blas.def. Define SYMBOL, and include this file as
   often as needed: SYMBOL( name, stem, language F77 | C, width of its integers 32 | 64, DOOR_ | NONE_ ). C
   and the assembler read it, so it has no declarations.
   Conventions for names:
   - distributions: sgemm_, cblas_sgemm;
   - the reference's and oneMKL's extended names: sgemm_64_, cblas_sgemm_64;
   - OpenBLAS with suffix 64_: sgemm_64_, cblas_sgemm64_;
   - inside the NumPy and SciPy wheels: the same with the prefix scipy_. */
#define GPB_PLAIN_F77(stem, door) SYMBOL(stem##_, stem, F77, 32, door) SYMBOL(stem##_64_, stem, F77, 64, door)
#define GPB_PLAIN_C(stem, door)                                                          \
    SYMBOL(cblas_##stem, stem, C, 32, door) SYMBOL(cblas_##stem##_64, stem, C, 64, door) \
    SYMBOL(cblas_##stem##64_, stem, C, 64, door)
#define GPB_WHEELS_F77(stem, door) \
    SYMBOL(scipy_##stem##_, stem, F77, 32, door) SYMBOL(scipy_##stem##_64_, stem, F77, 64, door)
#define GPB_WHEELS_C(stem, door) \
    SYMBOL(scipy_cblas_##stem, stem, C, 32, door) SYMBOL(scipy_cblas_##stem##64_, stem, C, 64, door)

#define WHEEL(stem) \
    GPB_PLAIN_F77(stem, DOOR_) GPB_PLAIN_C(stem, DOOR_) GPB_WHEELS_F77(stem, DOOR_) GPB_WHEELS_C(stem, DOOR_)
#define DOOR(stem) GPB_PLAIN_F77(stem, DOOR_) GPB_PLAIN_C(stem, DOOR_)
#define LAPACK(stem) GPB_PLAIN_F77(stem, DOOR_) GPB_WHEELS_F77(stem, DOOR_)
#define BOTH(stem) GPB_PLAIN_F77(stem, NONE_) GPB_PLAIN_C(stem, NONE_)
#define PROBE(stem) \
    SYMBOL(stem##_, stem, F77, 32, DOOR_) SYMBOL(stem##_64_, stem, F77, 64, NONE_) GPB_PLAIN_C(stem, NONE_)
#define F77(stem)  GPB_PLAIN_F77(stem, NONE_)
#define C(stem)    GPB_PLAIN_C(stem, NONE_)

#include "src/host/blas.def"

#undef WHEEL
#undef DOOR
#undef LAPACK
#undef BOTH
#undef PROBE
#undef F77
#undef C
#undef GPB_PLAIN_F77
#undef GPB_PLAIN_C
#undef GPB_WHEELS_F77
#undef GPB_WHEELS_C
#undef SYMBOL
