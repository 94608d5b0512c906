#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program that resets its GPU (cudaDeviceReset) between calls, or beside them. All that was ours there is
# gone, but the handles stay the same. programs/reset.c. FAKECUDA_STALE: a process that uses something from
# before a reset dies.
. "$(dirname "$0")/harness.sh"
need "$debian/openblas-pthread/libblas.so.3"
build reset gcc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror "$programs/reset.c" \
    -L"$debian/openblas-pthread" -lblas -lpthread -ldl || finish

# resets <name> <what the program is to do ...>: right, with nothing printed but one failure; and the routes,
# one a line
resets() {
    local name=$1; shift
    GPUBLAS_VERBOSE=1 preloaded openblas timeout 120 ./reset "$@" > reset.out 2> reset.err
    expect "$name: exit, right" '0 1' "$? $(grep -c ^right: reset.out)"
    grep ^WRONG reset.out
}
export FAKECUDA_STALE=1
# The last: a context that is destroyed again while the library asks which one it is.
for driver in '' cuCtxGetId:*:801 cuCtxGetId:*:801,cuDevicePrimaryCtxGetState:*:801 \
    cuMemHostRegister:*:801 cuCtxGetId:{4..6}:201; do
    for left in '' left; do
        FAKECUDA_FAIL=$driver resets \
            "four resets, ${driver:-a driver of today}${left:+, by a program that is done with its GPU}" \
            rounds 4 $left
        expect 'calls on the GPU' 10 "$(traced reset.err)"
        expect 'lines that are no calls' 0 "$(grep -vc '^gpublas: sgemm_ ' reset.err)"
    done
done
unset FAKECUDA_STALE
for engine in 0 1; do
    FAKECUDA_ENGINE=$engine resets "resets beside the calls of four threads, engine $engine" beside 40
    expect 'the GPU computes again' yes \
        "$([ "$(tail -40 reset.err | grep -c 'route=gpu ')" -gt 0 ] && echo yes)"
    expect 'at most one warning' yes "$([ "$(grep -vc '^gpublas: sgemm_ ' reset.err)" -le 1 ] && echo yes)"
done
# A context that is gone for good: each call of the first few finds it so, then the GPU is given up.
build wait gcc -std=c11 -D_GNU_SOURCE -O2 "$programs/wait.c" -L"$debian/openblas-pthread" -lblas -ldl \
    || finish
FAKECUDA_FAIL=cuEventQuery:9+:709 GPUBLAS_VERBOSE=1 preloaded openblas timeout 60 ./wait 100 60 2> gone.err
expect 'a context that stays gone: exit, given up' '0 yes' \
    "$? $([ "$(grep -c 'route=host why="no GPU"' gone.err)" -gt 20 ] && echo yes)"
finish
