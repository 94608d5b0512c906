#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each driver call of a factorisation or a solve that stays on the GPU fails, once or always. The results are
# right each time: the GPU's, finished by the host, or the host's own. A day has a third of these failures, by
# the day's number, so that three days in a row have all. GPB_TEST_SEED: another day; GPB_TEST_LARGE=1: all.
. "$(dirname "$0")/harness.sh"
need "$debian/openblas-pthread/liblapack.so.3"
build resident gcc -std=c11 -D_GNU_SOURCE -O2 "$programs/resident.c" "$library" \
    -Wl,-rpath,"$(dirname "$library")" -lm -ldl || finish
export LD_LIBRARY_PATH=$fake GPUBLAS_CALIBRATION=off GPUBLAS_OFFLOAD=always
export GPUBLAS_HOST_BLAS=$debian/openblas-pthread/liblapack.so.3

# one <FAKECUDA_FAIL> <order> ...
one() { local rules=$1; shift; FAKECUDA_FAIL=$rules ./resident "$@" > one.out 2> one.err; }

GPUBLAS_VERBOSE=1 one '' 300 all
expect 'without a failure: wrong' 0 $?
at_least 12 "$(grep -c 'route=gpu' one.err)" 'calls on the GPU'
GPUBLAS_VERBOSE=1 one '' 300 all device
expect 'matrices in device memory: wrong' 0 $?
expect 'all of these calls on the GPU' "$(wc -l < one.err)" "$(grep -c 'route=gpu' one.err)"
# Columns that begin at multiples of 16 bytes: the launches take the program's matrices as they lie.
one '' 301 all device
expect 'the same, in place: wrong' "0 as it was: 0" "$? $(tail -1 one.out)"
# One matrix there and the other one here: of A that is not positive definite, too. After a failure INFO is
# never 0 where there is no solution.
for place in device_a device_b; do
    one '' 300 all $place
    expect "$place: wrong" "0 as it was: 0" "$? $(tail -1 one.out)"
    for rule in cuStreamWaitEvent:{9,30} cuMemcpy2DAsync:{4,30} cuLaunchKernelEx:60 \
        cuStreamSynchronize:{4,9}; do
        one "$rule:2" 700 factors $place
        expect "$place, $rule fails: exit, all unreached or right" "0 as it was" \
            "$? $(tail -1 one.out | cut -d: -f1)"
        expect 'each that is unreached has a line' "$(tail -1 one.out | cut -d: -f2 | tr -d ' ')" \
            "$(grep -c 'cannot use a matrix in GPU memory' one.err)"
    done
done
# Places where few programs come (programs/corners.c).
build corners gcc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror "$programs/corners.c" "$library" \
    -Wl,-rpath,"$(dirname "$library")" -ldl -lpthread || finish
# corner <checks> <what> [size] with the variables of the call
corner() {
    local checks=$1; shift
    timeout 120 ./corners "$@" > corner.out 2> corner.err
    expect "corners $*: exit, checks" "0 $checks" "$? $(grep -c ^right corner.out)"
    grep wrong corner.out
}
for n in 4096 4100; do corner 1 transposed $n; done
for failed in 1 2 1,cuLaunchKernelEx:2; do
    FAKECUDA_FAIL=cuLaunchKernelEx:${failed//,/:2,}:2 corner 2 both
done
for rows in 900000 2200000 8400000; do corner 1 tall $rows; done
for count in 8 12 15 20; do
    FAKECUDA_FAIL=cuEventQuery:$count+:2 corner 1 refined 4096
    FAKECUDA_FAIL=cuEventQuery:$count+:2 corner 1 pivots 1024
done
for offload in always auto; do GPUBLAS_OFFLOAD=$offload corner 2 nothing; done
GPUBLAS_VERIFY=1 corner 2 device
corner 4 ending
FAKECUDA_CAPTURE=1 corner 1 graph
GPUBLAS_KERNEL=dmma_tma_quarter corner 1 joined 704
for n in 300 1026; do corner 1 column $n; done
for devices in 0 all; do FAKECUDA_DEVICES=2 GPUBLAS_DEVICES=$devices corner 2 queued 1; done
for rule in cuLaunchKernel:5 cuLaunchKernelEx:{1,20} cuMemcpy2DAsync:{1,5,40} cuStreamWaitEvent:9 \
    cuStreamSynchronize:7 cuEventRecord:30; do
    one "$rule:2" 301 triangles device
    expect "$rule fails in place: exit, calls that left B as it was" "0 as it was: 1" "$? $(tail -1 one.out)"
done
# TRMM in four types: by levels where B stays in device memory or has come to a place of its own.
build trmm gcc -std=c11 -D_GNU_SOURCE -O2 -fcx-limited-range -Wall -Wextra -Werror "$programs/trmm.c" \
    "$library" -Wl,-rpath,"$(dirname "$library")" -lm -ldl || finish
for place in here device odd; do
    ./trmm $place > trmm.out 2> trmm.err
    expect "trmm, $place: wrong" "0 as it was: 0" "$? $(tail -1 trmm.out)"
    head -3 trmm.out
done
GPUBLAS_MEMORY=70M ./trmm here 600 > trmm.out 2> trmm.err
expect 'trmm without room for a result beside B: wrong' "0 as it was: 0" "$? $(tail -1 trmm.out)"
for rule in cuLaunchKernel:{5,100} cuLaunchKernelEx:{1,50,100} cuMemcpy2DAsync:1 cuStreamWaitEvent:9 \
    cuStreamSynchronize:40; do
    FAKECUDA_FAIL=$rule:2 ./trmm device 600 sd > trmm.out 2> trmm.err
    expect "trmm, $rule fails: exit, calls that left B as it was" "0 as it was: 1" "$? $(tail -1 trmm.out)"
done
# getri fails with some columns of U^-1 at home, or all of these and some of X.
for count in $(seq 16 2 70); do
    one "cuEventQuery:$count:2" 600 inverses
    expect "inverses, cuEventQuery:$count fails: wrong" 0 $?
done
# GPUs whose blocks have less shared memory
for arch in 86 120; do
    FAKECUDA_ARCH=$arch GPUBLAS_VERBOSE=1 one '' 300 all
    expect "sm_$arch: exit, failures" '0 0' "$? $(grep -c 'the GPU failed' one.err)"
done
runs=0 right=0 finished=0 turn=${GPB_TEST_SEED:-$(($(date +%s) / 86400))}
# failing <function> <count> <code> <order> [triangles | refined]
failing() {
    turn=$((turn + 1))
    [ $((turn % 3)) = 0 ] || [ -n "${GPB_TEST_LARGE:-}" ] || return
    one "$1:$2:$3" "${@:4}"
    local exit=$?
    runs=$((runs + 1))
    if [ $exit = 0 ] && [ "$(wc -l < one.err)" -le 2 ]; then
        right=$((right + 1))
    else
        fail "$1 failing at call $2 with $3, order $4: exit $exit"
        head -3 one.out one.err
    fi
    grep -q 'the GPU failed' one.err && finished=$((finished + 1))
}
for function in cuLaunchKernel cuLaunchKernelEx cuMemcpyHtoDAsync cuMemcpyDtoHAsync cuMemcpy2DAsync \
    cuEventRecord cuEventQuery cuStreamWaitEvent cuStreamSynchronize cuMemAlloc cuModuleGetFunction \
    cuFuncSetAttribute; do
    for rule in 1:2 1:700 2:700 3:2 5:700 8:2 13:700 21:2 34:700 55:2 '*:2' '*:700'; do
        failing $function "${rule%:*}" "${rule#*:}" 300
    done
done
# Refined solutions: six calls, of which the last three factor anew in double precision.
for function in cuLaunchKernel cuLaunchKernelEx cuMemcpyHtoDAsync cuMemcpyDtoHAsync cuMemcpy2DAsync \
    cuEventRecord cuStreamWaitEvent cuStreamSynchronize; do
    for rule in 4:700 11:2 26:700 60:2 140:700; do
        failing $function "${rule%:*}" "${rule#*:}" 300 refined
    done
done
# A matrix that comes home in several pieces, of which some are there when it happens.
for count in 2 3 4 5 6 7 8 9 10 11 12 14 16 18 20; do failing cuMemcpy2DAsync $count 2 900; done
for count in {40..100..4} {140..240..10}; do failing cuMemcpy2DAsync $count 2 900 triangles; done
# The same where panels of rows are home, or some columns of one, and others are not: all of these each day.
for count in {1..160..3}; do GPB_TEST_LARGE=1 failing cuEventQuery $count 2 300 tall; done
for count in {1..80..3}; do GPB_TEST_LARGE=1 failing cuMemcpy2DAsync $count 2 300 tall; done
expect "right, of $runs runs" $runs $right
at_least $((runs / 3)) $finished 'of them had a failure that somebody had to deal with'
finish
