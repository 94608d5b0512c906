#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Which BLAS stands behind us: the order of discovery, no second one in a process that has one, never ourselves, never one with 64-bit integers.
. "$(dirname "$0")/harness.sh"
need "$debian/blas/libblas.so.3" "$debian/openblas-pthread/libblas.so.3" "$debian/blis-pthread/libblas.so.3" \
     "$debian/openblas64-pthread/libblas64.so.3" "$debian/blas64/xblat3s"
build linked gcc -std=c11 -D_GNU_SOURCE -O2 "$programs/linked.c" "$library" -Wl,-rpath,"$(dirname "$library")" -lm || finish
build netlib gcc -std=c11 -D_GNU_SOURCE -O2 "$programs/linked.c" -L"$debian/blas" -lblas -lm || finish
build semantics gcc -std=c11 -D_GNU_SOURCE -O2 "$programs/semantics.c" -L"$debian/openblas-pthread" -lblas -lm -lpthread || finish
on_host netlib ./netlib > plain.out
export GPUBLAS_OFFLOAD=never

# hosts <stderr>: the BLAS libraries of the process that are not us, as netlib, openblas, blis (OpenBLAS's libblas.so.3 needs its
# libopenblas.so.0: one BLAS in two files)
hosts() {
    local path; sed -n 's/^blas: //p' "$1" | while read -r path; do
        path=$(realpath "$path")
        case $path in *openblas*) echo openblas ;; *blis*) echo blis ;; *) cmp -s "$path" "$library" || echo netlib ;; esac
    done | sort -u | tr '\n' ' ' | sed 's/ $//'
}
right() { if [ "$2" = 0 ] && cmp plain.out "$1.out"; then ok "$1: all calls right"; else fail "$1: exit $2"; head -5 "$1.err"; fi; }

# 1 the option; a path that is none warns and the search goes on
for host in netlib openblas blis; do
    GPUBLAS_HOST_BLAS=$(host_folder $host)/libblas.so.3 ./linked tell > option.out 2> option.err; right option $?
    expect "GPUBLAS_HOST_BLAS=$host" $host "$(hosts option.err)"
done
GPUBLAS_HOST_BLAS=/nowhere/libblas.so.3 ./linked tell > missing.out 2> missing.err; right missing $?
expect 'lines on a path that is none' 1 "$(grep -c '^gpublas: .*/nowhere/libblas.so.3' missing.err)"

# 2 the BLAS that the process has, and no second one: linked, and loaded RTLD_LOCAL by Python
for host in netlib openblas blis; do
    offload=never preloaded $host ./netlib tell > process.out 2> process.err; right process $?
    expect "the process's own $host" $host "$(hosts process.err)"
    offload=never preloaded $host "$python" -c '
import numpy as np, sys
a = np.ones((64, 64), np.float32)
assert ((a @ a) == 64).all()
for line in {l.split()[-1] for l in open("/proc/self/maps") if "blas.so" in l or "blis.so" in l}: print("blas:", line, file=sys.stderr)' 2> local.err
    expect "NumPy's own $host: exit" 0 $?
    expect "NumPy's own $host" $host "$(hosts local.err)"
done

# 3 found by name, where the process has none: OpenBLAS before BLIS before the reference, whatever libblas.so.3 is; all names from one
for host in openblas blis netlib; do
    LD_LIBRARY_PATH=$(host_folder $host) GPUBLAS_VERBOSE=2 ./linked > by_name.out 2> by_name.err; right by_name $?
    sed -n 's/^gpublas: .* of the host is in /blas: /p' by_name.err > by_name.used
    expect "libblas.so.3 is $host: used" openblas "$(hosts by_name.used)"
done

# 4 what is found is ourselves, under every name it may have: no recursion
mkdir ourselves copies
for name in libblas.so.3 libblas.so libcblas.so.3 libopenblas.so.0 libopenblas.so libblis.so.4 libblis.so libmkl_rt.so.2 libmkl_rt.so.1 libmkl_rt.so libflexiblas.so.3 \
            libatlas.so.3 libblas.so.4 libopenblasp.so.0 libopenblaso.so.0 libblis-mt.so.4 libgslcblas.so.0; do
    ln -s "$library" ourselves/$name; cp "$library" copies/$name
done
for offload in never always; do
    for folder in ourselves copies; do
        LD_LIBRARY_PATH=$PWD/$folder:$fake GPUBLAS_OFFLOAD=$offload timeout 100 ./semantics > $folder.out 2> $folder.err
        expect "libblas.so.3 and all others are $folder, $offload: exit" 0 $?
        expect "libblas.so.3 and all others are $folder, $offload: checks right" 44 "$(grep -c '^right' $folder.out)"
    done
    LD_LIBRARY_PATH=$debian/openblas-pthread:$fake LD_PRELOAD=$library GPUBLAS_HOST_BLAS=$library GPUBLAS_OFFLOAD=$offload timeout 100 ./semantics > us.out 2> us.err
    expect "GPUBLAS_HOST_BLAS is ourselves, $offload: exit" 0 $?
    LD_LIBRARY_PATH=$debian/openblas-pthread:$fake LD_PRELOAD=$library GPUBLAS_HOST_BLAS=$PWD/copies/libblas.so.3 GPUBLAS_OFFLOAD=$offload timeout 100 ./semantics > us.out 2> us.err
    expect "GPUBLAS_HOST_BLAS is a copy of us, $offload: exit" 0 $?
done

# 5 a BLAS with 64-bit integers under the plain names: stand aside, say so once
echo 'int RowMajorStrg = 0, CBLAS_CallFromC = 0;' > netlib_variables.c
build netlib_variables.so gcc -shared -fPIC netlib_variables.c
aside() {   # <program> <input> <lines of success>
    (mkdir -p "$1" && cd "$1" && LD_LIBRARY_PATH=$debian/openblas64-pthread:$fake LD_PRELOAD=$library:$scratch/netlib_variables.so GPUBLAS_OFFLOAD=always GPUBLAS_VERBOSE=${4:-0} \
        "$debian/blas64/$1" < "$debian/blas64/$2" > stdout 2> ../"$1.err"; cat stdout ./*.out > ../"$1.result" 2> /dev/null)
    expect "64-bit integers: lines of success of $1" "$3" "$(grep -c 'PASSED THE' "$1.result")"
    if grep -E '\*\*\*\*|FAIL|SUSPECT' "$1.result"; then fail "64-bit integers: $1"; fi
    if [ "${4:-0}" = 0 ]; then expect "64-bit integers: warnings of $1" 1 "$(grep -c '^gpublas: ' "$1.err")"
    else expect "64-bit integers: calls of $1 on the GPU" 0 "$(traced "$1.err")"; fi
}
aside xblat3s sblat3.in 12
aside xscblat3 sin3 18
aside xblat3d dblat3.in 12
aside xblat3s sblat3.in 12 1
finish
