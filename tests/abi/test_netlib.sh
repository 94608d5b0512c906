#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# netlib's own testers (Debian's libblas-test), all 24, in front of one host BLAS: the third argument is
# netlib, openblas or blis. Their exit code is always 0, and for an inaccurate routine they print SUSPECT, not
# FAIL. So what counts is that every line of success is there.
. "$(dirname "$0")/harness.sh"
host=${3:?netlib, openblas or blis}
testers=$debian/blas
need "$testers/xblat3s" "$(host_folder "$host")/libblas.so.3"

# The CBLAS testers read two variables that only netlib's libblas.so.3 has.
if [ "$host" != netlib ]; then
    echo 'int RowMajorStrg = 0, CBLAS_CallFromC = 0;' > netlib_variables.c
    build netlib_variables.so gcc -shared -fPIC netlib_variables.c && beside=$PWD/netlib_variables.so
fi

# run <program> <input> <name>: both its outputs go to <name>.result, stderr to <name>.trace
run() {
    mkdir -p "$3"
    if [ "$2" = - ]; then set -- "$1" /dev/null "$3"; fi
    (cd "$3" && preloaded "$host" "$testers/$1" < "$2" > stdout 2> ../"$3.trace") || fail "$3: exit $?"
    cat "$3"/stdout "$3"/*.out > "$3.result" 2>/dev/null
}

# judge <name> <routines> <computational lines a routine>
judge() {
    local exits computational
    exits=$(grep -c 'PASSED THE TESTS OF ERROR-EXITS' "$1.result")
    computational=$(grep -cE 'PASSED THE .*COMPUTATIONAL TESTS' "$1.result")
    if grep -E '\*\*\*\*|FAIL|SUSPECT' "$1.result"; then
        fail "$1: see above"
    elif [ "$exits" != "$2" ] || [ "$computational" != $(($2 * $3)) ] \
        || ! grep -q 'END OF TESTS' "$1.result"; then
        fail "$1: $exits error-exits and $computational computational of $2 routines passed"
        tail -5 "$1.result" "$1.trace"
    else
        ok "$1: $2 routines"
    fi
}

judge1() {   # Level 1: nothing but PASS
    local passed
    passed=$(grep -c -- '----- PASS -----' "$1.result")
    if [ "$passed" = "$2" ] && ! grep -qE 'FAIL|\*\*\*\*' "$1.result"; then
        ok "$1: $2 routines"
    else
        fail "$1: $passed of $2 passed"
        tail -5 "$1.result" "$1.trace"
    fi
}

for p in s d c z; do
    case $p in s) ones=13 c_ones=10 ;; d) ones=13 c_ones=10 ;; *) ones=10 c_ones=10 ;; esac
    run "xblat1$p" - "xblat1$p";       judge1 "xblat1$p" $ones
    run "x${p}cblat1" - "x${p}cblat1"; judge1 "x${p}cblat1" $c_ones
    for level in 2 3; do
        input=$testers/${p}blat$level.in c_input=$testers/${p}in$level
        run "xblat$level$p" "$input" "xblat$level$p"
        judge "xblat$level$p" "$(grep -c 'PUT F FOR NO TEST' "$input")" 1
        run "x${p}cblat$level" "$c_input" "x${p}cblat$level"
        judge "x${p}cblat$level" "$(grep -c 'PUT F FOR NO TEST' "$c_input")" 2
    done
done

# Wider: sizes across the tiles' edges, and alpha = -1 as well. The largest size of the original is 9.
widen='s/^6  *NUMBER OF VALUES OF N/9 NUMBER OF VALUES OF N/; s/^0 1 2 3 5 9/0 1 3 7 16 31 33 64 65/
       s/^3  *NUMBER OF VALUES OF ALPHA/4 NUMBER OF VALUES OF ALPHA/; s/^0.0 1.0 0.7 /0.0 1.0 0.7 -1.0 /'
sed "$widen" "$testers/sblat3.in" > wide.in
sed "$widen" "$testers/sin3" > wide_c.in
run xblat3s "$PWD/wide.in" wide;         judge wide 6 1
run xscblat3 "$PWD/wide_c.in" wide_c;    judge wide_c 6 2

# With a threshold of 1e-6 the tester prints its worst ratio. The limit is 16; a CPU's BLAS has at most 4.
sed 's/^16.0 /1.0E-6 /; /^SSYMM\|^STRMM\|^STRSM\|^SSYRK\|^SSYR2K/s/ T PUT/ F PUT/' wide.in > ratio.in
run xblat3s "$PWD/ratio.in" ratio
ratio=$(sed -n 's/.*MAXIMUM TEST RATIO *\([0-9.]*\).*/\1/p' ratio.result | sort -n | tail -1)
if [ -n "$ratio" ] && awk -v r="$ratio" 'BEGIN { exit !(r > 0 && r <= 4) }'; then
    ok "worst SGEMM ratio $ratio of 16"
else
    fail "worst SGEMM ratio '$ratio', above 4"
fi

# All of this means nothing if the calls did not reach the GPU path.
for door in sgemm_ cblas_sgemm; do
    case $door in
        sgemm_)      program=xblat3s input=sblat3.in ;;
        cblas_sgemm) program=xscblat3 input=sin3 ;;
    esac
    GPUBLAS_VERBOSE=1 run $program "$testers/$input" "trace_$door"
    at_least 6000 "$(traced "trace_$door.trace" " $door ")" "calls of $door went to the GPU"
done
finish
