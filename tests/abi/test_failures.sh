#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every driver call of the path failing, once or always, with errors that pass and errors that stay: the right C each time, the process
# alive, at most one warning. 2 MiB of device memory, so that calls run in panels and some of C is home already when it happens.
. "$(dirname "$0")/harness.sh"
need "$debian/openblas-pthread/libblas.so.3"
build failures gcc -std=c11 -D_GNU_SOURCE -O2 "$programs/failures.c" -L"$debian/openblas-pthread" -lblas -lm || finish

# one <FAKECUDA_FAIL>
one() { FAKECUDA_FAIL=$1 GPUBLAS_MEMORY=2M preloaded openblas ./failures > one.out 2> one.err; }

one '' ; expect 'without a failure: exit' 0 $?
GPUBLAS_VERBOSE=1 GPUBLAS_MEMORY=2M preloaded openblas ./failures > /dev/null 2> whole.trace
expect 'all twelve calls on the GPU' 12 "$(grep -c ' route=gpu ' whole.trace)"

runs=0 right=0 finished=0
for function in $(sed -n 's/^DRIVER( \(cu[A-Za-z0-9]*\) )/\1/p' "$here/../../src/driver.def"); do
    case $function in cuGetErrorName|cuDriverGetVersion|cuCtxPopCurrent|cuDevicePrimaryCtxRelease|cuDeviceTotalMem|cuFuncGetAttribute|cuStreamDestroy|cuEventDestroy|cuMemFreeHost|cuStreamWaitEvent|cuFuncSetAttribute|cuDeviceGetName) continue ;; esac
    for count in 1 2 4 9 17 '*'; do
        for code in 2 209 700 719 999; do      # out of memory, no image for this GPU, illegal address, launch failed, unknown
            one "$function:$count:$code"; exit=$?
            runs=$((runs + 1))
            if [ $exit = 0 ] && [ "$(wc -l < one.err)" -le 1 ]; then right=$((right + 1))
            else fail "$function failing at call $count with $code: exit $exit"; head -3 one.out one.err; fi
            grep -q 'the GPU failed' one.err && finished=$((finished + 1))
        done
    done
done
expect "right, of $runs runs" $runs $right
if [ $finished -ge 200 ]; then ok "in $finished of them the host finished a call"; else fail "only $finished runs had a failing call"; fi

# Nothing of CUDA for calls that are not worth it, even where the program has libcuda; and what a mistyped option does.
FAKECUDA_LOG=$scratch/driver.log GPUBLAS_OFFLOAD=auto LD_LIBRARY_PATH=$debian/openblas-pthread:$fake LD_PRELOAD="$library $fake/libcuda.so.1" ./failures
expect 'small calls with libcuda in the process: exit' 0 $?
expect 'and CUDA is not started for them' 0 "$(grep -c cuInit driver.log)"
GPUBLAS_KERNEL=nonesuch preloaded openblas ./failures 2> kernel.err
expect 'an unknown kernel: warnings' 1 "$(grep -c 'GPUBLAS_KERNEL=nonesuch' kernel.err)"
GPUBLAS_DEVICES=zero GPUBLAS_VERBOSE=1 preloaded openblas ./failures 2> devices.err
expect 'a bad list of devices: warnings' 1 "$(grep -c 'GPUBLAS_DEVICES=zero' devices.err)"
expect 'and GPU 0 is used' 12 "$(grep -c ' route=gpu ' devices.err)"
finish
