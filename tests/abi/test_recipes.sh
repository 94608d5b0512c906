#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The recipes of tests/recipes, as a reader would type them: each prints what it prints without us, and comes
# through its doors to the GPU.
. "$(dirname "$0")/harness.sh"
venv=$(realpath "${VENV:-$here/../../build/venv}")
recipes=$here/../recipes
need "$debian/openblas-pthread/libblas.so.3" /usr/include/gsl /usr/include/suitesparse /usr/include/ceres \
    /usr/include/lapacke.h /usr/include/eigen3/Eigen/Dense /usr/include/armadillo /usr/bin/octave-cli \
    /usr/bin/Rscript /usr/bin/gfortran "$venv/bin/python" /usr/lib/python3/dist-packages/torch
cp -r "$recipes/." . || exit 1
export PATH=$venv/bin:$PATH GPUBLAS=$library LIBRARY_PATH=$(dirname "$library")
export GPUBLAS_CALIBRATION=$scratch/calibration HOME=$scratch
ours=$(dirname "$library")
openblas=$debian/openblas-pthread

for key in $(python3 recipes.py keys); do
    make=$(python3 recipes.py make "$key") how=$(python3 recipes.py how "$key")
    if [ -n "$make" ] && ! bash -c "$make" > "$key.make" 2>&1; then
        fail "$key does not build"
        tail -5 "$key.make"
        continue
    fi
    # Where no preloading is needed, the host alone is us without a GPU.
    if ! GPUBLAS_OFFLOAD=never LD_LIBRARY_PATH=$openblas:$ours bash -c "${how//LD_PRELOAD=libgpublas.so /}" \
        > "$key.plain" 2> "$key.err"; then
        fail "$key fails without us"
        tail -5 "$key.err"
        continue
    fi
    GPUBLAS_OFFLOAD=always GPUBLAS_VERBOSE=1 LD_LIBRARY_PATH=$openblas:$fake:$ours bash -c "$how" \
        > "$key.out" 2> "$key.trace" || { fail "$key: exit $?"; tail -5 "$key.trace"; }
    if cmp "$key.plain" "$key.out" && ! grep -qE 'False|^0$' "$key.out"; then ok "$key prints the same"
    else fail "$key prints something else"; diff "$key.plain" "$key.out" | head -6; fi
    for door in $(python3 recipes.py doors "$key"); do
        calls=$(traced "$key.trace" " $door ")
        if [ "$calls" -ge 1 ]; then ok "$key: $calls calls of $door went to the GPU"
        else fail "$key never came through $door to the GPU"; fi
    done
done

# The commands of the page about troubles.
for line in $(grep -n '^    gpublas ' "$here/../../include/TROUBLES.md" | cut -d: -f1); do
    command=$(sed -n "${line}s/^ *//p" "$here/../../include/TROUBLES.md")
    PATH=$ours:$PATH LD_LIBRARY_PATH=$openblas:$fake:$ours bash -c "$command" > command.out 2>&1
    code=$?
    if [ $code = 0 ]; then ok "$command"; else fail "$command: exit $code"; tail -3 command.out; fi
done
finish
