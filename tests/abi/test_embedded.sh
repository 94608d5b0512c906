#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The embedded BLAS serves everything (GPUBLAS_HOST_BLAS=embedded, no GPU): netlib's 24 testers, Level 3 again
# with wider sizes, its error messages, and test_embedded.c. The testers' own libblas.so.3 stays in the
# process, but nothing calls it.
. "$(dirname "$0")/harness.sh"
testers=$debian/blas
need "$testers/xblat3s"

# The CBLAS testers read two variables that only netlib's libblas.so.3 has.
echo 'int RowMajorStrg = 0, CBLAS_CallFromC = 0;' > netlib_variables.c
build netlib_variables.so gcc -shared -fPIC netlib_variables.c || finish

embedded() {
    env GPUBLAS_HOST_BLAS=embedded GPUBLAS_OFFLOAD=never LD_PRELOAD="$library:$PWD/../netlib_variables.so" \
        "$@"
}

# check <program> <input> <lines of success>: exactly that many lines, at Levels 2 and 3 the end is reached,
# and no word of failure. Exit codes say nothing.
check() {
    local passed name
    name=$1$([ "$(dirname "$2")" != "$PWD" ] || echo ' wide')
    mkdir -p run && rm -f run/* && cd run || exit 1
    embedded "$testers/$1" < "$2" > stdout 2> stderr || fail "$name: exit $?"
    cd ..
    cat run/stdout run/*.out > result 2>/dev/null
    passed=$(grep -cE -e '----- PASS -----|PASSED THE .*(ERROR-EXITS|COMPUTATIONAL TESTS)' result)
    if grep -E '\*\*\*\*|FAIL|SUSPECT' result; then
        fail "$name: see above"
    elif [ "$passed" != "$3" ] || { [ "$2" != /dev/null ] && ! grep -q 'END OF TESTS' result; }; then
        fail "$name: $passed of $3 lines of success"
        tail -5 result run/stderr
    else
        ok "$name: $passed"
    fi
}

wide='s/^\(0 1 2 3 5 9\|1 2 3 5 7 9\) /0 7 16 33 64 65 /'
for p in s d c z; do
    case $p in s | d) check "xblat1$p" /dev/null 13 ;; *) check "xblat1$p" /dev/null 10 ;; esac
    check "x${p}cblat1" /dev/null 10
    for level in 2 3; do
        routines=$(grep -c 'PUT F FOR NO TEST' "$testers/${p}blat$level.in")
        check "xblat$level$p" "$testers/${p}blat$level.in" $((2 * routines))        # error exits, results
        # Error exits, results column- and row-major.
        check "x${p}cblat$level" "$testers/${p}in$level" $((3 * routines))
    done
    sed "$wide" "$testers/${p}blat3.in" > wide.in
    check "xblat3$p" "$PWD/wide.in" $((2 * routines))
    sed "$wide" "$testers/${p}in3" > wide_c.in
    check "x${p}cblat3" "$PWD/wide_c.in" $((3 * routines))
done

# Values: 64-bit names, batches, one-triangle products, gemm3m, scaling, what must not be read. Linked with
# us alone.
build values gcc -std=c11 -O2 -Wall -Wextra "$here/test_embedded.c" "$library" \
    -Wl,-rpath,"$(dirname "$library")" -lm || finish
export GPUBLAS_HOST_BLAS=embedded GPUBLAS_OFFLOAD=never
if ./values > values.out; then
    ok "$(tail -1 values.out)"
else
    fail values
    cat values.out
fi

# Its own handlers write to stderr, nothing to stdout, and return.
./values errors > errors.out 2> errors.err
expect 'exit after illegal calls' 0 $?
expect 'bytes to stdout' 0 "$(wc -c < errors.out)"
expect 'messages' ' ** On entry to SGEMM parameter number  3 had an illegal value
 ** On entry to ZTRSM parameter number 11 had an illegal value
 ** On entry to DGEMMTR parameter number  4 had an illegal value
Parameter 2 to routine cblas_sgemm was incorrect
Illegal Trans setting, 7
 ** On entry to ZGEMM3M parameter number 13 had an illegal value
Parameter 3 to routine cblas_zgemm3m was incorrect
Illegal Trans setting, 7' "$(cat errors.err)"
finish
