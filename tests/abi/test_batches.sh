#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Batches of TRSM and SYRK: right on hosts that have none, on the GPU from host and device memory, each as one
# call, and whatever driver call fails: half of these failures a day. GPB_TEST_SEED: another day;
# GPB_TEST_LARGE=1: all.
. "$(dirname "$0")/harness.sh"
need "$debian/blas/libblas.so.3" "$debian/openblas-pthread/libblas.so.3" "$debian/blis-pthread/libblas.so.3"
build batches gcc -std=c11 -D_GNU_SOURCE -O2 -fno-math-errno -fcx-limited-range -Wall -Wextra -Werror \
    "$programs/batches.c" "$library" -Wl,-rpath,"$(dirname "$library")" -lm -ldl || finish
export GPUBLAS_CALIBRATION=off

# judge <name> <wanted lines> <status>
judge() {
    if [ "$3" = 0 ] && [ "$(grep -c '^right ' "$1.out")" = "$2" ]; then
        ok "$1: $2 checks right"
    else
        fail "$1: exit $3, $(grep -c '^right ' "$1.out") of $2 checks right"
        grep -v '^right ' "$1.out"
        head -5 "$1.err"
    fi
}
for host in netlib openblas blis; do
    LD_LIBRARY_PATH=$(host_folder $host) GPUBLAS_OFFLOAD=never ./batches > "$host.out" 2> "$host.err"
    judge "$host" 93 $?
done
GPUBLAS_HOST_BLAS=embedded GPUBLAS_OFFLOAD=never ./batches > embedded.out 2> embedded.err
judge embedded 93 $?

export LD_LIBRARY_PATH=$debian/openblas-pthread:$fake
GPUBLAS_OFFLOAD=always GPUBLAS_VERBOSE=1 ./batches > always.out 2> always.err
judge always 93 $?
GPUBLAS_VERBOSE=1 ./batches device > device.out 2> device.err
judge device 92 $?
expect 'calls with operands on the device that did not go there' 0 "$(grep -c 'route=host' device.err)"
# A batch is one call, not a loop of them. Groups that are alike are joined, but not beyond an empty one.
for routine in trsm syrk; do
    at_least 300 "$(grep -c "${routine}_batch_strided.* batch=5 route=gpu" always.err)" \
        "calls of ${routine}_batch_strided of five"
done
at_least 200 "$(grep -c 'syrk_batch_* .* batch=5 route=gpu' always.err)" 'calls of syrk_batch of five'
at_least 300 "$(grep -c 'trsm_batch_* .* batch=4 route=gpu' always.err)" 'calls of trsm_batch of four'

runs=0 right=0 finished=0 turn=${GPB_TEST_SEED:-$(($(date +%s) / 86400))}
for function in cuLaunchKernel cuMemcpyHtoDAsync cuMemcpyDtoHAsync cuMemcpy2DAsync cuEventRecord \
    cuEventQuery cuStreamWaitEvent cuStreamSynchronize cuMemAlloc cuModuleGetFunction cuModuleLoadData; do
    for count in 1 2 3 5 8 13 34 89 '*'; do
        turn=$((turn + 1))
        for code in $(GPB_TEST_SEED=$turn of_today 2 700); do
            FAKECUDA_FAIL=$function:$count:$code GPUBLAS_OFFLOAD=always ./batches few > one.out 2> one.err
            status=$? runs=$((runs + 1))
            if [ $status = 0 ]; then right=$((right + 1)); else
                fail "$function failing at call $count with $code: exit $status"
                grep -v '^right ' one.out | head -3
                head -3 one.err
            fi
            grep -q 'the GPU failed' one.err && finished=$((finished + 1))
        done
    done
done
expect "right, of $runs runs" $runs $right
at_least 20 $finished 'of them had a failure that somebody had to deal with'
finish
