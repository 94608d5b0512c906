#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# LAPACK's solvers in front of each LAPACK that may be behind us, and in front of none but our own: on that
# host alone, and with all that can be on the fake GPU. Residuals are at most twice the host's. By halves,
# with every product a call of its own that is verified, too. The GPU's part is the same in front of all, so
# each day has netlib's and one of the other four. GPB_TEST_SEED: another day; GPB_TEST_LARGE=1: all.
. "$(dirname "$0")/harness.sh"
need "$debian/lapack/liblapack.so.3" "$debian/openblas-pthread/liblapack.so.3" \
     "$debian/openblas64-pthread/liblapack64.so.3" "$debian/blis-pthread/libblas.so.3" \
     "$debian/lapack/xlintstds"
export LD_LIBRARY_PATH=$fake GPUBLAS_CALIBRATION=off
build solvers gcc -std=c11 -D_GNU_SOURCE -O2 -fcx-limited-range "$programs/solvers.c" "$library" \
    -Wl,-rpath,"$(dirname "$library")" -lm || finish

# solved <host> <its path> <widths> <least order of a NaN that it finds> <the same by halves>
solved() {
    local host=$1 path=$2 widths=$3 alone=$4 halves=$5 routine
    export GPUBLAS_HOST_BLAS=$path
    GPUBLAS_OFFLOAD=never ./solvers "$widths" 100 "$alone" > alone.out 2> alone.err
    expect "$host alone" '0 wrong' "$(tail -1 alone.out)"
    GPUBLAS_OFFLOAD=always GPUBLAS_VERBOSE=1 ./solvers "$widths" 100 "$halves" contained > gpu.out 2> gpu.err
    expect "$host and the GPU" '0 wrong' "$(tail -1 gpu.out)"
    grep -h -m 5 wrong: alone.out gpu.out
    for routine in getrf getrf2 getrs gesv potrf potrf2 potrs posv getri potri lauum trtri trtrs gecon \
        pocon; do
        at_least 80 "$(traced gpu.err "${routine}_")" "calls or products of $routine on the GPU before $host"
    done
    for routine in dsgesv zcgesv dsposv zcposv; do
        at_least 30 "$(traced gpu.err " ${routine}_")" "calls of $routine on the GPU before $host"
    done
    # Residuals are in units of their bounds. What is a tenth of that is rounding's luck.
    expect "$host: residuals more than twice the host's" '' "$(paste -d'|' alone.out gpu.out |
        awk -F'[:|] *' '/: [0-9.]*\|/ && $4 > 2 * $2 + 0.1 { print $1, $2, $4 }')"
}
for host in netlib $(of_today openblas openblas64 blis embedded); do
    case $host in
        netlib)     solved netlib "$debian/lapack/liblapack.so.3" both 0 0 ;;
        openblas)   solved openblas "$debian/openblas-pthread/liblapack.so.3" 32 1000 31 ;;
        openblas64) solved openblas64 "$debian/openblas64-pthread/liblapack64.so.3" 64 1000 31 ;;
        # Hosts without a LAPACK have ours.
        blis)       solved blis "$debian/blis-pthread/libblas.so.3" both 0 0 ;;
        embedded)   solved embedded embedded both 0 0 ;;
    esac
done
export GPUBLAS_HOST_BLAS=$debian/lapack/liblapack.so.3
GPUBLAS_VERIFY=1 GPUBLAS_OFFLOAD=always GPUBLAS_VERBOSE=1 ./solvers both 100 0 > halves.out 2> halves.err
expect 'netlib by halves, verified' '0 wrong' "$(tail -1 halves.out)"
at_least 1000 "$(traced halves.err getrf_)" 'products of getrf on the GPU'

# LAPACK's own testers of the refined solvers
for kind in ds zc; do
    GPUBLAS_OFFLOAD=always GPUBLAS_VERBOSE=1 LD_PRELOAD=$library "$debian/lapack/xlintst$kind" \
        < "$debian/lapack/${kind}test.in" > testers.out 2> testers.err
    expect "xlintst$kind: successes, and tests in them" '4 812' "$(
        awk '/passed the/ { good++; run += $(NF - 2) } END { print good, run }' testers.out)"
    at_least 800 "$(traced testers.err " ${kind}")" "calls of ${kind}gesv and ${kind}posv on the GPU"
done
finish
