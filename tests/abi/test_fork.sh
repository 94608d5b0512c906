#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Forks: children compute on the host, right and without hanging, and the parent keeps the GPU. In a child its
# pinned memory is there, but empty. Other libraries' fork handlers may take locks under which BLAS is called,
# and may call BLAS themselves; and libcuda may fork while it starts. GPB_TEST_LARGE=1: 10,000 forks.
. "$(dirname "$0")/harness.sh"
need "$debian/openblas-pthread/libblas.so.3" "$debian/blas/libblas.so.3"
for host in netlib openblas blis; do
    mkdir "$host"
    GPUBLAS_VERBOSE=1 preloaded $host timeout 90 "$python" "$programs/fork.py" "$PWD/$host" > "$host.out" \
        2> "$host.err"
    expect "$host: exit" 0 $?
    expect "$host: answers" "parent True pinned True child and grandchild True \
parent while children ran True pool True parent again True " "$(tr '\n' ' ' < "$host.out")"
    expect "$host: the parent's calls on the GPU" 3 "$(traced "$host/parent")"
    expect "$host: the children's calls on the GPU" '0 0' \
        "$(traced "$host/child") $(traced "$host/grandchild")"
    calls=$(cat "$host/child" "$host/grandchild" | grep -c ' route=host ')
    at_least 19 "$calls" "calls of the children of $host on the host"
done

flags="-std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror"
build liblocking.so gcc $flags -shared -fPIC -DLOCKING "$programs/atfork.c" -L"$debian/blas" -lblas \
    -lpthread || finish
build atfork gcc $flags "$programs/atfork.c" -L. -llocking -L"$debian/blas" -lblas -Wl,-rpath,"$PWD" || finish
# A fork waits for the lock, under which another thread has 50 products of the host's: 3 to 11 ms.
alone_ms=$(LD_LIBRARY_PATH=$debian/blas ./atfork 200)
# beside_handlers <what> <forks> <milliseconds> [free]: that much longer half of them may take than without
# the library. The median of many forks is judged, because on two busy cores any one of them may take long.
beside_handlers() {
    preloaded netlib timeout 120 ./atfork "$2" ${4:-} > atfork.out 2> atfork.err
    expect "$1: exit" 0 $?
    if awk -v most="$3" -v alone="$alone_ms" '{ exit !($1 < alone + most) }' atfork.out; then
        ok "$1: half of $2 forks take less than $(cat atfork.out) ms, alone $alone_ms"
    else
        fail "$1: $(cat atfork.out)"
    fi
    expect "$1: lines on stderr" 0 "$(wc -l < atfork.err)"
}
for route in always auto never; do
    offload=$route beside_handlers "handlers that lock and multiply, $route" \
        $((${GPB_TEST_LARGE:-0} ? 10000 : 1000)) 10
done
FAKECUDA_START_MS=2000 beside_handlers 'while CUDA starts' 20 100 free        # it was a second each
mkdir shim
build shim/libcuda.so.1 gcc $flags -shared -fPIC -DSHIM "$programs/atfork.c" -Wl,-rpath,"$PWD/shim" \
    -L"$fake" -Wl,--no-as-needed "$fake/libcuda.so.1" || finish
for file in shim/libcuda.so.1 shim/libcudx.so.1; do
    [ -e $file ] || cp "$fake/libcuda.so.1" $file
    sed -i 's/libcuda\.so\.1/libcudx.so.1/g' $file
done
fake=$PWD/shim offload=always GPUBLAS_VERBOSE=2 preloaded netlib timeout 60 ./atfork 100 free > shim.out \
    2> shim.err
expect 'libcuda forks while it starts: exit' 0 $?
took=$(sed -n 's/.*starting the GPU took \([0-9]*\) ms.*/\1/p' shim.err | sort -n | tail -1)
if [ "${took:-9999}" -lt 1000 ]; then ok "three forks inside cuInit: starting took $took ms"
else fail "three forks inside cuInit: starting took '$took' ms"; fi
# A library that needs a pipe: a thread that opens it waits there, with libraries half mapped.
build halfway gcc $flags "$programs/halfway.c" -L"$debian/blas" -lblas -lpthread || finish
echo 'int pipe_is_open = 1;' > pipe.c
build libpipe.so gcc -shared -fPIC pipe.c || finish
build needs_pipe.so gcc -shared -fPIC -x c - -x none -Wl,--no-as-needed,-rpath,"$PWD" -L. -lpipe < /dev/null \
    || finish
rm libpipe.so && mkfifo libpipe.so
GPUBLAS_HOST_BLAS=$PWD/needs_pipe.so offload=never preloaded netlib timeout 60 ./halfway libm.so.6 \
    > halfway.out 2> halfway.err
expect 'forked with libraries half mapped: exit, lines on stderr' '0 0' "$? $(wc -l < halfway.err)"
head -3 halfway.err
if [ "$(cat halfway.out)" -lt 1000 ]; then ok "the fork took $(cat halfway.out) ms"
else fail "the fork took $(cat halfway.out) ms"; fi
# Walks of the list of libraries that take their time, in the first calls and in those that ask for facts.
build walking gcc $flags -rdynamic "$programs/walking.c" -L"$debian/blas" -lblas -lpthread || finish
for after in $(seq 0 30 600); do
    preloaded netlib timeout 60 ./walking $after > walking.out 2>&1 && continue
    fail "forked $after ms after the first call's begin, beside walks: $(head -1 walking.out)"
done
ok "forks up to $after ms after the first call's begin, beside walks"
build edge gcc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror "$programs/edge.c" -L"$debian/blas" -lblas \
    || finish
preloaded netlib timeout 60 ./edge > edge.out 2> edge.err
expect 'operands at the edge, in a child: exit, checks right' '0 4' "$? $(grep -c ^right edge.out)"
grep ^WRONG edge.out
expect "lines on stderr" 0 "$(wc -l < edge.err)"
finish
