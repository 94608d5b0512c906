#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each command of README.md, as a reader types it, in front of the software GPU, and what it leaves.
# `program` and `...` are what a reader puts in, so they are put in here. A command that is not known here is
# a failure. `ci/test` runs this, and `cmake -B build` built it.
. "$(dirname "$0")/harness.sh"
root=$(realpath "$here/../..") ours=$(dirname "$library")
need "$debian/openblas-pthread/libblas.so.3" /usr/bin/octave-cli
mkdir build && ln -s "$library" build/libgpublas.so || exit 1
cp "$here/../recipes/numpy_small.py" program.py && cp "$programs/linked.c" "$programs/matrix.h" . \
    && mv linked.c program.c && cp -r "$here/../recipes/findblas" . || exit 1
sed -n 's/^how: .* --eval .\(a = mod.*\).$/\1/p' "$here/../recipes/recipes.txt" > program.m
build program gcc -D_GNU_SOURCE -O2 program.c -L"$debian/blas" -lblas -lm || finish
include=$(sed -n 's/^GPUBLAS_CUDA_INCLUDE:PATH=//p' "$ours/CMakeCache.txt")
build injection.so gcc -std=c11 -shared -fPIC -O1 -I"$include" "$programs/injection.c" || finish
# What Nsight Systems does to a program: its variables, and the library that NVTX calls.
printf '#!/bin/sh\nshift 2\nexec env NVTX_INJECTION64_PATH=%s/injection.so "$@"\n' "$PWD" > nsys
chmod +x nsys
export PATH=$PWD:$ours:$(realpath "${VENV:-$here/../../build/venv}")/bin:$PATH
export LIBRARY_PATH=$ours LD_LIBRARY_PATH=$debian/openblas-pthread:$fake:$ours
export GPUBLAS_CALIBRATION=$scratch/calibration HOME=$scratch

# leaves <command>: a command that checks what it left; its stdout and stderr are in out and err
leaves() {
    case $1 in
        build/libgpublas.so) echo 'grep -q fakecuda out' ;;
        *program.py|*program.m) echo '! grep -qE "False|^0$" out && test -s out' ;;
        *BLAS_LIBRARIES*) echo 'cmake --build x && x/solve' ;;
        *VERBOSE=1*) echo 'grep -q "^gpublas: .* route=" err' ;;
        *REPORT=1*) echo 'grep -q "^all " err' ;;
        *TRACE=*) echo 'python3 -m json.tool t.json' ;;
        nsys*) echo 'grep -q "^range " err' ;;
        *KERNEL=naive*) echo 'test -s out' ;;
        *OFFLOAD=always*|*VERIFY=1*) echo 'test -s out' ;;
        'gpublas run'*) echo 'grep -q "^all " err' ;;
        'gpublas info') echo 'grep -q fakecuda out' ;;
        'gpublas why'*) echo 'grep -q because: out' ;;
        'gpublas bench'*) echo 'grep -q "<svg" b.svg' ;;
        'gpublas tune') echo 'test -s calibration' ;;
        *) echo false ;;
    esac
}

# put_in <command>: as a reader of this machine would type it
put_in() {
    case $1 in
        'octave '*|*' octave '*) set -- "${1/octave/octave-cli --norc}" ;;
        *BLAS_LIBRARIES*)
            set -- "cmake -DBLAS_LIBRARIES=$library -DLAPACK_LIBRARIES=$library -S findblas -B x" ;;
        # The whole range takes minutes on a GPU, and hours on this one.
        'gpublas bench'*) set -- "$1 --sizes 16:32 --seconds 0.001" ;;
        'gpublas tune') set -- "$1 --sizes 32:64" ;;
    esac
    set -- "${1//LD_PRELOAD=.../LD_PRELOAD=$library}"
    echo "${1/python3/$python}"
}

count=0
while IFS= read -r line; do
    command=$(sed 's/ *#.*//; s/^ *//' <<< "$line")
    [ -n "$command" ] || continue
    case $command in
        # test_packages.sh and test_install.sh run these, into folders of their own.
        *cpack*|*'cmake --install'*) continue ;;
        *--plot*) python3 -c 'import matplotlib' 2> /dev/null \
            || { ok "$command: not without Matplotlib"; continue; } ;;
    esac
    count=$((count + 1))
    timeout 60 bash -c "$(put_in "$command")" > out 2> err < /dev/null
    code=$?
    if [ $code = 0 ] && bash -c "$(leaves "$command")" > left 2>&1; then ok "$command"
    else fail "$command: exit $code"; tail -n 3 out err left 2> /dev/null; fi
done < <(sed -n '/^## Use/,/^## Options/p' "$root/README.md" | grep '^    ')
at_least 14 $count 'commands of the README'
finish
