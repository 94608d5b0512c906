#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# LAPACK's single-precision suite (Debian's liblapack-test) on netlib's LAPACK and BLAS, every SGEMM on the fake GPU: a relative error
# of 2^-22 in SGEMM alone makes 281 of its tests fail. Without us: 0 failures in 1,327,023. A failing block is not counted as run.
. "$(dirname "$0")/harness.sh"
need "$debian/lapack/xlintsts" "$debian/lapack/liblapack.so.3" "$debian/blas/libblas.so.3"
wanted=1327023

ln -s "$debian"/lapack/x* "$debian"/lapack/*.in .
export LD_LIBRARY_PATH=$debian/lapack:$debian/blas:$fake FAKECUDA_NETLIB=1     # STFSM fails on any rounding but netlib's, a better one too

# Do its calls reach the GPU path? The smallest of the programs shows it.
GPUBLAS_VERBOSE=1 GPUBLAS_OFFLOAD=always LD_PRELOAD=$library ./xlintstrfs < stest_rfp.in > rfp.result 2> rfp.trace
calls=$(traced rfp.trace ' sgemm_ ')
if [ "$calls" -ge 4000 ]; then ok "$calls calls of sgemm_ in xlintstrfs went to the GPU"; else fail "only $calls calls went to the GPU"; fi

GPUBLAS_OFFLOAD=always LD_PRELOAD=$library $python "$debian/lapack/lapack_testing.py" -d . -b . -r -s -p s > table 2>&1
cat table
read -r run numerical other < <(awk '/^REAL/ { print $2, $3, $5 }' table)
expect 'tests run' $wanted "${run:-none}"
expect 'numerical errors' 0 "${numerical:-none}"
expect 'other errors' 0 "${other:-none}"
finish
