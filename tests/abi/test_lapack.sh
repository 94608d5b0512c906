#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# LAPACK's suite (Debian's liblapack-test) on netlib's LAPACK and BLAS, with every GEMM on the fake GPU, in
# the type whose turn it is today, so that four days in a row cover all. A relative error of 2^-22 in SGEMM
# alone makes 281 tests fail. Without us: no failure. A failing block is not counted as run. GPB_TEST_SEED:
# another day. GPB_TEST_LARGE=1: all types, and s once more with the FP16X3 kernel forced for every size
# (minutes on the fake GPU; ci/gpu does it on a real one).
. "$(dirname "$0")/harness.sh"
need "$debian/lapack/xlintsts" "$debian/lapack/liblapack.so.3" "$debian/blas/libblas.so.3"
declare -A wanted=([s]=1327023 [d]=1327033 [c]=786775 [z]=787030)
# STFSM fails on any rounding but netlib's, a better one too.
export LD_LIBRARY_PATH=$debian/lapack:$debian/blas:$fake FAKECUDA_NETLIB=1
export GPUBLAS_OFFLOAD=always

suite() {       # <type> <kernel, or nothing>
    local p=$1 kernel=$2 what="$1, by ${2:-"the library's choice"}" run failed other may_fail
    mkdir "suite_$p$kernel" && cd "suite_$p$kernel" || exit 1
    export GPUBLAS_KERNEL=$kernel
    [ -n "$kernel" ] || unset GPUBLAS_KERNEL

    # Do its calls reach the GPU path? The smallest of the programs shows that.
    GPUBLAS_VERBOSE=1 LD_PRELOAD=$library "$debian/lapack/xlintstrf$p" < "$debian/lapack/${p}test_rfp.in" \
        > rfp.result 2> rfp.trace
    at_least 2000 "$(traced rfp.trace " ${p}gemm_ ")" "calls of ${p}gemm_ in xlintstrf$p on the GPU: $what"

    # FP32 arithmetic may fail one test: in STFSM, which fails with any rounding but netlib's. Then its 7776
    # tests do not count as run.
    read -r run failed other < <("$here/lapack_suite.sh" "$debian/lapack" 2 "$library" "$p")
    expect "$what: tests run, but for STFSM's if one of them failed" "${wanted[$p]}" $((run + 7776 * failed))
    case $p in s) may_fail=1 ;; *) may_fail=0 ;; esac
    expect "$what: at most $may_fail numerical errors, no other errors" '1 0' "$((failed <= may_fail)) $other"
    grep -h -A 1 'out of' ./*.out
    cd ..
}
for p in $(of_today s d c z); do suite "$p" ''; done
[ -z "${GPB_TEST_LARGE:-}" ] || suite s fp16x3
finish
