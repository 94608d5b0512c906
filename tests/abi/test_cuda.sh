#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Programs that use CUDA themselves: managed memory, graphs, several GPUs, device memory of their own.
# programs/cuda.c.
. "$(dirname "$0")/harness.sh"
need "$debian/openblas-pthread/libblas.so.3"
build cuda gcc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror "$programs/cuda.c" \
    -L"$debian/openblas-pthread" -lblas -lpthread -ldl "$fake/libcuda.so.1" || finish
export GPUBLAS_CALIBRATION=off

# uses <what> <checks>: the checks are right, and nothing but calls is printed
uses() {
    GPUBLAS_VERBOSE=1 preloaded openblas timeout 120 ./cuda "$1" > cuda.out 2> cuda.err
    expect "$1: exit, checks right, lines that are no calls" "0 $2 0" \
        "$? $(grep -c ^right cuda.out) $(grep -vc '^gpublas: [a-z]*_ order=' cuda.err)"
    grep ^WRONG cuda.out
    grep -v '^gpublas: [a-z]*_ order=' cuda.err | head -3
}
offload=auto uses managed 2
expect 'small products of managed memory on the GPU' 0 "$(traced cuda.err ' m=4 ')"
offload=always uses managed 2
expect 'and if all calls are to be there' 603 "$(traced cuda.err)"
FAKECUDA_CAPTURE=1 uses graph 2
expect 'calls on the GPU beside a graph' 3 "$(traced cuda.err)"
for seed in 1 2 3; do FAKECUDA_DEVICES=2 FAKECUDA_SEED=$seed GPUBLAS_DEVICES=0 uses elsewhere 1; done
FAKECUDA_DEVICES=2 GPUBLAS_DEVICES=0 uses hermitian 3
expect 'on the GPU' 1 "$(traced cuda.err)"
uses pitch 1
expect 'on the GPU' 1 "$(traced cuda.err)"
# Which GPU we use: the program's. One in exclusive mode only if it is the program's already, or the user says
# so.
gpu() { # <what> <checks> <wanted GPUs>
    GPUBLAS_VERBOSE=2 preloaded openblas timeout 60 ./cuda "$1" > gpu.out 2> gpu.err
    expect "$1, devices ${GPUBLAS_DEVICES:-auto}, mode ${FAKECUDA_MODE:-0}: exit, checks right, GPU" \
        "0 $2 $3 " \
        "$? $(grep -c ^right gpu.out) $(sed -n 's/^gpublas: GPU \([0-9]\): .*/\1/p' gpu.err | tr '\n' ' ')"
}
export FAKECUDA_DEVICES=3
gpu later 2 0
gpu own 1 1
gpu others 1 1
GPUBLAS_DEVICES=2 gpu own 1 2
# A launcher's rank decides where the program has not.
for variable in $(sed -n 's/^LAUNCHER( *\([A-Z0-9_]*\),.*/\1/p' "$here/../../src/service/launcher.def"); do
    echo "$variable = 0, 2, 4; then what is no rank"
    for rank in 0 2 4; do
        export "$variable=$rank"
        gpu later 2 $((rank % 3))
    done
    for rank in '' x -1 1x 99999999999999999999; do
        export "$variable=$rank"
        gpu later 2 0
    done
    unset "$variable"
done
LOCAL_RANK=2 gpu own 1 1
SLURM_LOCALID=0 OMPI_COMM_WORLD_LOCAL_RANK=1 gpu later 2 1
LOCAL_RANK=1 FAKECUDA_DEVICES=1 gpu later 2 0
LOCAL_RANK=1 GPUBLAS_DEVICES=2 gpu later 2 2
GPUBLAS_DEVICES=0,2 gpu own 1 '0 2'
GPUBLAS_DEVICES=all gpu own 1 '0 1 2'
expect "MiB for us beside a context of the program's, and where there is none" '819 512 819 ' \
    "$(sed -n 's/.*budget \([0-9]*\) MiB$/\1/p' gpu.err | tr '\n' ' ')"
unset FAKECUDA_DEVICES
FAKECUDA_MODE=3 gpu later 2 0
GPUBLAS_DEVICES=9 preloaded openblas ./cuda later > gpu.out 2> gpu.err
expect 'a GPU that is not there: lines that say so' '1 1' \
    "$(wc -l < gpu.err) $(grep -c 'GPUBLAS_DEVICES=9: none of these GPUs can be used' gpu.err)"
doctor() { LD_LIBRARY_PATH=$fake "$@" "$library" | grep -cE '^GPU +none'; }
expect 'no GPU in default mode' 0 "$(FAKECUDA_MODE=0 doctor env)"
expect 'no GPU in exclusive mode' 1 "$(FAKECUDA_MODE=3 doctor env)"
expect 'no GPU in exclusive mode that is listed' 0 "$(FAKECUDA_MODE=3 doctor env GPUBLAS_DEVICES=0)"
expect 'no GPU in prohibited mode that is listed' 1 "$(FAKECUDA_MODE=2 doctor env GPUBLAS_DEVICES=0)"
verdict() {
    LD_LIBRARY_PATH=$fake:$debian/openblas-pthread GPUBLAS_HOST_BLAS=libblas.so.3 "$@" "$library" | head -1
}
expect 'the verdict on a GPU' 'works: GPU fakecuda sm_90, host BLAS OpenBLAS' "$(verdict env)"
expect 'two GPUs' 'works: 2 GPUs, the first fakecuda sm_90, host BLAS OpenBLAS' \
    "$(verdict env FAKECUDA_DEVICES=2 GPUBLAS_DEVICES=all)"
expect 'a GPU that is not to be had' \
    "does not work: the GPU cannot be used (none of the GPUs in GPUBLAS_DEVICES can be used); \
calls go to OpenBLAS unchanged" \
    "$(verdict env FAKECUDA_MODE=2)"
expect 'one without kernels' \
    'does not work: none of its kernels run on the GPU fakecuda sm_60; calls go to OpenBLAS' \
    "$(verdict env FAKECUDA_ARCH=60)"
expect 'one that is not to be used' \
    'works, but GPUBLAS_OFFLOAD=never: calls go to OpenBLAS unchanged, and not to the GPU fakecuda sm_90' \
    "$(verdict env GPUBLAS_OFFLOAD=never)"
build libhost.so gcc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -Wno-unused -DHOST -shared -fPIC \
    "$programs/cuda.c" || finish
beside=$PWD/libhost.so GPUBLAS_HOST_BLAS=$PWD/libhost.so \
    FAKECUDA_FAIL=cuLaunchKernel:1+:2,cuLaunchKernelEx:1+:2 GPUBLAS_VERBOSE=1 preloaded openblas ./cuda \
    triangle > triangle.out 2> triangle.err
expect 'a triangle that the host finishes: exit, checks right' '0 2' "$? $(grep -c ^right triangle.out)"
expect 'finished by the host' 1 "$(grep -c 'route=gpu+host' triangle.err)"
for rule in cuStreamSynchronize:2+:719 cuCtxPushCurrent:1+:719; do
    beside=$PWD/libhost.so GPUBLAS_HOST_BLAS=$PWD/libhost.so FAKECUDA_FAIL=$rule preloaded openblas ./cuda \
        triangle > triangle.out 2>> begun.err
done
expect 'C on a GPU that is lost: told to be begun, and to be as it was' '1 1' \
    "$(grep -c 'was partly overwritten' begun.err) $(grep -c 'any more; C was not computed' begun.err)"
FAKECUDA_FAIL=cuMemcpyHtoDAsync:3:719 FAKECUDA_LOG=$PWD/lost.log preloaded openblas timeout 60 ./cuda lost \
    > lost.out 2> lost.err
expect 'a GPU that is given up: exit, checks right, warnings' '0 5 1' \
    "$? $(grep -c ^right lost.out) $(wc -l < lost.err)"
expect 'and the pinned memory that is given back' "$(grep -c '^cuMemHostRegister ' lost.log)" \
    "$(grep -c '^cuMemHostUnregister ' lost.log)"
FAKECUDA_LOG=$PWD/hold.log FAKECUDA_MEMORY=128M uses hold 4
expect 'on the GPU' 2 "$(traced cuda.err)"
# cuMemFree waits for the program's kernels, and one of these may wait for us. So it is called once, by the
# program itself.
driver_calls() { grep -c "^$1 " hold.log; }
expect "memory beside a context of the program's: taken from the pool, given back, freed" '2 1 1' \
    "$(driver_calls cuMemAllocAsync) $(driver_calls cuMemFreeAsync) $(driver_calls cuMemFree)"
finish
