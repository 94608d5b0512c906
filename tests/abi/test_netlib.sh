#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# netlib's own testers (Debian's libblas-test), all 24, in front of one host BLAS: the third argument is
# netlib, openblas or blis. Their exit code is always 0, and for an inaccurate routine they print SUSPECT, not
# FAIL. So what counts is that every line of success is there. Two types a day on each host, all four on the
# three of them. GPB_TEST_SEED: another day; GPB_TEST_LARGE=1: all types on each.
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

# Sizes across the tiles' edges, and alpha = -1 as well. The largest size of the originals is 9.
widen() {   # <type> <input>
    local sizes='0 3 16 33 65' minus=-1.0
    case $1 in s) sizes='0 1 3 7 16 31 33 64 65' ;; c | z) minus='(-1.0,0.0)' ;; esac
    sed "s/^[0-9]* *\(NUMBER OF VALUES OF N\)/$(wc -w <<< "$sizes") \1/; s/^[0-9 ]* \(VALUES OF N\)/$sizes \1/
         s/^3  *\(NUMBER OF VALUES OF ALPHA\)/4 \1/
         /NUMBER/! s/ *VALUES OF ALPHA/ $minus&/" "$2"
}

routines() { grep -c 'PUT F FOR NO TEST' "$1"; }

case $host in openblas) types=('d z' 's c') ;; *) types=('s c' 'd z') ;; esac
for p in $(of_today "${types[@]}"); do
    case $p in s) ones=13 c_ones=10 ;; d) ones=13 c_ones=10 ;; *) ones=10 c_ones=10 ;; esac
    run "xblat1$p" - "xblat1$p";       judge1 "xblat1$p" $ones
    run "x${p}cblat1" - "x${p}cblat1"; judge1 "x${p}cblat1" $c_ones
    for level in 2 3; do
        input=$testers/${p}blat$level.in c_input=$testers/${p}in$level
        export GPUBLAS_VERBOSE=$((level == 3))
        run "xblat$level$p" "$input" "xblat$level$p"
        judge "xblat$level$p" "$(routines "$input")" 1
        run "x${p}cblat$level" "$c_input" "x${p}cblat$level"
        judge "x${p}cblat$level" "$(routines "$c_input")" 2
        unset GPUBLAS_VERBOSE
    done

    # All of this means nothing if the calls did not reach the GPU path.
    at_least 6000 "$(traced "xblat3$p.trace" " ${p}gemm_ ")" "calls of ${p}gemm_ went to the GPU"
    at_least 6000 "$(traced "x${p}cblat3.trace" " cblas_${p}gemm ")" "calls of cblas_${p}gemm went to the GPU"

    widen $p "$testers/${p}blat3.in" > "wide_$p.in"
    widen $p "$testers/${p}in3" > "wide_c_$p.in"
    export GPUBLAS_VERBOSE=1
    run "xblat3$p" "$PWD/wide_$p.in" "wide_$p";       judge "wide_$p" "$(routines "wide_$p.in")" 1
    run "x${p}cblat3" "$PWD/wide_c_$p.in" "wide_c_$p"; judge "wide_c_$p" "$(routines "wide_c_$p.in")" 2
    unset GPUBLAS_VERBOSE
    case $p in s | d) hermitian='' ;; *) hermitian="${p}herk ${p}her2k" ;; esac
    for stem in ${p}trsm ${p}trmm ${p}syrk ${p}syr2k $hermitian; do
        at_least 100 "$(traced "wide_$p.trace" " ${stem}_ ")" "products of ${stem}_ were on the GPU"
        at_least 100 "$(traced "wide_c_$p.trace" " cblas_$stem ")" "products of cblas_$stem were, too"
    done

    # With a threshold of 1e-6 the tester prints its worst ratio. The limit is 16; a CPU's BLAS has at most 4.
    sed "s/^16.0 /1.0E-6 /; /^${p^}GEMM/! s/ T PUT/ F PUT/" "wide_$p.in" > "ratio_$p.in"
    run "xblat3$p" "$PWD/ratio_$p.in" "ratio_$p"
    ratio=$(sed -n 's/.*MAXIMUM TEST RATIO *\([0-9.]*\).*/\1/p' "ratio_$p.result" | sort -n | tail -1)
    if [ -n "$ratio" ] && awk -v r="$ratio" 'BEGIN { exit !(r > 0 && r <= 4) }'; then
        ok "worst ${p^}GEMM ratio $ratio of 16"
    else
        fail "worst ${p^}GEMM ratio '$ratio', above 4"
    fi
done
finish
