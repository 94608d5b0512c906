#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Real programs, unmodified: each gives byte for byte the stdout that it gives without us, and comes through
# our doors to the GPU.
. "$(dirname "$0")/harness.sh"
venv=${VENV:-$here/../../build/venv}/bin/python
need "$debian/openblas-pthread/libblas.so.3" /usr/bin/gfortran /usr/bin/octave-cli /usr/bin/R \
    /usr/include/eigen3/Eigen/Dense /usr/include/armadillo "$venv"

# same <name> <doors> <command ...>: stdout as without us, and at least one call through each of these doors
# that ran on the GPU. A % stands for s, d, c and z.
same() {
    local name=$1 doors=$2 door calls; shift 2
    [[ $doors != *%* ]] || doors="${doors//\%/s} ${doors//\%/d} ${doors//\%/c} ${doors//\%/z}"
    if ! on_host openblas "$@" > "$name.plain" 2> "$name.err"; then
        fail "$name fails without us"
        head -5 "$name.err"
        return
    fi
    GPUBLAS_VERBOSE=1 preloaded openblas "$@" > "$name.out" 2> "$name.trace" || {
        fail "$name: exit $?"
        tail -5 "$name.trace"
    }
    for door in $doors; do
        calls=$(traced "$name.trace" " $door ")
        if [ "$calls" -ge 1 ]; then ok "$name: $calls calls of $door went to the GPU"
        else fail "$name never came through $door to the GPU"; head -3 "$name.trace"; fi
    done
    if ! cmp "$name.plain" "$name.out"; then
        fail "$name: stdout differs"
        diff "$name.plain" "$name.out" | head -5
    elif grep -q ' False' "$name.out"; then
        fail "$name is wrong, with and without us"
        cat "$name.out"
    else
        ok "$name prints the same"
    fi
}

same numpy        'cblas_%gemm cblas_%syrk' "$python" "$programs/numpy_product.py"
same scipy        '%gemm_ %symm_ chemm_ zhemm_ %syr2k_ %trmm_ cher2k_ zher2k_' "$python" \
    "$programs/scipy_product.py"
same numpy_wheel  'scipy_cblas_%gemm64_ scipy_cblas_%syrk64_' "$venv" "$programs/numpy_product.py"
same scipy_wheel  'scipy_%gemm_ scipy_%symm_ scipy_chemm_ scipy_%syr2k_ scipy_%trmm_ scipy_cher2k_' "$venv" \
    "$programs/scipy_product.py"
doors='dgesv_ zgesv_ dgetrf_ zgetrf_ dpotrf_ zpotrf_'        # NumPy solves in double
same numpy_solve       "$doors" "$python" "$programs/numpy_solve.py"
same numpy_solve_wheel "$(sed 's/[^ ]*/scipy_&64_/g' <<< "$doors")" "$venv" "$programs/numpy_solve.py"
same scipy_solve       '%getrf_ %getrs_ %potrf_ %potrs_ %trtrs_' "$python" "$programs/scipy_solve.py"
same scipy_solve_wheel 'scipy_%getrf_ scipy_%getrs_ scipy_%potrf_ scipy_%potrs_' "$venv" \
    "$programs/scipy_solve.py"
same threads      cblas_sgemm          "$python" "$programs/threads.py"
same octave 'sgemm_ ssyrk_ cherk_' octave-cli --norc --no-history --eval \
    'a = single(mod(reshape(0:13499, 150, 90), 7) - 3); b = single(mod(reshape(0:11699, 90, 130), 5) - 2);
     c = a * b; printf("%d %d %d\n", c(4, 5), sum(sum(double(c))), isequal(c, (b'"'"' * a'"'"')'"'"'));
     d = a'"'"' * a; e = a + i * flipud(a); f = e'"'"' * e;
     printf("%d %d %d %d\n", d(4, 5), sum(sum(double(d))), f(4, 4), imag(f(4, 5)))'
same octave_solve 'dgetrf_ dgetrs_ dpotrf_ sgetrf_ zgetrf_' octave-cli --norc --no-history --eval \
    'n = 150; a = mod(reshape(0:n*n-1, n, n) * 7919, 19) - 9 + 60 * eye(n);
     b = mod(reshape(0:n*70-1, n, 70), 7);
     s = a * a'"'"'; x = a \ b; y = s \ b; c = single(a); z = a + 2i * eye(n);
     printf("%d %d %d\n", norm(a * x - b) < 1e-9, norm(s * y - b) < 1e-7, norm(a * inv(a) - eye(n)) < 1e-10);
     printf("%.3f %d\n", log(abs(det(a / 60))), norm(chol(s)'"'"' * chol(s) - s) < 1e-9);
     printf("%d %d\n", norm(c * (c \ b) - b) < 1e-2, norm(z * (z \ b) - b) < 1e-9)'
same R_solve 'dgesv_ dpotrf_ dgetrf_ dpotri_' R --vanilla --slave -e \
    'n <- 150; a <- matrix((0:(n * n - 1) * 7919) %% 19 - 9, n) + 60 * diag(n)
     b <- matrix(0:(n * 70 - 1) %% 7, n); s <- tcrossprod(a); x <- solve(a, b); r <- chol(s)
     cat(max(abs(a %*% x - b)) < 1e-9, max(abs(a %*% solve(a) - diag(n))) < 1e-10,
         max(abs(crossprod(r) - s)) < 1e-9,
         max(abs(s %*% chol2inv(r) - diag(n))) < 1e-7, format(determinant(a)$modulus, digits = 6), "\n")'
same R 'dgemm_ dsyrk_ dtrsm_' R --vanilla --slave -e \
    'options(matprod = "blas"); a <- matrix((0:13499) %% 7 - 3, 150); b <- matrix((0:11699) %% 5 - 2, 90)
     c <- a %*% b; d <- crossprod(a); cat(c[4, 5], sum(c), d[4, 5], sum(d), "\n")
     u <- diag(150); u[cbind(1:149, 2:150)] <- -1; x <- backsolve(u, a)
     cat(x[4, 5], sum(x), max(u %*% x - a), "\n")'

build fortran gfortran -O2 -fexternal-blas -fblas-matmul-limit=2 "$programs/fortran.f90" \
    -L"$debian/openblas-pthread" -lblas && same fortran sgemm_ ./fortran
build armadillo g++ -O2 -DNDEBUG "$programs/armadillo.cpp" -larmadillo \
    && same armadillo sgemm_ ./armadillo
build eigen g++ -O2 -DEIGEN_USE_BLAS -I/usr/include/eigen3 "$programs/eigen.cpp" \
    -L"$debian/openblas-pthread" -lblas && same eigen sgemm_ ./eigen

# Linked with us alone, with no BLAS named: the output is that of the same program linked with netlib's.
build linked gcc -std=c11 -D_GNU_SOURCE -O2 "$programs/linked.c" "$library" \
    -Wl,-rpath,"$(dirname "$library")" -lm
build linked_plain gcc -std=c11 -D_GNU_SOURCE -O2 "$programs/linked.c" -L"$debian/blas" -lblas -lm
on_host netlib ./linked_plain > linked.plain
for host in netlib openblas; do
    LD_LIBRARY_PATH=$(host_folder $host):$fake GPUBLAS_OFFLOAD=always GPUBLAS_VERBOSE=1 ./linked \
        > linked.out 2> linked.trace || fail "linked on $host: exit $?"
    if diff linked.plain linked.out; then
        ok "-lgpublas alone, $host behind it"
    else
        fail "-lgpublas alone, $host behind it"
    fi
    expect 'calls of sgemm_ and cblas_sgemm on the GPU' '1 1' \
        "$(traced linked.trace ' sgemm_ ') $(traced linked.trace ' cblas_sgemm ')"
done
expect 'BLAS among the needs of a program linked with us alone' \
    "$(basename "$(objdump -p "$library" | awk '/SONAME/ { print $2 }')")" \
    "$(objdump -p linked | awk '/NEEDED/ && /blas/ { print $2 }')"

# A preloaded program that never multiplies: no CUDA, nothing printed, less than a millisecond.
GPUBLAS_OFFLOAD=always LD_LIBRARY_PATH=$fake LD_PRELOAD=$library cat /proc/self/maps > maps 2> maps.err
if grep -q "$(basename "$library")" maps && ! grep -Ei 'libcuda|libnvidia|libblas|libopenblas|libblis' maps \
    && [ ! -s maps.err ]; then
    ok 'a preloaded cat maps neither CUDA nor a BLAS'
else
    fail 'a preloaded cat'
    cat maps.err
fi
milliseconds=$("$python" - "$library" <<'PY'
import os, sys, time
def start(environment):
    begin = time.perf_counter()
    os.waitpid(os.posix_spawn("/bin/true", ["true"], environment), 0)
    return time.perf_counter() - begin
plain, preloaded = [], []
for _ in range(300):
    plain.append(start({}))
    preloaded.append(start({"LD_PRELOAD": sys.argv[1]}))
print(f"{1000 * (min(preloaded) - min(plain)):.3f}")
PY
)
if awk -v t="$milliseconds" 'BEGIN { exit !(t < 1) }'; then
    ok "a preloaded true takes $milliseconds ms more"
else
    fail "a preloaded true takes $milliseconds ms more"
fi
finish
