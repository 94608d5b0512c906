#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The GPU starts in the background. Meanwhile calls go to the host, none waits, and forks and exits are clean.
# What was measured is saved for the next process, and read unless somebody else could have written it.
# test_history.sh has what earlier runs of a program change.
. "$(dirname "$0")/harness.sh"
need "$debian/blas/libblas.so.3"
c=(gcc -std=c11 -D_GNU_SOURCE -O2)
openblas=(-L"$debian/openblas-pthread" -lblas)
build start "${c[@]}" -I"$here/../.." "$programs/start.c" -L"$debian/blas" -lblas || finish
build wait "${c[@]}" "$programs/wait.c" "${openblas[@]}" -ldl || finish
build constructor.so "${c[@]}" -shared -fPIC -DLIBRARY=3700 "$programs/wait.c" "${openblas[@]}" || finish
build small.so "${c[@]}" -shared -fPIC -DLIBRARY=300 "$programs/wait.c" "${openblas[@]}" || finish
build hangs.so "${c[@]}" -shared -fPIC "$programs/hangs.c" -ldl || finish
export GPUBLAS_CALIBRATION=off FAKECUDA_START_MS=300 GPUBLAS_VERBOSE=2

# A driver that hangs, for a program that insists (it waits 30 s), in parallel with all the rest.
insist() {
    FAKECUDA_START_MS=600000 preloaded openblas timeout 120 ./wait 100 3 > always.out 2> always.trace
    echo $? > always.exit
}
insist &

# run <mode> <name> [file]: the calls of that program, decided by the library; it ends when the file has been
# replaced
run() { offload=auto preloaded netlib timeout 120 ./start "$1" ${3:-} > "$2.out" 2> "$2.trace"; }
# said <name> <text>: how many lines of that trace have it
said() { grep -c -- "$2" "$1.trace"; }
why() {
    if grep -q " why=\"$2\"" "$1.trace"; then ok "$1: a call for which '$2'"
    else fail "$1: no call for which '$2'"; fi
}

# If the machine is busy a call may not wait until all is measured, and the program is over before that.
for _ in 1 2 3; do
    run gpu gpu
    code=$?
    [ "$(said gpu 'calibration: measured')" = 1 ] && break
done
expect 'until a call is on the GPU: exit' 0 "$code"
why gpu 'too little work so far to start the GPU'
why gpu 'starting the GPU'
why gpu 'faster on the GPU'
expect 'measured, once' 1 "$(said gpu 'calibration: measured')"
run fork fork
expect 'forked while it starts: exit' 0 $?
expect 'calls of the children on the host' 6 "$(said fork 'route=host why="no GPU"')"
FAKECUDA_START_MS=3000 run exit exit
expect 'ended while it starts: exit' 0 $?
expect 'and the start was not done' 0 "$(said exit 'starting the GPU took')"
FAKECUDA_FAIL=cuDevicePrimaryCtxRetain:1:2 run exit refused
expect 'ended while a start fails: exit' 0 $?

# A program that records a CUDA graph meanwhile: neither the start nor a call spoils it.
FAKECUDA_CAPTURE=1 run gpu capture
expect 'while the program records a graph: exit' 0 $?
grep fakecuda: capture.trace
expect 'measured all the same' 1 "$(said capture 'calibration: measured')"

# A driver that fails while the machine is measured: the library does without what it cannot have.
export FAKECUDA_START_MS=0
for rule in cuMemHostAlloc:{1,\*}:2 cuMemAlloc:{1,\*}:2 cuStreamCreate:1:2 cuMemcpyDtoHAsync:{1,30}:700 \
            cuStreamSynchronize:\*:999 cuMemsetD8Async:1:700 cuLaunchKernel:{1,\*}:719 \
            cuModuleLoadData:\*:209 cuMemFreeHost:1:2 cuPointerGetAttributes:\*:201; do
    FAKECUDA_FAIL=$rule run calls failing
    expect "$rule while it is measured: exit" 0 $?
    [ "$(said failing 'the GPU failed')" -le 1 ] && continue
    fail "$rule: warnings"
    grep 'the GPU failed' failing.trace
done

# Nothing that hangs keeps a call: the driver; the dynamic linker, while a thread opens a library whose
# constructor multiplies; the home folder.
# A call waits if what is left of the start, as it is expected, is shorter than the host would take. Where
# other work makes calls take a second, the expected time has passed before the second one.
for n in 2200 1600 1200 2200 1600 1200; do
    FAKECUDA_START_MS=600000 offload=auto preloaded openblas timeout 120 ./wait $n 5 > hang.out 2> hang.trace
    code=$?
    [ $code = 0 ] && ! grep -q 'takes too long' hang.trace || break
done
expect 'a driver that hangs: exit (124: so does the program)' 0 $code
why hang 'starting the GPU takes too long'
offload=auto preloaded openblas timeout 120 ./wait ./constructor.so > constructor.out 2> constructor.trace
expect 'a constructor that multiplies, auto: exit' 0 $?
why constructor 'starting the GPU takes too long'
preloaded openblas timeout 20 ./wait ./small.so > constructor.out 2> constructor.trace
expect 'a constructor that multiplies, always: exit, calls on the GPU' '0 1' "$? $(traced constructor.trace)"
FAKECUDA_START_MS=400 preloaded openblas timeout 60 ./wait 100 1 2> waited.trace
long=' route=gpu .* ms=([4-9][0-9]{2}|[0-9]{4,})\.'
expect 'the trace counts what a call waited for' 1 "$(grep -cE "$long" waited.trace)"
HANGS=hanging GPUBLAS_CALIBRATION=$PWD/hanging/file beside=$PWD/hangs.so run gpu home
expect 'a home folder that hangs, until a call is on the GPU: exit' 0 $?
expect 'and measured' 1 "$(said home 'calibration: measured')"

# The file: made, used, and refused.
export GPUBLAS_CALIBRATION=$PWD/deep/down/file
# known <name> <loaded|measured> [the file that it then replaces]
known() {
    run gpu "$1" "${3:-}"
    expect "$1: exit" 0 $?
    expect "$1: calibration" "$2" "$(grep -oE 'calibration: (loaded|measured)' "$1.trace" | cut -d' ' -f2)"
}
known first measured deep/down/file
expect "the file is the owner's alone" '600 700' "$(stat -c %a deep/down/file) $(stat -c %a deep/down)"
known second loaded
chmod g+w deep/down/file
known writable-by-others measured deep/down/file
expect 'which is replaced' 600 "$(stat -c %a deep/down/file)"
mv deep/down/file deep/down/real
ln -s real deep/down/file
known a-link measured deep/down/file
expect 'which is replaced' 'regular file' "$(stat -c %F deep/down/file)"
sed -i 's/^launch_ns .*/launch_ns -1/' deep/down/file
known out-of-bounds measured deep/down/file
sed -i 's/^machine .*/machine another/' deep/down/file
known another-machine measured deep/down/file
printf 'x' >> deep/down/file
known longer measured deep/down/file
rm deep/down/file
mkfifo deep/down/file
known a-pipe measured deep/down/file
export GPUBLAS_CALIBRATION=/dev/null/file
known nowhere measured
# A process that ends while its history is saved waits 50 ms for that. On a busy machine it may leave the new
# file behind under its first name, file.programs.XXXXXX.
left=$(ls deep/down | grep -vE '^file\.programs\.[A-Za-z0-9]{6}$' | tr '\n' ' ')
expect 'nothing left over' 'file file.programs real ' "$left"

# The host computes with one thread fewer while the GPU starts, and as before afterwards, unless the program
# has said another number since.
export GPUBLAS_CALIBRATION=off
# spared <name> <1: has threads of its own> <1: the number is changed meanwhile> [GEMM REAL]
spared() {
    local types=(-DGEMM="${4:-sgemm_}" -DREAL="${5:-float}")
    build "$1.so" gcc -O3 -march=native -shared -fPIC -DPARALLEL="$2" -DCHANGES="$3" "${types[@]}" \
        "$programs/sparing_host.c" || return
    build start "${c[@]}" "${types[@]}" -I"$here/../.." "$programs/start.c" -L"$debian/blas" -lblas || return
    GPUBLAS_HOST_BLAS=$PWD/$1.so FAKECUDA_START_MS=300 run gpu "$1"
    expect "$1: exit" 0 $?
    grep '^host: ' "$1.trace" | uniq > "$1.numbers"
}
for type in double float; do
    name=own-threads-$type gemm=dgemm_
    [ $type = double ] || gemm=sgemm_
    spared $name 1 0 $gemm $type
    expect "$type, a host with threads of its own: before, near the start, between calls" \
        'multiplies with 64;set 63;multiplies with 63;set 64;' \
        "$(head -4 $name.numbers | sed 's/host: //' | tr '\n' ';')"
    expect 'and at last' 'host: set 64' "$(grep set $name.numbers | tail -1)"
done
START_SOLVES=$PWD/solves.so spared solves 1 0 dgemm_ double
for what in solves factors; do
    if grep -q "host: $what with 63" solves.numbers; then ok "$what with a thread fewer near the start"
    else fail "$what never with a thread fewer"; fi
done
spared other-threads 2 0
expect 'a host with threads of OpenMP is let be' 'host: multiplies with 64' "$(cat other-threads.numbers)"
spared changed 1 1
expect 'what the program sets meanwhile stays' 0 "$(said changed 'set 64')"

# eager: at once, before any call
offload=eager preloaded netlib timeout 60 ./start gpu > eager.out 2> eager.trace
expect 'eager: exit' 0 $?
expect 'eager: calls before the start' 0 "$(said eager 'too little work so far')"
FAKECUDA_START_MS=600000 offload=eager preloaded netlib timeout 60 ./start calls > eager.out 2>&1
expect 'eager, a driver that hangs: exit' 0 $?

unset GPUBLAS_CALIBRATION
export XDG_CACHE_HOME=$PWD/cache
known by-default measured cache/gpublas/calibration
if [ -f cache/gpublas/calibration ]; then ok "in the user's cache folder"
else fail "no file in the user's cache folder"; fi

wait
late='route=host why="starting the GPU takes too long"'
expect 'a driver that hangs, always: exit, calls of the host, warnings' '0 3 1' \
    "$(cat always.exit) $(said always "$late") $(said always 'has not started in 30 s')"
finish
