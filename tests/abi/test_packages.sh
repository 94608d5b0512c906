#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The packages that cpack makes: twice the same bytes; what is in the Debian package; its scripts, with
# alternatives in a folder of their own, so that this machine keeps its BLAS; programs that need libblas.so.3
# and liblapack.so.3 by name and get ours; the wheel, with gpublas.matmul.
. "$(dirname "$0")/harness.sh"
root=$(realpath "$here/../..") built=$(dirname "$library")
need "$debian/openblas-pthread/libblas.so.3" "$debian/lapack/liblapack.so.3" /usr/bin/dpkg-deb
arch=$(gcc -print-multiarch)
export SOURCE_DATE_EPOCH=1700000000
for time in first second; do
    if ! cpack --config "$built/CPackConfig.cmake" -B "$PWD/$time" > cpack.log 2>&1; then
        fail cpack
        tail -20 cpack.log
        finish
    fi
    sleep 1
done
deb=$(basename "$(echo first/*.deb)") archive=$(basename "$(echo first/*.tar.gz)")
for file in "$deb" "$archive"; do
    expect "$file, made twice" same "$(cmp "first/$file" "second/$file" && echo same)"
done
version=$(sed -n 's/^#define GPUBLAS_VERSION "\(.*\)"/\1/p' "$root/include/gpublas.h")
expect 'package, version' "gpublas $version" \
    "$(dpkg-deb --field "first/$deb" Package) $(dpkg-deb --field "first/$deb" Version)"
expect 'files that are not below /usr' '' \
    "$(dpkg-deb --fsys-tarfile "first/$deb" | tar -t | grep -v '/$' | grep -v '^./usr/')"

# ---- the scripts: nothing changes before it is chosen, and removing it restores what was
dpkg-deb -x "first/$deb" tree && dpkg-deb -e "first/$deb" control
expect 'md5sums' '' "$(cd tree && md5sum --quiet -c ../control/md5sums)"
mkdir -p bin "tree/usr/lib/$arch/openblas-pthread" tree/var/lib/dpkg/alternatives tree/etc/alternatives \
    tree/var/log
real=$(command -v update-alternatives)
printf '#!/bin/sh\nexec %s --root %s "$@"\n' "$real" "$PWD/tree" > bin/update-alternatives
chmod +x bin/update-alternatives
alternatives() { PATH=$PWD/bin:$PATH update-alternatives "$@"; }
chosen() { alternatives --query "$1-$arch" | sed -n 's/^Value: //p'; }
for name in libblas.so.3 liblapack.so.3; do
    cp "$debian/openblas-pthread/$name" "tree/usr/lib/$arch/openblas-pthread/"
    alternatives --quiet --install "/usr/lib/$arch/$name" "$name-$arch" \
        "/usr/lib/$arch/openblas-pthread/$name" 100
done
PATH=$PWD/bin:$PATH control/postinst configure > postinst.log 2>&1
expect 'postinst' 0 $?
for name in libblas.so.3 liblapack.so.3; do
    theirs=/usr/lib/$arch/openblas-pthread/$name
    ours=$(cd tree && find usr -path "*/gpublas/$name" | sed 's|^|/|')
    expect "$name, installed" "$theirs" "$(chosen "$name")"
    alternatives --quiet --set "$name-$arch" "$ours"
    expect "$name, chosen" "$ours" "$(chosen "$name")"
done
PATH=$PWD/bin:$PATH control/prerm upgrade > prerm.log 2>&1
expect 'an upgrade keeps the choice' "$ours" "$(chosen liblapack.so.3)"
PATH=$PWD/bin:$PATH control/prerm remove >> prerm.log 2>&1
for name in libblas.so.3 liblapack.so.3; do
    expect "$name, removed" "/usr/lib/$arch/openblas-pthread/$name" "$(chosen "$name")"
done

# ---- programs, as if it were chosen
shims=$(dirname "$(find "$PWD/tree" -path '*/gpublas/libblas.so.3')")
libraries=$(dirname "$shims")
export GPUBLAS_CALIBRATION=off GPUBLAS_VERBOSE=2 GPUBLAS_OFFLOAD=always
ours() { LD_LIBRARY_PATH=$shims:$fake:$libraries "$@"; }
cat > solve.c <<'C'
#include <stdio.h>
void dgesv_(int *n, int *nrhs, double *a, int *lda, int *ipiv, double *b, int *ldb, int *info);
void dgemm_(char *ta, char *tb, int *m, int *n, int *k, double *alpha, double *a, int *lda, double *b,
            int *ldb, double *beta, double *c, int *ldc);
void dsyev_(char *jobz, char *uplo, int *n, double *a, int *lda, double *w, double *work, int *lwork,
            int *info);
enum { N = 64 };
static double a[N * N], b[N * N], c[N * N], w[N], work[8 * N];
int main(void)
{
    int n = N, ipiv[N], info, lwork = 8 * N;
    double one = 1, zero = 0, sum = 0;
    for (int i = 0; i < N * N; i++) a[i] = i % (N + 1) ? 0.01 : 2, b[i] = i % 7;
    dgemm_("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n);
    dgesv_(&n, &n, a, &n, ipiv, c, &n, &info);
    for (int i = 0; i < N * N; i++) sum += (c[i] - b[i]) * (c[i] - b[i]);
    for (int i = 0; i < N * N; i++) a[i] = i % (N + 1) ? 0 : 1 + i / N;
    dsyev_("N", "U", &n, a, &n, w, work, &lwork, &info);
    printf("%s %.0f\n", sum < 1e-20 ? "solved" : "WRONG", w[N - 1]);
    return info;
}
C
build solve gcc -O1 solve.c "$debian/lapack/liblapack.so.3" "$debian/blas/libblas.so.3" || finish
expect 'a program of BLAS and LAPACK' 'solved 64' "$(ours ./solve 2> solve.err)"
expect 'DGEMM, DGESV on the GPU' '1 1' "$(traced solve.err ' dgemm_ ') $(traced solve.err ' dgesv_ ')"
at_least 1 "$(grep -c "^gpublas: the host's .* is in .*libopenblas.so.0" solve.err)" \
    'names of the host in OpenBLAS'
cat > program.py <<'PY'
import numpy
a = numpy.arange(90000.0).reshape(300, 300) % 7 + 10 * numpy.eye(300)
print(int((a @ a[::-1].copy()).sum()), abs(numpy.linalg.solve(a, a) - numpy.eye(300)).max() < 1e-9)
PY
expect "Debian's NumPy" "$("$python" program.py)" "$(ours "$python" program.py 2> numpy.err)"
at_least 2 "$(traced numpy.err)" 'calls of it on the GPU'

# ---- the archive: anywhere
mkdir anywhere && tar -xzf "first/$archive" -C anywhere --strip-components 1
expect 'gpublas of the archive' "gpublas $version" "$(anywhere/bin/gpublas --version 2> /dev/null)"
shims=$(dirname "$(find "$PWD/anywhere" -path '*/gpublas/libblas.so.3')")
expect 'its libblas.so.3 and liblapack.so.3' 'solved 64' \
    "$(LD_LIBRARY_PATH=$shims:$fake ./solve 2> solve.err)"
at_least 2 "$(traced solve.err)" 'calls on the GPU'

# ---- the wheel
pip=$root/build/venv/bin/pip
need "$pip"
mkdir wheel again
for folder in wheel again; do "$root/src/package/wheel" "$library" $folder > wheel.log; done
wheel=$(basename "$(echo wheel/*.whl)")
expect "$wheel, made twice" same "$(cmp "wheel/$wheel" "again/$wheel" && echo same)"
"$pip" install --quiet --no-index --no-deps --target "$PWD/site" "wheel/$wheel" > pip.log 2>&1
expect 'pip install' 0 $?
installed() { PYTHONPATH=$PWD/site LD_LIBRARY_PATH=$fake "$python" -B "$@"; }
GPUBLAS_VERBOSE=0 GPUBLAS_REPORT=$PWD/wheel.json installed "$programs/wheel.py" > wheel.out 2> wheel.err
expect 'matmul: exit, wrong' '0 0' "$? $(grep -c '^WRONG' wheel.out)"
grep '^WRONG' wheel.out
at_least 110 "$(grep -c '^right' wheel.out)" 'checks of it are right'
at_least 1500 "$("$python" -c 'import json
print(sum(row["gpu_calls"] for row in json.load(open("wheel.json"))["calls"]))')" 'products of it on the GPU'
expect 'matmul without NumPy' '[[10.0, 13.0], [28.0, 40.0]]' "$(installed -c '
import array, sys
sys.modules["numpy"] = None
from gpublas import matmul
numbers = memoryview(array.array("f", range(6))).cast("B")
print(matmul(numbers.cast("f", (2, 3)), numbers.cast("f", (3, 2))).tolist())' 2> wheel.err)"
expect 'python -m gpublas' "gpublas $version" "$(installed -m gpublas --version 2> wheel.err)"
expect 'python -m gpublas run' "$("$python" program.py)" \
    "$(installed -m gpublas run -q "$python" program.py 2> run.err)"
at_least 2 "$(traced run.err)" 'calls of the program on the GPU'
expect 'python -m gpublas run program.py' "$("$python" program.py)" \
    "$(installed -m gpublas run -q program.py 2> run.err)"
finish
