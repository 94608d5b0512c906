#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# No byte outside the operands is touched, and sizes beyond 32 bits are right (programs/bounds.c), on every
# route. Whatever the process or the GPU is short of, the answers are right and at most one line is printed
# (programs/limits.c).
. "$(dirname "$0")/harness.sh"
need "$debian/openblas-pthread/libblas.so.3" "$debian/blas/libblas.so.3"
flags="-std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror"
build bounds gcc $flags "$programs/bounds.c" -L"$debian/openblas-pthread" -lblas || finish
build limits gcc $flags "$programs/limits.c" -L"$debian/openblas-pthread" -lblas -lpthread || finish
build failures gcc $flags "$programs/failures.c" -L"$debian/openblas-pthread" -lblas -lm || finish

# bounded <name> <host> [variable=value ...]: all three parts
bounded() {
    local name=$1 host=$2 part wanted; shift 2
    for part in guard:6 huge:7 illegal:12; do
        preloaded "$host" env "$@" ./bounds "${part%:*}" > bounds.out 2> bounds.err
        wanted="0 ${part#*:} 0"
        expect "$name, ${part%:*}: exit, checks right, lines on stderr" "$wanted" \
            "$? $(grep -c ^right bounds.out) $(wc -l < bounds.err)"
        grep -v ^right bounds.out
        head -3 bounds.err
    done
}
bounded 'on the GPU' openblas
bounded 'on the GPU in panels, and on the host for want of memory' openblas GPUBLAS_MEMORY=192K
bounded 'on the GPU by FP16 slices' openblas GPUBLAS_KERNEL=fp16x3
offload=never bounded 'on the host' netlib
offload=never bounded 'on the host, embedded' netlib GPUBLAS_HOST_BLAS=embedded
GPUBLAS_VERBOSE=1 preloaded openblas ./bounds huge > /dev/null 2> huge.err
expect 'the huge ones were on the GPU' 28 "$(traced huge.err)"

# short <name> <wanted: most lines on stderr> <command ...>
short() {
    local name=$1 most=$2 status lines; shift 2
    "$@" > short.out 2> short.err; status=$? lines=$(wc -l < short.err)
    if [ $status = 0 ] && [ "$lines" -le "$most" ] && ! grep -q ^WRONG short.out; then
        ok "$name: right, $lines lines"
    elif [ $status = 2 ]; then
        ok "$name: cannot be set here"
    else
        fail "$name: exit $status, $lines lines"
        head -3 short.out short.err
    fi
}
for offload in always auto never; do
    for what in memlock nofile nproc stack seccomp; do
        short "$what, $offload" 1 preloaded openblas ./limits $what
    done
    for room in 512 4096 40960 400000; do
        short "$room KiB of addresses left, $offload" 1 preloaded netlib ./limits as $room
    done
done
offload=always
short 'a stack of 40 KiB' 1 preloaded netlib ./limits stack 40
short 'stack, embedded' 0 env GPUBLAS_HOST_BLAS=embedded GPUBLAS_OFFLOAD=never LD_PRELOAD="$library" \
    LD_LIBRARY_PATH="$debian/blas" ./limits stack 72
for memory in 1 1K 64K 300K 1M 5M; do
    GPUBLAS_MEMORY=$memory short "GPUBLAS_MEMORY=$memory" 1 preloaded openblas ./failures
done
for memory in 1K 64K 1M 16M; do
    FAKECUDA_MEMORY=$memory short "a GPU of $memory" 1 preloaded openblas ./failures
done
FAKECUDA_MEMORY=16M FAKECUDA_FAIL=cuMemHostAlloc:1+:2 short 'no pinned memory' 1 preloaded openblas ./failures
CUDA_VISIBLE_DEVICES='' short 'CUDA_VISIBLE_DEVICES=' 0 preloaded openblas ./failures
FAKECUDA_DEVICES=0 short 'a container without a GPU' 0 preloaded openblas ./failures
FAKECUDA_NO_IMAGE=1 short 'a driver older than the kernels' 1 preloaded openblas ./failures
FAKECUDA_ARCH=60 short 'a GPU older than the kernels' 1 preloaded openblas ./failures
FAKECUDA_START_MS=500 short 'a slow start' 0 preloaded openblas ./failures
short 'no libcuda' 0 env GPUBLAS_OFFLOAD=always LD_PRELOAD="$library" \
    LD_LIBRARY_PATH="$debian/openblas-pthread" ./failures

# Name spaces of our own, if this user may have them: no /proc, nothing writable.
inside() { unshare -m bash -c "$1"; }
if inside 'mount -t tmpfs none /proc' 2> /dev/null; then
    for offload in always auto never; do
        preload="GPUBLAS_OFFLOAD=$offload LD_LIBRARY_PATH=$debian/openblas-pthread:$fake LD_PRELOAD=$library"
        short "no /proc, $offload" 0 unshare -m bash \
            -c "mount -t tmpfs none /proc && exec env $preload ./failures"
        short "no /sys and no /dev, $offload" 0 unshare -m bash \
            -c "mount -t tmpfs none /sys && mount -t tmpfs none /dev && exec env $preload ./failures"
        read_only="cd $PWD && ! touch x 2> /dev/null && exec ./failures"
        short "a read-only file system, $offload" 0 unshare -m bash -c \
            "mount --rbind / /mnt && mount -o remount,ro,bind /mnt &&
             exec chroot /mnt env HOME=/nonexistent $preload bash -c '$read_only'"
    done
else
    ok 'no mount name space here: /proc and read-only file systems are left out'
fi
finish
