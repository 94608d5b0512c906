#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# GPUBLAS_VERIFY=1 on a GPU that computes wrongly now and then (FAKECUDA_WRONG): every answer is right, there
# is one warning, and the operands are kept if asked. On a GPU that is right there is no alarm.
. "$(dirname "$0")/harness.sh"
need "$debian/openblas-pthread/libblas.so.3" "$(dirname "$library")/fuzz"
build failures gcc -std=c11 -D_GNU_SOURCE -O2 "$programs/failures.c" -L"$debian/openblas-pthread" -lblas -lm \
    || finish
export LD_LIBRARY_PATH=$debian/openblas-pthread:$fake
fuzz() { GPUBLAS_OFFLOAD=always "$(dirname "$library")/fuzz" "$@" > fuzz.out 2> fuzz.err; }
mended() { sed -n 's/.*mended by GPUBLAS_VERIFY \([0-9]*\).*/\1/p' fuzz.out; }

# Small calls, with each element checked.
FAKECUDA_WRONG=50 fuzz 1 20000
expect 'a wrong GPU: the fuzzer sees it' 1 $?
FAKECUDA_WRONG=50 GPUBLAS_VERIFY=1 fuzz 1 100000
expect 'a wrong GPU, verified: exit, warnings' '0 1' "$? $(wc -l < fuzz.err)"
grep WRONG fuzz.out
at_least 1000 "$(mended)" 'of its calls were mended'
GPUBLAS_VERIFY=1 fuzz 1 100000
expect 'a right GPU, verified: exit, mended, lines' '0 0 0' "$? $(mended) $(wc -l < fuzz.err)"

# Larger ones, by projections of 32 columns; panels; a triangle; less accurate kernels, which raise no alarm.
seen=0      # it looks at an eleventh of C
for seed in 1 2 3 4 5 6; do
    FAKECUDA_SEED=$seed FAKECUDA_WRONG=1 preloaded openblas ./failures > large.out || seen=$((seen + 1))
done
at_least 1 $seen 'of 6 runs see a wrong GPU, large'
for memory in 0 2M; do
    for seed in 1 2 3 4; do
        FAKECUDA_SEED=$seed GPUBLAS_MEMORY=$memory FAKECUDA_WRONG=3 GPUBLAS_VERIFY=1 preloaded openblas \
            ./failures > large.out 2> large.err
        expect "a wrong GPU, large, GPUBLAS_MEMORY=$memory, seed $seed, verified: exit, warnings" '0 1' \
            "$? $(wc -l < large.err)"
    done
    for math in fp32 ieee tf32; do
        GPUBLAS_MATH=$math GPUBLAS_MEMORY=$memory GPUBLAS_VERIFY=1 preloaded openblas ./failures > large.out \
            2> large.err
        expect "a right GPU, $math, GPUBLAS_MEMORY=$memory, verified: warnings" 0 "$(wc -l < large.err)"
    done
done
cat > triangle.py <<'PY'
import ctypes, sys
import numpy as np
n, k = 700, 90
draw = np.random.default_rng(1)
def integers(type, *shape):
    parts = [draw.integers(-4, 5, shape) for part in range(2)]
    return (parts[0] + (1j * parts[1] if type in "FD" else 0)).astype(type)
integer = lambda x: ctypes.byref(ctypes.c_int(x))
address = lambda x: x.ctypes.data_as(ctypes.c_void_p)
wrong = 0
for letter, type in zip("sdcz", "fdFD"):
    a, b = integers(type, n, k), integers(type, k, n)
    one, betas = np.ones(1, type), np.array([0, 1], type)
    for uplo in b"UL":
        for beta in range(2):
            c = integers(type, n, n)
            keep = np.tril(np.ones((n, n)), -1) if uplo == ord("U") else np.triu(np.ones((n, n)), 1)
            right = np.where(keep, c, a @ b + betas[beta] * c)
            fa, fb, fc = np.asfortranarray(a), np.asfortranarray(b), np.asfortranarray(c)
            getattr(ctypes.CDLL(sys.argv[1]), letter + "gemmtr_")(
                bytes([uplo]), b"N", b"N", integer(n), integer(k), address(one), address(fa), integer(n),
                address(fb), integer(k), address(betas[beta:]), address(fc), integer(n))
            wrong += int((fc != right).sum())
print(wrong)
PY
FAKECUDA_WRONG=1 GPUBLAS_OFFLOAD=always "$python" triangle.py "$library" > triangle.out
at_least 1 "$(cat triangle.out)" 'wrong elements of triangles on a wrong GPU'
FAKECUDA_WRONG=1 GPUBLAS_VERIFY=1 GPUBLAS_OFFLOAD=always "$python" triangle.py "$library" > triangle.out \
    2> triangle.err
expect 'a wrong GPU, triangles, verified: wrong elements, warnings' '0 1' \
    "$(cat triangle.out) $(wc -l < triangle.err)"

# The operands of a wrong call: a few files, readable by this user alone, that say what they hold. They are
# written nowhere else, and not through a link.
mkdir dumps
for seed in 1 2 3 4 5 6 7 8; do      # until there is one of each type
    FAKECUDA_WRONG=20 GPUBLAS_VERIFY=1 GPUBLAS_VERIFY_DUMP=$PWD/dumps fuzz $seed 5000
    expect 'dumps: exit, files, rights' "0 $((4 * seed)) 600" \
        "$? $(find dumps -type f | wc -l) $(stat -c %a dumps/* | sort -u)"
done
"$python" - dumps/* > dump.out <<'PY'
import sys
import numpy as np
for path in sys.argv[1:]:
    head, data = open(path, "rb").read().split(b"\n", 1)
    x = dict(word.split("=") for word in head.decode().split()[1:])
    m, n, k = (int(x[name]) for name in "mnk")
    alpha, beta = (complex(*(float.fromhex(x[name + part]) for part in ("", "_imaginary")))
                   for name in ("alpha", "beta"))
    numbers = np.frombuffer(data, dict(zip("sdcz", "fdFD"))[x["type"]]).astype(complex)
    at = 0
    def take(rows, columns):
        global at
        at += rows * columns
        return numbers[at - rows * columns:at].reshape(columns, rows).T
    def op(trans, rows, columns):
        y = take(rows, columns) if trans == "N" else take(columns, rows).T
        return y.conj() if trans == "C" else y
    product = 0
    if k and alpha:
        a = op(x["transa"], m, k)
        product = alpha * (a @ op(x["transb"], k, n))
    if beta: product = product + beta * take(m, n)
    c, (i, j) = take(m, n), map(int, x["wrong"].split(","))
    print(x["type"], at == len(numbers) and not abs(c - product)[i, j] <= 1e-3)
PY
expect 'each holds A, B, C before and C, which is wrong where it says' 'c True d True s True z True' \
    "$(sort -u dump.out | tr '\n' ' ' | sed 's/ $//')"
FAKECUDA_WRONG=20 GPUBLAS_VERIFY=1 GPUBLAS_VERIFY_DUMP=$PWD/nowhere fuzz 1 5000
expect 'no such folder: exit, warnings' '0 2' "$? $(wc -l < fuzz.err)"
finish
