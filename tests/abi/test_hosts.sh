#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Which BLAS is behind us: the order of the search, no second one in a process that has one, never ourselves,
# never one with 64-bit integers.
. "$(dirname "$0")/harness.sh"
need "$debian/blas/libblas.so.3" "$debian/openblas-pthread/libblas.so.3" "$debian/blis-pthread/libblas.so.3" \
     "$debian/openblas64-pthread/libblas64.so.3" "$debian/blas64/xblat3s"
build linked gcc -std=c11 -D_GNU_SOURCE -O2 "$programs/linked.c" "$library" \
    -Wl,-rpath,"$(dirname "$library")" -lm || finish
build netlib gcc -std=c11 -D_GNU_SOURCE -O2 "$programs/linked.c" -L"$debian/blas" -lblas -lm || finish
build semantics gcc -std=c11 -D_GNU_SOURCE -O2 "$programs/semantics.c" -L"$debian/openblas-pthread" \
    -lblas -lm -lpthread || finish
on_host netlib ./netlib > plain.out
export GPUBLAS_OFFLOAD=never

# hosts <stderr>: the BLAS libraries of the process other than us, as netlib, openblas, blis. (OpenBLAS's
# libblas.so.3 needs its libopenblas.so.0: one BLAS in two files.)
hosts() {
    local path
    sed -n 's/^blas: //p' "$1" | while read -r path; do
        path=$(realpath "$path")
        case $path in
            *openblas*) echo openblas ;;
            *blis*) echo blis ;;
            *) cmp -s "$path" "$library" || echo netlib ;;
        esac
    done | sort -u | tr '\n' ' ' | sed 's/ $//'
}
right() {
    if [ "$2" = 0 ] && cmp plain.out "$1.out"; then ok "$1: all calls right"
    else fail "$1: exit $2"; head -5 "$1.err"; fi
}

# 1 the option; a path without a BLAS is warned of, and the search goes on
for host in netlib openblas blis; do
    GPUBLAS_HOST_BLAS=$(host_folder $host)/libblas.so.3 ./linked tell > option.out 2> option.err
    right option $?
    expect "GPUBLAS_HOST_BLAS=$host" $host "$(hosts option.err)"
done
GPUBLAS_HOST_BLAS=/nowhere/libblas.so.3 ./linked tell > missing.out 2> missing.err
right missing $?
expect 'lines on a path that is none' 1 "$(grep -c '^gpublas: .*/nowhere/libblas.so.3' missing.err)"

# 2 the BLAS that the process has, and no second one: linked, and loaded RTLD_LOCAL by Python
for host in netlib openblas blis; do
    offload=never preloaded $host ./netlib tell > process.out 2> process.err
    right process $?
    expect "the process's own $host" $host "$(hosts process.err)"
    offload=never preloaded $host "$python" -c '
import numpy as np, sys
a = np.ones((64, 64), np.float32)
assert ((a @ a) == 64).all()
maps = {line.split()[-1] for line in open("/proc/self/maps")}
for path in maps:
    if "blas.so" in path or "blis.so" in path: print("blas:", path, file=sys.stderr)' 2> local.err
    expect "NumPy's own $host: exit" 0 $?
    expect "NumPy's own $host" $host "$(hosts local.err)"
done

# 3 found by name if the process has none: OpenBLAS before BLIS before the reference, whatever libblas.so.3
# is; all names come from one
for host in openblas blis netlib; do
    LD_LIBRARY_PATH=$(host_folder $host) GPUBLAS_VERBOSE=2 ./linked > by_name.out 2> by_name.err
    right by_name $?
    sed -n 's/^gpublas: the host.s .* is in /blas: /p' by_name.err > by_name.used
    expect "libblas.so.3 is $host: used" openblas "$(hosts by_name.used)"
done

# 4 the library found is ourselves, under every name that it may have: no recursion
mkdir ourselves copies
for name in libblas.so.3 libblas.so libcblas.so.3 libopenblas.so.0 libopenblas.so libblis.so.4 libblis.so \
    libmkl_rt.so.2 libmkl_rt.so.1 libmkl_rt.so libflexiblas.so.3 libatlas.so.3 libblas.so.4 \
    libopenblasp.so.0 libopenblaso.so.0 libblis-mt.so.4 libgslcblas.so.0; do
    ln -s "$library" ourselves/$name
    cp "$library" copies/$name
done
for offload in never always; do
    for folder in ourselves copies; do
        LD_LIBRARY_PATH=$PWD/$folder:$fake GPUBLAS_OFFLOAD=$offload timeout 100 ./semantics > $folder.out \
            2> $folder.err
        expect "libblas.so.3 and all others are $folder, $offload: exit" 0 $?
        expect "libblas.so.3 and all others are $folder, $offload: checks right" 44 \
            "$(grep -c '^right' $folder.out)"
    done
    LD_LIBRARY_PATH=$debian/openblas-pthread:$fake LD_PRELOAD=$library GPUBLAS_HOST_BLAS=$library \
        GPUBLAS_OFFLOAD=$offload timeout 100 ./semantics > us.out 2> us.err
    expect "GPUBLAS_HOST_BLAS is ourselves, $offload: exit" 0 $?
    LD_LIBRARY_PATH=$debian/openblas-pthread:$fake LD_PRELOAD=$library \
        GPUBLAS_HOST_BLAS=$PWD/copies/libblas.so.3 GPUBLAS_OFFLOAD=$offload timeout 100 ./semantics > us.out \
        2> us.err
    expect "GPUBLAS_HOST_BLAS is a copy of us, $offload: exit" 0 $?
done

# 5 a BLAS with 64-bit integers under the plain names: we stand aside and say so once
echo 'int RowMajorStrg = 0, CBLAS_CallFromC = 0;' > netlib_variables.c
build netlib_variables.so gcc -shared -fPIC netlib_variables.c
aside() {   # <program> <input> <lines of success>
    (
        mkdir -p "$1" && cd "$1" || exit 1
        LD_LIBRARY_PATH=$debian/openblas64-pthread:$fake LD_PRELOAD=$library:$scratch/netlib_variables.so \
            GPUBLAS_OFFLOAD=always GPUBLAS_VERBOSE=${4:-0} \
            "$debian/blas64/$1" < "$debian/blas64/$2" > stdout 2> ../"$1.err"
        cat stdout ./*.out > ../"$1.result" 2> /dev/null
    )
    expect "64-bit integers: lines of success of $1" "$3" "$(grep -c 'PASSED THE' "$1.result")"
    if grep -E '\*\*\*\*|FAIL|SUSPECT' "$1.result"; then fail "64-bit integers: $1"; fi
    if [ "${4:-0}" = 0 ]; then
        expect "64-bit integers: warnings of $1" 1 "$(grep -c '^gpublas: ' "$1.err")"
    else
        expect "64-bit integers: calls of $1 on the GPU" 0 "$(traced "$1.err")"
    fi
}
aside xblat3s sblat3.in 12
aside xscblat3 sin3 18
aside xblat3d dblat3.in 12
aside xblat3s sblat3.in 12 1

# 6 a host of the other width: all of netlib's 32-bit testers on a host with 64-bit integers, 64-bit names on
# one with 32-bit integers
wide=$debian/openblas64-pthread/libblas64.so.3
mkdir widened
for p in s d c z; do
    for level in 1 2 3; do
        input=/dev/null lines=$(case $p in s | d) echo 13 ;; *) echo 10 ;; esac)
        if [ $level != 1 ]; then
            input=$debian/blas/${p}blat$level.in
            lines=$((2 * $(grep -c 'PUT F FOR NO TEST' "$input")))
        fi
        rm -f widened/*
        (
            cd widened || exit 1
            GPUBLAS_HOST_BLAS=$wide LD_PRELOAD=$library GPUBLAS_VERBOSE=2 \
                "$debian/blas/xblat$level$p" < "$input" > stdout 2> ../widened.err
        )
        cat widened/* > widened.result
        expect "64-bit host, xblat$level$p: lines of success" "$lines" \
            "$(grep -cE -e '----- PASS -----|PASSED THE .*(ERROR-EXITS|COMPUTATIONAL TESTS)' widened.result)"
        if grep -E '\*\*\*\*|FAIL|SUSPECT' widened.result; then fail "64-bit host, xblat$level$p"; fi
        expect "64-bit host, xblat$level$p: names of another host" 0 \
            "$(sed -n 's/^gpublas: the host.s .* is in //p' widened.err | grep -cvF "$wide")"
    done
done
build values gcc -std=c11 -O2 -Wall -Wextra "$here/test_embedded.c" "$library" \
    -Wl,-rpath,"$(dirname "$library")" -lm || finish
for host in "$debian/blas/libblas.so.3" "$wide"; do
    GPUBLAS_HOST_BLAS=$host GPUBLAS_VERBOSE=2 ./values > values.out 2> values.err
    # OpenBLAS's own: steps below 0.
    expect "names of both widths on ${host##*/}: checks" "$(grep -c snrm2_ values.out)" \
        "$(grep -c FAIL values.out)"
    grep FAIL values.out | grep -v snrm2_
    for name in sgemm_ sgemm_64_ dznrm2_64_ zdotu_; do
        expect "$name on ${host##*/}" "$host" "$(sed -n "s/^gpublas: the host.s $name is in //p" values.err)"
    done
done

# 7 callers of both widths in one process: each gets the library that it would have found without us,
# whichever came first; a caller that brings none gets the one that is there, and no second BLAS
flags="-std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror"
ours="$library -Wl,-rpath,$(dirname "$library")"
build narrow_user.so gcc $flags -shared -fPIC -DUSER=int "$programs/widths.c" -L"$debian/blas" -lblas \
    -Wl,-rpath,"$debian/blas" || finish
build wide_user.so gcc $flags -shared -fPIC -DUSER=int64_t "$programs/widths.c" "$wide" \
    -Wl,-rpath,"${wide%/*}" || finish
build widths gcc $flags "$programs/widths.c" || finish
build widths_calls gcc $flags -DCALLS "$programs/widths.c" $ours || finish
of_widths() {   # <what> <libraries wanted> <command> ...
    local what=$1 wanted=$2; shift 2
    timeout 60 "$@" > widths.out 2> widths.err
    expect "$what: exit" 0 $?
    cat widths.err | grep -v 'takes 64-bit integers under the plain BLAS names'
    [ "$wanted" = any ] || expect "$what: libraries" "$wanted" "$(hosts widths.out)"
}
for route in never always; do
    export GPUBLAS_OFFLOAD=$route LD_LIBRARY_PATH=$fake
    for order in "narrow_user.so wide_user.so" "wide_user.so narrow_user.so" "$wide narrow_user.so" \
        "narrow_user.so $wide" "wide_user.so"; do
        of_widths "callers, $route: $(echo "$order" | sed "s|[^ ]*/||g")" any env LD_PRELOAD="$library" \
            ./widths $(for file in $order; do realpath "$file"; done)
    done
    of_widths "a 32-bit caller where the one BLAS has 64, $route" openblas ./widths_calls "$wide"
    of_widths "32-bit and 64-bit callers, one BLAS of 64, $route" openblas ./widths_calls "$PWD/wide_user.so"
done
unset LD_LIBRARY_PATH
# Its names end in 64_.
for wheel in "$here"/../../build/venv/lib/python3*/site-packages/numpy.libs/libscipy_openblas64_*; do
    [ -e "$wheel" ] || continue
    of_widths "a 32-bit caller beside NumPy's wheel" openblas \
        env OPENBLAS_NUM_THREADS=2 ./widths_calls "$(realpath "$wheel")"
done

# 8 hosts whose names do not tell: plain names with 64-bit integers (libmwblas.so); the end of what a GPU
# began on one, for a caller with 32-bit integers
build libmwblas.so gcc $flags -shared -fPIC -DWIDE "$programs/mimic.c" -Wl,-soname,libmwblas.so || finish
build libwheel.so gcc $flags -shared -fPIC -DWHEEL "$programs/mimic.c" -Wl,-soname,libwheel.so || finish
build wide_program gcc $flags -DUSER=int64_t -DCALLS -DNO_DOT "$programs/widths.c" -L. -lmwblas \
    -Wl,-rpath,"$PWD" || finish
build scipy_program gcc $flags -DSCIPY "$programs/widths.c" -Wl,--no-as-needed -L. -lwheel -lmwblas \
    -Wl,-rpath,"$PWD" || finish
broken() {
    env GPUBLAS_OFFLOAD=always GPUBLAS_MEMORY=2M LD_LIBRARY_PATH="$fake" LD_PRELOAD="$library" \
        FAKECUDA_FAIL=${1:-cuMemcpyDtoHAsync:3+:1} GPUBLAS_VERBOSE=1 timeout 100 ./"$2"
}
broken '' wide_program > mimic.out 2> mimic.err
expect 'libmwblas.so: exit' 0 $?
expect 'libmwblas.so: we stand aside' 1 \
    "$(grep -c 'libmwblas.so takes 64-bit integers .*: all calls' mimic.err)"
# On a busy machine the start measures the link again, which takes copies home as well.
for first in 3 4 5 6; do
    broken "cuMemcpyDtoHAsync:$first+:1" scipy_program > mimic.out 2> mimic.err
    code=$?
    grep -q 'route=gpu+host' mimic.err && break
done
expect 'a 32-bit call finished by a 64-bit host: exit' 0 $code
if grep -q 'route=gpu+host' mimic.err; then ok 'the host finished it'
else fail 'the host finished nothing'; tail -3 mimic.err; fi
expect 'a 32-bit call finished by a 64-bit host: sizes that are none' 0 \
    "$(grep -c 'sizes that are none' mimic.err)"
unset GPUBLAS_OFFLOAD
GPUBLAS_VERIFY=1 FAKECUDA_WRONG=1 broken cuMemFree_v2:1000000:1 scipy_program > mimic.out 2> mimic.err
expect 'a 32-bit call repaired by a 64-bit host: exit, sizes that are none' '0 0' \
    "$? $(grep -c 'sizes that are none' mimic.err)"
if grep -q 'result replaces it' mimic.err; then ok 'VERIFY repaired it'
else fail 'VERIFY repaired nothing'; tail -3 mimic.err; fi
export GPUBLAS_OFFLOAD=never

# 9 libraries that forward to us are no hosts: any such library, FlexiBLAS, and libblastrampoline, which may
# forward to us later
build libforwarder.so gcc $flags -shared -fPIC -DFORWARDER "$programs/mimic.c" || finish
build libflexi.so gcc $flags -shared -fPIC -DFORWARDER -DFLEXI "$programs/mimic.c" || finish
build liblate.so gcc $flags -shared -fPIC -DFORWARDER -DLATE "$programs/mimic.c" || finish
for name in forwarder flexi late; do
    build $name gcc $flags -DCALLS -DNO_DOT "$programs/widths.c" -Wl,--no-as-needed -L. -l$name \
        -Wl,-rpath,"$PWD" || finish
done
for route in never always; do
    export GPUBLAS_OFFLOAD=$route
    LD_LIBRARY_PATH=$debian/blas:$fake BACKEND=$library of_widths "a forwarder to us, $route" any ./forwarder
    LD_LIBRARY_PATH=$debian/blas:$fake BACKEND=$library of_widths "a forwarder to us, beside a BLAS, $route" \
        any ./forwarder "$debian/blas/libblas.so.3"
    LD_LIBRARY_PATH=$debian/blas:$fake LD_PRELOAD=$library BACKEND=$debian/blas/libblas.so.3 of_widths \
        "a forwarder to a host, $route" netlib ./forwarder
    LD_LIBRARY_PATH=$debian/blas:$fake BACKEND=$library of_widths "FlexiBLAS to us, $route" any ./flexi
    LD_LIBRARY_PATH=$debian/blas:$fake LD_PRELOAD=$library BACKEND=$debian/blas/libblas.so.3 of_widths \
        "FlexiBLAS to a host, $route" netlib ./flexi
    LD_LIBRARY_PATH=$debian/blas:$fake of_widths "lbt_forward, $route" any ./late "forward:$library"
    LD_LIBRARY_PATH=$debian/blas:$fake BACKEND=$debian/blas/libblas.so.3 of_widths \
        "lbt_forward, from a host to us, $route" netlib ./late "forward:$library"
done
export GPUBLAS_OFFLOAD=never

# 10 MKL by its soname: complex results as the caller expects them
mkdir mkl
build mkl/libmkl_rt.so.2 gcc $flags -shared -fPIC -DHIDDEN "$programs/mimic.c" -Wl,-soname,libmkl_rt.so.2 \
    || finish
build dot gcc $flags -DCALLS -DNO_DOT -DDOT "$programs/widths.c" $ours || finish
for name in libopenblas.so.0 libblis.so.4; do echo 'int no_blas;' | gcc -shared -fPIC -xc - -o mkl/$name; done
LD_LIBRARY_PATH=mkl GPUBLAS_VERBOSE=2 timeout 20 ./dot > dot.out 2> dot.err
expect 'MKL by its soname: exit' 0 $?
expect 'MKL by its soname: sgemm_ and zdotu_' 'mkl/libmkl_rt.so.2 embedded' \
    "$(sed -n 's/^gpublas: the host.s [sz][a-z]*_ is in //p' dot.err | tr '\n' ' ' | sed 's/ $//')"

# 11 PBLAS's own block, which is asked of the library that asks; ours if the user says so
build libpblas.so gcc $flags -shared -fPIC -DLIBRARY "$programs/pblas.c" -Wl,-soname,libpblas.so || finish
build pblas_linked gcc $flags "$programs/pblas.c" -Wl,--no-as-needed -L. -lpblas -Wl,-rpath,"$PWD" -ldl \
    || finish
build pblas_with_us gcc $flags "$programs/pblas.c" -Wl,--no-as-needed $ours -L. \
    -lpblas -Wl,-rpath,"$PWD" -ldl || finish
build pblas gcc $flags "$programs/pblas.c" -ldl || finish
for block in 0 1024; do
    export GPUBLAS_PBLAS_BLOCK=$block
    wanted=$([ $block = 0 ] && echo 48 || echo 1024)
    for program in ./pblas_with_us "env LD_PRELOAD=$library ./pblas_linked"; do
        expect "PBLAS_BLOCK=$block: $program" "$wanted $wanted" \
            "$($program linked)"
    done
    expect "PBLAS_BLOCK=$block: a library that is opened" "$wanted $wanted" \
        "$(LD_PRELOAD=$library ./pblas opened "$PWD/libpblas.so")"
    expect "PBLAS_BLOCK=$block: no other answer" "$([ $block = 0 ] && echo 32 || echo 1024)" \
        "$(LD_PRELOAD=$library ./pblas alone)"
done
unset GPUBLAS_PBLAS_BLOCK
expect 'PBLAS_BLOCK, set by the program' '512 512' "$(./pblas_with_us set 512)"
finish
