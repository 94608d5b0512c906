#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every driver call of the path fails, once or always, with errors that pass and errors that stay. C is right
# each time, the process lives, and there is at most one warning. There are 2 MiB of device memory, so calls
# run in panels and some of C is home already when it happens.
. "$(dirname "$0")/harness.sh"
need "$debian/openblas-pthread/libblas.so.3"
build failures gcc -std=c11 -D_GNU_SOURCE -O2 "$programs/failures.c" -L"$debian/openblas-pthread" -lblas -lm \
    || finish

# one <FAKECUDA_FAIL>
one() { FAKECUDA_FAIL=$1 GPUBLAS_MEMORY=2M preloaded openblas ./failures > one.out 2> one.err; }

one ''
expect 'without a failure: exit' 0 $?
GPUBLAS_VERBOSE=1 GPUBLAS_MEMORY=2M preloaded openblas ./failures > /dev/null 2> whole.trace
expect 'all twelve calls on the GPU' 12 "$(grep -c ' route=gpu ' whole.trace)"

# Out of memory at every second place, and at the others one of four errors in rotation: no image for this
# GPU, illegal address, launch failed, unknown. The next day each place has another one: eight days in a row
# have all. GPB_TEST_SEED: another day; GPB_TEST_LARGE=1: all. `inject` has each of seven errors at each call
# of smaller products.
codes=(2 209 2 700 2 719 2 999)
turn=${GPB_TEST_SEED:-$(($(date +%s) / 86400))}
runs=0 right=0 finished=0
for function in \
    $(sed -nE 's/^(DRIVER|OPTIONAL)\( (cu[A-Za-z0-9]*).*/\2/p' "$here/../../src/service/driver.def"); do
    case $function in
        cuGetErrorName | cuDriverGetVersion | cuCtxPopCurrent | cuDevicePrimaryCtxRelease) continue ;;
        cuFuncSetAttribute | cuDeviceGetName | cuOccupancyMaxActiveClusters | cuStreamIsCapturing) continue ;;
    esac
    for count in 1 2 4 9 17 '*'; do
        turn=$((turn + 1))
        today=${codes[turn % 8]}
        [ -z "${GPB_TEST_LARGE:-}" ] || today='2 209 700 719 999'
        for code in $today; do
            one "$function:$count:$code"
            exit=$?
            runs=$((runs + 1))
            if [ $exit = 0 ] && [ "$(wc -l < one.err)" -le 1 ]; then
                right=$((right + 1))
            else
                fail "$function failing at call $count with $code: exit $exit"
                head -3 one.out one.err
            fi
            grep -q 'the GPU failed' one.err && finished=$((finished + 1))
        done
    done
done
expect "right, of $runs runs" $runs $right
at_least 40 $finished 'of them had a call that the host finished'

# An image that cannot be loaded for want of memory is tried again a moment later; otherwise it is not.
image() {
    FAKECUDA_FAIL=$1 FAKECUDA_LOG=$PWD/image.log GPUBLAS_VERBOSE=1 GPUBLAS_MEMORY=2M preloaded openblas \
        ./failures > one.out 2> one.err
}
for rule in 1:2 2:2 1:209 \*:2; do
    rm -f image.log
    image "cuModuleLoadData:$rule"
    expect "an image not loaded, $rule: exit" 0 $?
    gpu=$(traced one.err) loads=$(grep -c ^cuModuleLoadData image.log) well=yes
    case $rule in
        [12]:2) [ "$gpu" -ge 9 ] || well=no ;;
        1:209)  [ "$gpu $loads" = '0 1' ] || well=no ;;
        *)      [ "$gpu" = 0 ] || well=no ;;
    esac
    expect "an image not loaded, $rule: $gpu of 12 calls on the GPU, $loads attempts to load: fine" yes $well
done

# A failure that passes, after which the driver cannot even wait. The lane may still be at work, so nothing
# goes to the GPU any more.
one 'cuEventQuery:2:2,cuStreamSynchronize:*:2'
expect 'a driver that cannot wait: exit' 0 $?
expect 'and the GPU is given up' 1 "$(grep -c 'from now on' one.err)"

# Operands on the GPU: what C in device memory already has is not added twice, and the host can reach the
# rest.
build regressions gcc -std=c11 -O2 "$programs/regressions.c" "$library" -Wl,-rpath,"$(dirname "$library")" \
    -L"$debian/openblas-pthread" -lblas -L"$fake" -lcuda -lm || finish
preloaded openblas ./regressions scalars 2> scalars.err
expect 'complex scalars, an illegal group: wrong' 0 $?
for rule in '' cuMemcpyHtoDAsync:{2,5,9,30}:2 cuLaunchKernel:{1,2,3,9,\*}:2 cuLaunchKernel:1:209 \
    cuModuleLoadData:1:209 cuStreamWaitEvent:1:2; do
    FAKECUDA_FAIL=$rule GPUBLAS_MEMORY=2M preloaded openblas ./regressions device 2> device.err
    expect "C on the GPU, ${rule:-no failure}: wrong" 0 $?
done
# A second failure that passes, while the host fetches operands or brings C back.
for first in cuLaunchKernel:1 cuLaunchKernel:3 cuEventRecord:2; do
    for second in cuMemcpy2DAsync:{1,2,\*} cuMemcpy{DtoHAsync:1,HtoDAsync:30}:2,cuMemcpy2DAsync:1 \
        cuStreamSynchronize:{4,5,6}; do
        FAKECUDA_FAIL=$first:2,$second:2 GPUBLAS_MEMORY=2M preloaded openblas ./regressions device \
            2> device.err
        expect "C on the GPU, $first:2,$second:2: wrong, unreachable" '0 0' \
            "$? $(grep -c 'cannot be reached' device.err)"
    done
done
# The same with operands in slices, and blocks of C that slices leave to other kernels.
for rule in '' cuLaunchKernel:{1,2,3,9,\*}:2 cuLaunchKernelEx:{1,2,\*}:2 cuLaunchKernelEx:1:209; do
    FAKECUDA_FAIL=$rule GPUBLAS_KERNEL=fp16x3 preloaded openblas ./regressions device 2> device.err
    expect "C on the GPU, in slices, ${rule:-no failure}: wrong" 0 $?
    FAKECUDA_FAIL=$rule GPUBLAS_KERNEL=fp16x3 GPUBLAS_MEMORY=17700K preloaded openblas ./failures \
        > slices.out 2> slices.err
    expect "in slices and panels, ${rule:-no failure}: exit" 0 $?
done
# And with Stream-K. Its counters are set to zero once and must stay so after each call, whatever fails.
deep() {
    FAKECUDA_FAIL=$1 FAKECUDA_SUMMARY=$scratch/deep.sum GPUBLAS_KERNEL=ffma preloaded openblas ./failures \
        deep > deep.out 2> deep.err
}
deep ''
expect 'k shared out: exit' 0 $?
expect 'in most launches' 1 \
    "$(awk '/gpb_sgemm_ffma/ { split($3, all, "="); split($5, some, "=")
            print (some[2] >= 10 && 2 * some[2] > all[2]) }' deep.sum)"
for rule in cuMemAlloc:{1,2,3,\*}:2 cuMemsetD8Async:{1,\*}:{2,719} cuStreamSynchronize:{1,2,3}:2 \
    cuLaunchKernel:{1,2,3,9,\*}:{2,701,719}; do
    deep "$rule"
    expect "k shared out, $rule: exit" 0 $?
    expect "k shared out, $rule: warnings" 1 "$((1 - ($(wc -l < deep.err) > 1)))"
done
GPUBLAS_MEMORY=100K preloaded openblas ./regressions device 2> device.err
expect 'C on the GPU, no memory for panels: wrong' 0 $?
for rule in '' cuMemcpy2DAsync:{4,12,20}:2 cuEventQuery:{1,2,3}:2 cuEventRecord:{4,5,6}:2 \
    cuLaunchKernel:1:2; do
    FAKECUDA_FAIL=$rule preloaded openblas ./regressions mixed 2> mixed.err
    expect "C in both memories, ${rule:-no failure}: wrong" 0 $?
done

# Pinned operands: their strips are queued at once, each with an event behind it, so that kernels do not wait
# for those that follow.
FAKECUDA_LOG=$PWD/pinned.log preloaded openblas ./regressions pinned 2> pinned.err
expect 'pinned operands: wrong' 0 $?
sed -i '/^cuLaunch/,$d; /^cuCtxGetId/d' pinned.log      # that is asked before each event is recorded
strips=$(grep -c ^cuMemcpy2DAsync pinned.log)
expect 'several strips, each with an event right behind it' "1 $strips" \
    "$((strips >= 4)) $(grep -A 1 ^cuMemcpy2DAsync pinned.log | grep -c ^cuEventRecord)"

# Strips of operands in several kinds of memory, by a kernel that launches nothing for the first of them, and
# by one that does.
for kernel in ffma fp16x3; do
    for engine in 0 1; do
        FAKECUDA_ENGINE=$engine GPUBLAS_KERNEL=$kernel GPUBLAS_VERBOSE=1 preloaded openblas ./regressions \
            places 2> places.err
        expect "places, $kernel, engine $engine: wrong" 0 $?
        grep '^wrong' places.err
    done
done

# Calls that are not worth it do nothing with CUDA, even if the program has libcuda. And what a mistyped
# option does.
FAKECUDA_LOG=$scratch/small.log GPUBLAS_OFFLOAD=auto LD_LIBRARY_PATH=$debian/openblas-pthread:$fake \
    LD_PRELOAD="$library $fake/libcuda.so.1" ./failures
expect 'small calls with libcuda in the process: exit' 0 $?
expect 'and CUDA is not started for them' 0 "$(grep -c cuInit small.log)"
GPUBLAS_KERNEL=nonesuch preloaded openblas ./failures 2> kernel.err
expect 'an unknown kernel: warnings' 1 "$(grep -c 'GPUBLAS_KERNEL=nonesuch' kernel.err)"
GPUBLAS_DEVICES=zero GPUBLAS_VERBOSE=1 preloaded openblas ./failures 2> devices.err
expect 'a bad list of devices: warnings' 1 "$(grep -c 'GPUBLAS_DEVICES=zero' devices.err)"
expect 'and GPU 0 is used' 12 "$(grep -c ' route=gpu ' devices.err)"
finish
