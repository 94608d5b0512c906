#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fork: children compute on the host, right and without hanging, and the parent keeps the GPU.
. "$(dirname "$0")/harness.sh"
need "$debian/openblas-pthread/libblas.so.3"
for host in netlib openblas blis; do
    mkdir "$host"
    GPUBLAS_VERBOSE=1 preloaded $host timeout 90 "$python" "$programs/fork.py" "$PWD/$host" > "$host.out" 2> "$host.err"
    expect "$host: exit" 0 $?
    expect "$host: answers" 'parent True child and grandchild True parent while children ran True pool True parent again True ' "$(tr '\n' ' ' < "$host.out")"
    expect "$host: the parent's calls on the GPU" 3 "$(traced "$host/parent")"
    expect "$host: the children's calls on the GPU" '0 0' "$(traced "$host/child") $(traced "$host/grandchild")"
    calls=$(cat "$host/child" "$host/grandchild" | grep -c ' route=host ')
    if [ "$calls" -ge 19 ]; then ok "$host: $calls calls of the children went to the host"; else fail "$host: $calls calls of the children"; fi
done
finish
