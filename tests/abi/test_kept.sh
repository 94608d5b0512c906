#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Factors that stay on the GPU are used by what follows, if and only if the program's copy is still the same.
. "$(dirname "$0")/harness.sh"
need "$debian/openblas-pthread/liblapack.so.3"
build kept gcc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror "-I$here/../.." "$programs/kept.c" \
    "$library" -Wl,-rpath,"$(dirname "$library")" -lm || finish
export LD_LIBRARY_PATH=$fake GPUBLAS_CALIBRATION=off GPUBLAS_OFFLOAD=always
export GPUBLAS_HOST_BLAS=$debian/openblas-pthread/liblapack.so.3

for order in 150 300; do
    GPUBLAS_VERBOSE=1 ./kept $order > kept.out 2> kept.err
    expect "order $order: wrong" 0 $?
    head -5 kept.out
    at_least 100 "$(grep -c 'why="the factors are on the GPU still"' kept.err)" \
        'calls whose factors were there'
done
# Without workers the calling thread takes the digests.
GPUBLAS_THREADS=1 ./kept 150 > kept.out 2> kept.err
expect 'one thread: wrong' 0 $?
head -5 kept.out
# The copies run while the streams do, and kernels in their order.
FAKECUDA_ENGINE=1 ./kept 150 > kept.out 2> kept.err
expect 'copies beside the kernels: wrong' 0 $?
head -5 kept.out
finish
