#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# valgrind's memcheck on 64 threads' calls (programs/storm.c) and on cancelled threads: no invalid access, no
# use of uninitialised memory, nothing lost at exit, on each route. netlib is the host, because valgrind does
# not know OpenBLAS's AVX-512. The "possibly lost" blocks are the thread-local storage of workers that still
# run.
. "$(dirname "$0")/harness.sh"
need /usr/bin/valgrind "$debian/blas/libblas.so.3" "$debian/lapack/liblapack.so.3"
build storm gcc -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror "$programs/storm.c" \
    -L"$debian/lapack" -L"$debian/blas" -llapack -lblas -lpthread -lm -Wl,-rpath,"$debian/lapack" || finish

# clean <offload> <what> <count> <calls on the GPU, at least>
clean() {
    offload=$1 preloaded netlib env GPUBLAS_VERBOSE=1 valgrind --leak-check=full \
        --errors-for-leak-kinds=definite,indirect --error-exitcode=9 --log-file=valgrind.log \
        ./storm "$2" "$3" > storm.out 2> storm.err
    local exit=$?
    expect "$2 $3, $1: exit, wrong" '0 wrong 0' "$exit $(cat storm.out)"
    if [ $exit = 9 ]; then head -60 valgrind.log; fi
    at_least "$4" "$(traced storm.err)" 'of its calls on the GPU'
}
clean always threads 1 100
clean auto threads 1 0
clean never threads 1 0
clean always cancel 20 10
finish
