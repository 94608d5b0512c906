#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# NumPy's and SciPy's linear-algebra suites as Debian ships them: the same counts as without us.
. "$(dirname "$0")/harness.sh"
need /usr/bin/pytest-3 "$debian/openblas-pthread/libblas.so.3"
"$python" -c 'import numpy, scipy, hypothesis, pooch' || skip 'no numpy, scipy, hypothesis or pooch (ci/setup installs them)'

# counts <name>: pytest's last line without its time
counts() { sed -n 's/ in [0-9.]*s.*//p' "$1" | tail -1 | sed 's/^=* *//'; }

suite() {   # <name> <modules ...>
    local name=$1; shift
    set -- "$python" -m pytest -q -p no:cacheprovider --pyargs "$@"
    on_host openblas "$@" > "$name.plain" 2>&1
    preloaded openblas "$@" > "$name.out" 2>&1
    expect "$name" "$(counts "$name.plain")" "$(counts "$name.out")"
    if ! counts "$name.plain" | grep -q ' passed'; then fail "$name: did not run"; tail -5 "$name.plain"; fi
    grep -E '^(FAILED|ERROR)' "$name.out" | head -20
}
suite numpy.linalg numpy.linalg
suite numpy.core numpy.core.tests.test_multiarray numpy.core.tests.test_einsum
suite scipy.linalg scipy.linalg

# Their calls reach us: pytest catches stderr, so the shortest suite shows it with nothing caught.
GPUBLAS_VERBOSE=1 preloaded openblas "$python" -m pytest -s -q -p no:cacheprovider --pyargs scipy.linalg.tests.test_blas scipy.linalg.tests.test_fblas > trace.out 2> trace.err
for door in sgemm_ dgemm_ cgemm_ zgemm_; do
    calls=$(grep -c "^gpublas: $door " trace.err)
    if [ "$calls" -ge 1 ]; then ok "$calls calls of $door in scipy's BLAS tests came to us"; else fail "no call of $door in scipy's BLAS tests came to us"; fi
done
finish
