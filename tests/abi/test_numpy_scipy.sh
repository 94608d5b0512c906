#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# NumPy's and SciPy's suites as Debian ships them, of linear algebra and of NumPy's core by turns
# (GPB_TEST_SEED: another day; GPB_TEST_LARGE=1: both): the same counts as without us. Those of
# Debian 12 are written down here, as measured without us. If the suites print other counts with us, they also
# run without us, and those counts are the right ones, because other versions and other machines skip other
# tests.
. "$(dirname "$0")/harness.sh"
need /usr/bin/pytest-3 "$debian/openblas-pthread/libblas.so.3"
"$python" -c 'import numpy, scipy, hypothesis, pooch' \
    || skip 'no numpy, scipy, hypothesis or pooch (ci/setup installs them)'

# counts <name>: pytest's last line without its time
counts() { sed -n 's/ in [0-9.]*s.*//p' "$1" | tail -1 | sed 's/^=* *//'; }

suite() {   # <name> <counts without us> <modules ...>
    local name=$1 wanted=$2; shift 2
    set -- "$python" -m pytest -q -p no:cacheprovider --pyargs "$@"
    preloaded openblas "$@" > "$name.out" 2>&1
    if [ "$(counts "$name.out")" != "$wanted" ]; then
        on_host openblas "$@" > "$name.plain" 2>&1
        wanted=$(counts "$name.plain")
    fi
    expect "$name" "$wanted" "$(counts "$name.out")"
    if [[ $wanted != *' passed'* ]]; then
        fail "$name: did not run"
        tail -5 "$name.plain"
    fi
    grep -E '^(FAILED|ERROR)' "$name.out" | head -20
}
for what in $(of_today core linalg); do
    case $what in
        core)
            suite numpy.core '1413 passed, 17 skipped, 2 xfailed' numpy.core.tests.test_multiarray \
                numpy.core.tests.test_einsum ;;
        linalg)
            suite numpy.linalg '414 passed, 1 skipped, 2 xfailed' numpy.linalg
            suite scipy.linalg '3574 passed, 7 skipped, 3 xfailed, 2 xpassed' scipy.linalg ;;
    esac
done

# Their calls reach us. pytest catches stderr, so the shortest suite shows it with nothing caught.
GPUBLAS_VERBOSE=1 preloaded openblas "$python" -m pytest -s -q -p no:cacheprovider --pyargs \
    scipy.linalg.tests.test_blas scipy.linalg.tests.test_fblas > trace.out 2> trace.err
for door in sgemm_ dgemm_ cgemm_ zgemm_; do
    at_least 1 "$(traced trace.err " $door ")" "calls of $door in scipy's BLAS tests on the GPU"
done
finish
