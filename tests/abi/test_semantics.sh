#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What no public suite tests: tests/programs/semantics.c plain, then preloaded, in front of three hosts;
# extensions.c linked with us alone.
. "$(dirname "$0")/harness.sh"
need "$debian/blas/libblas.so.3" "$debian/openblas-pthread/libblas.so.3" "$debian/blis-pthread/libblas.so.3"
flags="-std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror"

build semantics gcc $flags "$programs/semantics.c" -L"$debian/openblas-pthread" -lblas -lm -lpthread || finish

# judge <name> <wanted lines> <status>: every check right, and nothing on stderr
judge() {
    local right
    right=$(grep -c '^right ' "$1.out")
    if [ "$3" = 0 ] && [ "$right" = "$2" ] && [ ! -s "$1.err" ]; then
        ok "$1: $2 checks right, stderr empty"
    else
        fail "$1: exit $3, $right of $2 checks right"
        grep -v '^right ' "$1.out"
        head -5 "$1.err"
    fi
}

# The host handles illegal calls, so its numbers and texts stay as they are without us.
for host in netlib openblas blis; do
    on_host $host ./semantics > plain.out 2> plain.err
    judge plain 44 $?
    preloaded $host ./semantics strict > "$host.out" 2> "$host.err"
    judge $host 53 $?
    offload=never preloaded $host ./semantics > "$host.never.out" 2> "$host.never.err"
    judge $host.never 44 $?
    expect "$host: numbers of illegal cblas_sgemm calls" "$(grep ^numbers plain.out)" \
        "$(grep ^numbers "$host.out")"
done

# Everything above really went through the GPU path, and the trace goes to stderr alone.
GPUBLAS_VERBOSE=1 preloaded netlib ./semantics strict > traced.out 2> traced.err
if cmp netlib.out traced.out; then
    ok 'stdout is the same with the trace on'
else
    fail 'the trace changes stdout'
fi
for door in sgemm_ cblas_sgemm; do
    at_least 200 "$(traced traced.err " $door ")" "calls of $door went to the GPU"
done

build extensions gcc $flags "$programs/extensions.c" "$library" -Wl,-rpath,"$(dirname "$library")" -lm \
    || finish
for host in netlib openblas blis; do
    LD_LIBRARY_PATH=$(host_folder $host):$fake GPUBLAS_OFFLOAD=always \
        ./extensions > "extensions.$host.out" 2> "extensions.$host.err"
    judge "extensions.$host" 32 $?
    LD_LIBRARY_PATH=$(host_folder $host) GPUBLAS_OFFLOAD=never \
        ./extensions > "extensions.$host.never.out" 2> "extensions.$host.never.err"
    judge "extensions.$host.never" 32 $?
done
LD_LIBRARY_PATH=$debian/blas:$fake GPUBLAS_OFFLOAD=always GPUBLAS_VERBOSE=1 ./extensions > traced.out \
    2> extensions.err
for name in sgemm_64_ scipy_sgemm_64_ scipy_sgemm_ cblas_sgemm_64 cblas_sgemm64_ scipy_cblas_sgemm64_ \
    scipy_cblas_sgemm sgemmtr_ sgemmt_ cblas_sgemmtr cblas_sgemmt sgemm_batch_ cblas_sgemm_batch \
    sgemm_batch_strided_ cblas_sgemm_batch_strided cgemm3m_ cgemm3m_64_ cblas_cgemm3m cblas_cgemm3m_64 \
    cblas_cgemm3m64_ zgemm3m_ zgemm3m_64_ cblas_zgemm3m cblas_zgemm3m_64 cblas_zgemm3m64_; do
    at_least 1 "$(traced extensions.err "gpublas: $name ")" "calls of $name went to the GPU"
done
# A host's own GEMM3M serves both widths of integers. netlib has none: its GEMM does the work.
found() {
    GPUBLAS_HOST_BLAS=$(host_folder "$1")/libblas.so.3 GPUBLAS_OFFLOAD=never GPUBLAS_VERBOSE=2 \
        ./extensions 2>&1 > /dev/null |
        sed -n "s/.*the host's $2 is in //p" | sed "s|.*/\(.*/\)|\1|" | uniq
}
for name in cgemm3m_ zgemm3m_64_; do
    expect "OpenBLAS: $name is in" openblas-pthread/libblas.so.3 "$(found openblas $name)"
    expect "netlib: $name is" embedded "$(found netlib $name)"
done
expect 'netlib: cgemm_ is in' blas/libblas.so.3 "$(found netlib cgemm_)"
# A group of equal members is one call, not a loop of them.
for size in 3 5 6; do
    if grep -q "batch=$size " extensions.err; then
        ok "a batch of $size is one call"
    else
        fail "no call with batch=$size"
    fi
done
finish
