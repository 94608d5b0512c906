#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every driver call fails at every occurrence, in every form of call and place of operands
# (programs/inject.c). There are 1.9 million cases. A day runs a 256th of them, by the day's number, so any
# 256 days in a row cover all: two minutes of a core. GPB_TEST_SEED: another slice; GPB_TEST_SLICES: the
# number of slices, for CI that runs more than once a day and counts its runs; GPB_TEST_LARGE=1: all, two
# hours and a half.
. "$(dirname "$0")/harness.sh"
need "$debian/openblas-pthread/liblapack.so.3"
build inject gcc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -I"$here/../.." "$programs/inject.c" \
    -L"$debian/openblas-pthread" -llapack -lblas -ldl || finish
seed=${GPB_TEST_SEED:-$(($(date +%s) / 86400))} slices=${GPB_TEST_SLICES:-256}
[ -n "${GPB_TEST_LARGE:-}" ] && slices=1
if preloaded openblas ./inject "$seed" "$slices" "$scratch" > inject.out 2>&1; then
    ok "$(cat inject.out)"
else
    fail "exit $?, seed $seed of $slices"
    head -40 inject.out
fi

# A wrong case is reported: C where the software GPU computes something else.
if FAKECUDA_WRONG=1 preloaded openblas ./inject 0 cuMemAlloc:900:2 > wrong.out 2>&1; then
    fail 'a wrong C passes'
    cat wrong.out
else
    expect 'a wrong C is noticed' 1 "$(grep -c '^WRONG 0 ' wrong.out)"
fi
finish
