#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# LAPACK's solvers in front of each LAPACK that may be behind us, and in front of none but our own: on that
# host alone, and by halves with every product on the fake GPU. Residuals are at most twice the host's.
. "$(dirname "$0")/harness.sh"
need "$debian/lapack/liblapack.so.3" "$debian/openblas-pthread/liblapack.so.3" \
     "$debian/openblas64-pthread/liblapack64.so.3" "$debian/blis-pthread/libblas.so.3"
export LD_LIBRARY_PATH=$fake GPUBLAS_CALIBRATION=off
build solvers gcc -std=c11 -D_GNU_SOURCE -O2 -fcx-limited-range "$programs/solvers.c" "$library" \
    -Wl,-rpath,"$(dirname "$library")" -lm || finish

# solved <host> <its path> <widths> <least order of a NaN that it finds> <the same by halves>
solved() {
    local host=$1 path=$2 widths=$3 alone=$4 halves=$5 routine
    export GPUBLAS_HOST_BLAS=$path
    GPUBLAS_OFFLOAD=never ./solvers "$widths" 100 "$alone" > alone.out 2> alone.err
    expect "$host alone" '0 wrong' "$(tail -1 alone.out)"
    GPUBLAS_OFFLOAD=always GPUBLAS_VERBOSE=1 ./solvers "$widths" 100 "$halves" > halves.out 2> halves.err
    expect "$host by halves" '0 wrong' "$(tail -1 halves.out)"
    grep -h -m 5 wrong: alone.out halves.out
    for routine in getrf getrf2 getrs gesv potrf potrf2 potrs posv getri potri lauum trtri trtrs; do
        at_least 90 "$(traced halves.err "${routine}_")" "products of $routine on the GPU before $host"
    done
    expect "$host: residuals more than twice the host's" '' "$(paste -d'|' alone.out halves.out |
        awk -F'[:|] *' '/: [0-9.]*\|/ && $4 > 2 * $2 + 0.02 { print $1, $2, $4 }')"
}
solved netlib "$debian/lapack/liblapack.so.3" both 0 0
solved openblas "$debian/openblas-pthread/liblapack.so.3" 32 1000 31
solved openblas64 "$debian/openblas64-pthread/liblapack64.so.3" 64 1000 31
# Hosts without a LAPACK have ours.
solved blis "$debian/blis-pthread/libblas.so.3" both 0 0
solved embedded embedded both 0 0
finish
