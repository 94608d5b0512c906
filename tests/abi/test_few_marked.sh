#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Blocks of C that FP16 slices do not do justice to: where they are few the stand-in computes them, and no operand is cut a second time.
# programs/few_marked.c.
. "$(dirname "$0")/harness.sh"
need "$debian/openblas-pthread/libblas.so.3"
build few_marked gcc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror "$programs/few_marked.c" -L"$debian/openblas-pthread" -lblas \
      "$fake/libcuda.so.1" -lm || finish
export GPUBLAS_CALIBRATION=off GPUBLAS_KERNEL=fp16x3

# computed_by <rows of blocks marked> <launches of fp16x3, bf16x6, the stand-in and splitters>
computed_by() {
    rm -f kernels
    FAKECUDA_SUMMARY=$PWD/kernels offload=always preloaded openblas timeout 120 ./few_marked "$1" > few.out 2> few.err
    expect "$1 rows of blocks: right, fp16x3, bf16x6, ffma_blocked, splitters" "right $2" "$(cat few.out) $(
        for name in gpb_sgemm_fp16x3 gpb_sgemm_bf16x6 gpb_sgemm_ffma_blocked 'gpb_ssplit[_0-9]*'; do
            sed -nE "s/^kernel $name launched=([0-9]+) .*/\\1/p" kernels | awk '{ n += $1 } END { printf "%d ", n }'
        done | sed 's/ $//')"
}
computed_by 0 '1 0 0 1'
computed_by 1 '1 0 1 1'
computed_by 4 '1 0 1 1'
computed_by 5 '1 1 1 2'
finish
