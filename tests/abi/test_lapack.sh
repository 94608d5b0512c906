#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# LAPACK's single-precision suite (Debian's liblapack-test) on netlib's LAPACK and BLAS, with every SGEMM on
# the fake GPU. A relative error of 2^-22 in SGEMM alone makes 281 of its tests fail. Without us: 0 failures
# in 1,327,023. A failing block is not counted as run. GPB_TEST_LARGE=1: once more with the FP16X3 kernel
# forced for every size (minutes on the fake GPU; ci/gpu does it on a real one).
. "$(dirname "$0")/harness.sh"
need "$debian/lapack/xlintsts" "$debian/lapack/liblapack.so.3" "$debian/blas/libblas.so.3"
wanted=1327023
# STFSM fails on any rounding but netlib's, a better one too.
export LD_LIBRARY_PATH=$debian/lapack:$debian/blas:$fake FAKECUDA_NETLIB=1
export GPUBLAS_OFFLOAD=always

for kernel in '' ${GPB_TEST_LARGE:+fp16x3}; do
    export GPUBLAS_KERNEL=$kernel
    [ -n "$kernel" ] || unset GPUBLAS_KERNEL
    what=${kernel:-"the library's choice"}
    mkdir "suite_$kernel" && cd "suite_$kernel" || exit 1

    # Do its calls reach the GPU path? The smallest of the programs shows that.
    GPUBLAS_VERBOSE=1 LD_PRELOAD=$library "$debian/lapack/xlintstrfs" < "$debian/lapack/stest_rfp.in" \
        > rfp.result 2> rfp.trace
    at_least 4000 "$(traced rfp.trace ' sgemm_ ')" "calls of sgemm_ in xlintstrfs on the GPU, by $what"

    # FP32 arithmetic may fail one test: in STFSM, which fails with any rounding but netlib's. Then its 7776
    # tests do not count as run.
    read -r run failed other < <("$here/lapack_suite.sh" "$debian/lapack" 2 "$library")
    expect "$what: tests run, but for STFSM's if one of them failed" $wanted $((run + 7776 * failed))
    expect "$what: at most one numerical error, no other errors" '1 0' "$((failed <= 1)) $other"
    grep -h -A 1 'out of' ./*.out
    cd ..
done
finish
