#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The GPU starts in the background. Meanwhile calls go to the host, none waits, and forks and exits are clean.
# What was measured is saved for the next process, and read unless somebody else could have written it.
. "$(dirname "$0")/harness.sh"
need "$debian/blas/libblas.so.3"
build start gcc -std=c11 -O2 -I"$here/../.." "$programs/start.c" -L"$debian/blas" -lblas || finish
build wait gcc -std=c11 -D_GNU_SOURCE -O2 "$programs/wait.c" -L"$debian/openblas-pthread" -lblas -ldl || finish
build constructor.so gcc -std=c11 -D_GNU_SOURCE -O2 -shared -fPIC -DLIBRARY=3700 "$programs/wait.c" -L"$debian/openblas-pthread" -lblas || finish
build small.so gcc -std=c11 -D_GNU_SOURCE -O2 -shared -fPIC -DLIBRARY=300 "$programs/wait.c" -L"$debian/openblas-pthread" -lblas || finish
export GPUBLAS_CALIBRATION=off FAKECUDA_START_MS=300

# A driver that hangs, for a program that insists (it waits 30 s), in parallel with all the rest.
(FAKECUDA_START_MS=600000 GPUBLAS_VERBOSE=1 preloaded openblas timeout 120 ./wait 100 3 > always.out 2> always.trace; echo $? > always.exit) &

# run <mode> <name> [file]: the calls of that program, decided by the library; it ends when the file has been
# replaced
run() { offload=auto GPUBLAS_VERBOSE=2 preloaded netlib timeout 120 ./start "$1" ${3:-} > "$2.out" 2> "$2.trace"; }
why() { if grep -q " why=\"$2\"" "$1.trace"; then ok "$1: a call for which '$2'"; else fail "$1: no call for which '$2'"; fi; }

run gpu gpu; expect 'until a call is on the GPU: exit' 0 $?
for reason in 'too little work so far to start the GPU' 'starting the GPU' 'faster on the GPU'; do why gpu "$reason"; done
expect 'measured, once' 1 "$(grep -c 'calibration: measured' gpu.trace)"
run fork fork; expect 'forked while it starts: exit' 0 $?
expect 'calls of the children on the host' 6 "$(grep -c 'route=host why="no GPU"' fork.trace)"
FAKECUDA_START_MS=3000 run exit exit; expect 'ended while it starts: exit' 0 $?
expect 'and the start was not done' 0 "$(grep -c 'starting the GPU took' exit.trace)"
FAKECUDA_FAIL=cuDevicePrimaryCtxRetain:1:2 run exit refused; expect 'ended while a start fails: exit' 0 $?

# A program that records a CUDA graph meanwhile: neither the start nor a call spoils it.
FAKECUDA_CAPTURE=1 run gpu capture; expect 'while the program records a graph: exit' 0 $?
grep fakecuda: capture.trace
expect 'measured all the same' 1 "$(grep -c 'calibration: measured' capture.trace)"

# A driver that fails while the machine is measured: the library does without what it cannot have.
export FAKECUDA_START_MS=0
for rule in cuMemHostAlloc:{1,\*}:2 cuMemAlloc:{1,\*}:2 cuStreamCreate:1:2 cuMemcpyDtoHAsync:{1,30}:700 cuStreamSynchronize:\*:999 cuMemsetD8Async:1:700 \
            cuLaunchKernel:{1,\*}:719 cuModuleLoadData:\*:209 cuMemFreeHost:1:2 cuPointerGetAttributes:\*:201; do
    FAKECUDA_FAIL=$rule run calls failing; expect "$rule while it is measured: exit" 0 $?
    if [ "$(grep -c 'the GPU failed' failing.trace)" -gt 1 ]; then fail "$rule: warnings"; grep 'the GPU failed' failing.trace; fi
done

# Nothing that hangs keeps a call: the driver; the dynamic linker, while a thread opens a library whose
# constructor multiplies; the home folder.
GPUBLAS_VERBOSE=2 FAKECUDA_START_MS=600000 offload=auto preloaded openblas timeout 120 ./wait 2200 5 > hang.out 2> hang.trace
expect 'a driver that hangs: exit (124: so does the program)' 0 $?
why hang 'starting the GPU takes too long'
GPUBLAS_VERBOSE=2 offload=auto preloaded openblas timeout 120 ./wait ./constructor.so > constructor.out 2> constructor.trace
expect 'a constructor that multiplies, auto: exit' 0 $?
why constructor 'starting the GPU takes too long'
GPUBLAS_VERBOSE=2 preloaded openblas timeout 20 ./wait ./small.so > constructor.out 2> constructor.trace
expect 'a constructor that multiplies, always: exit, calls on the GPU' '0 1' "$? $(traced constructor.trace)"
FAKECUDA_START_MS=400 GPUBLAS_VERBOSE=1 preloaded openblas timeout 60 ./wait 100 1 2> waited.trace
expect 'the trace counts what a call waited for' 1 "$(grep ' route=gpu ' waited.trace | grep -cE ' ms=([4-9][0-9]{2}|[0-9]{4,})\.')"
gcc -shared -fPIC -D_GNU_SOURCE -x c -o hangs.so - -ldl << 'END'
#include <dlfcn.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
static void wait_for(const char *path) { if (strstr(path, "hanging")) sleep(600); }
int open(const char *path, int flags, int mode) { static int (*real)(const char *, int, int); if (!real) real = dlsym(RTLD_NEXT, "open"); wait_for(path); return real(path, flags, mode); }
int mkostemp(char *path, int flags) { static int (*real)(char *, int); if (!real) real = dlsym(RTLD_NEXT, "mkostemp"); wait_for(path); return real(path, flags); }
int mkdir(const char *path, mode_t mode) { static int (*real)(const char *, mode_t); if (!real) real = dlsym(RTLD_NEXT, "mkdir"); wait_for(path); return real(path, mode); }
END
GPUBLAS_CALIBRATION=$PWD/hanging/file beside=$PWD/hangs.so run gpu home; expect 'a home folder that hangs, until a call is on the GPU: exit' 0 $?
expect 'and measured' 1 "$(grep -c 'calibration: measured' home.trace)"

# The file: made, used, and refused.
export GPUBLAS_CALIBRATION=$PWD/deep/down/file
known() { # <name> <loaded|measured> [the file that it then replaces]
    run gpu "$1" "${3:-}"; expect "$1: exit" 0 $?; expect "$1: calibration" "$2" "$(grep -oE 'calibration: (loaded|measured)' "$1.trace" | cut -d' ' -f2)"; }
known first measured deep/down/file
expect 'the file is the owner'"'"'s alone' '600 700' "$(stat -c %a deep/down/file) $(stat -c %a deep/down)"
known second loaded
chmod g+w deep/down/file; known writable-by-others measured deep/down/file
expect 'which is replaced' 600 "$(stat -c %a deep/down/file)"
mv deep/down/file deep/down/real; ln -s real deep/down/file; known a-link measured deep/down/file
expect 'which is replaced' 'regular file' "$(stat -c %F deep/down/file)"
sed -i 's/^launch_ns .*/launch_ns -1/' deep/down/file; known out-of-bounds measured deep/down/file
sed -i 's/^machine .*/machine another/' deep/down/file; known another-machine measured deep/down/file
printf 'x' >> deep/down/file; known longer measured deep/down/file
rm deep/down/file; mkfifo deep/down/file; known a-pipe measured deep/down/file
export GPUBLAS_CALIBRATION=/dev/null/file; known nowhere measured
expect 'nothing left over' 'file file.programs real' "$(ls deep/down | tr '\n' ' ' | sed 's/ $//')"
# What is kept of programs: made by a first run, and believed only if nobody else can have written it.
history=history-$(date +%s%N)     # programs started at load are noted by this name, and stay noted in /dev/shm
mkdir "$history"
export GPUBLAS_CALIBRATION=$PWD/$history/file
programs=$history/file.programs
run gpu run1; expect 'a first run: exit' 0 $?
why run1 'too little work so far to start the GPU'
expect 'is remembered, by a hash' '1 600' "$(grep -c '^program ' $programs) $(stat -c %a $programs)"
if grep -qa start $programs && ! grep -q '^start_us [1-9]' $programs; then fail "$programs tells what was run, or not what a start took"; fi
expect 'what came before a start could be over is no gain' 0 "$(awk '/^program/ && $8 >= $6' $programs | wc -l)"
run calls calls; FAKECUDA_START_MS=300 run fork forks; run devices devices   # other arguments are other programs
expect 'four programs' 4 "$(grep -c '^program ' $programs)"
expect 'two of them quiet: they neither forked nor changed the environment' 2 "$(awk '/^program/ && $5 == 1' $programs | wc -l)"
# remembered <total> <late of a start at load> <at the first call> [quiet runs]: what the file says of all of
# them, in microseconds
remembered() { # a start takes so long that no call is worth it alone
    sed -E "s/^(program [0-9]+ [0-9]+) .*/\1 9 ${4:-0} $1 $2 $3/; s/^start_us .*/start_us 500000 500000/" saved.programs > $programs
}
cp $programs saved.programs; chmod 600 saved.programs
saved='started: this program saved 5.0 s in earlier runs'
remembered 5000000 100 100; run calls loses
expect 'a program whose saving comes before a start is over: exit, not started' '0 0' "$? $(grep -c 'starting the GPU took' loses.trace)"
remembered 5000000 4000000 4000000; cp $programs saved.programs; run gpu profits
expect 'a program that profited: exit, started' '0 1' "$? $(grep -c "$saved" profits.trace)"
refused() { run gpu "$1"; expect "$1: exit, started by it" '0 0' "$? $(grep -c "$saved" "$1.trace")"; }
for fault in writable corrupt huge a-link a-pipe a-folder; do
    rm -rf $programs; cp saved.programs $programs
    case $fault in
        writable) chmod o+w $programs ;;
        corrupt) sed -i 's/^end/und/' $programs ;;
        huge) head -c 40000 /dev/zero >> $programs ;;
        a-link) mv $programs $history/other; ln -s other $programs ;;
        a-pipe) rm $programs; mkfifo $programs ;;
        a-folder) rm $programs; mkdir $programs ;;
    esac
    refused "$fault-programs"
done
rm -rf $programs; cp saved.programs $programs
FAKECUDA_START_MS=10000 run calls slow
expect 'whose start takes 10 s: exit, started, calls on the GPU' '0 1 0' "$? $(grep -c "$saved" slow.trace) $(grep -c 'route=gpu' slow.trace)"
cp saved.programs $programs
FAKECUDA_FAIL=cuInit:1:999 run calls fails; expect 'whose start fails: exit, started' '0 1' "$? $(grep -c "$saved" fails.trace)"
FAKECUDA_START_MS=300 run fork forked; expect 'that forks while it starts: exit, started' '0 1' "$? $(grep -c "$saved" forked.trace)"
GPUBLAS_CALIBRATION=off refused forgotten

# The second quiet run of such a program has the third one started when it is loaded, whatever the home folder
# does then. A fork, another environment, or a run without a gain ends that.
at_load() { # <name> <mode> <how often it is started so>
    run $2 "$1"; expect "$1: exit, started at load" "0 $3" "$? $(grep -c 'started at load: this program saved' "$1.trace")"; }
remembered 5000000 4000000 0 1
at_load second-quiet calls 0
at_load third-quiet calls 1
cp $programs quiet.programs; rm $programs; at_load without-its-history calls 1; at_load nothing-known calls 0
cp quiet.programs $programs; run calls noted-again; at_load and-started calls 1
rm $programs; export START_IDLE=1; at_load idle-without-history calls 1; at_load idle-again calls 0; unset START_IDLE
cp quiet.programs $programs; run calls noted-once-more
expect 'and then every call is on the GPU, or the start was near' 0 "$(grep -c 'too little work so far' third-quiet.trace)"
GPUBLAS_CALIBRATION=off at_load forgotten-at-load calls 0
sed -i '/^program/s/ [0-9]* [0-9]* [0-9]*$/ 400000 400000 0/' $programs      # the last gains were small
FAKECUDA_FAIL=cuInit:1:999 at_load fails-at-load calls 1
GPUBLAS_KERNEL=naive at_load still-wanted calls 1
for mode in fork devices; do
    export FAKECUDA_START_MS=300      # the fork finds the thread that starts it
    remembered 5000000 4000000 4000000 1; at_load "quiet-$mode" $mode 0; at_load "again-$mode" $mode 0
    expect "a program of mode $mode has no quiet runs" 1 "$(awk '/^program/ { print $5; exit }' $programs | grep -c '^0$')"
done
export FAKECUDA_START_MS=0
rm $programs

# The host computes with one thread fewer while the GPU starts, and as before afterwards, unless the program has said another number since.
cat > host.c << 'END'
#include <stdio.h>
static int threads = 64;
int openblas_get_num_threads(void) { return threads; }
int openblas_get_parallel(void) { return PARALLEL; }
void openblas_set_num_threads(int count) { fprintf(stderr, "host: set %d\n", threads = count); }
int isamax_(const int *n, const float *x, const int *incx)
{
    int at = 0;
    for (int i = 1; i < *n; i++) if (x[i * *incx] > x[at * *incx]) at = i;
    return *n < 1 ? 0 : at + 1;
}
void sgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k, const float *alpha, const float *a, const int *lda,
            const float *b, const int *ldb, const float *beta, float *c, const int *ldc)
{
    static int calls;
    fprintf(stderr, "host: multiplies with %d\n", threads);
    if (calls++ > 0 && threads == 63 && CHANGES) threads = 5;
    for (int j = 0; j < *n; j++)
        for (int i = 0; i < *m; i++) {
            float sum = 0;
            for (int l = 0; l < *k; l++) sum += a[i + l * *lda] * b[l + j * *ldb];
            c[i + j * *ldc] = sum;
        }
}
END
# spared <name> <1: has threads of its own> <1: the number is changed meanwhile>
spared() {
    build $1.so gcc -O3 -march=native -shared -fPIC -DPARALLEL=$2 -DCHANGES=$3 host.c || return
    GPUBLAS_HOST_BLAS=$PWD/$1.so FAKECUDA_START_MS=300 run gpu $1; expect "$1: exit" 0 $?
    grep '^host: ' $1.trace | uniq > $1.numbers
}
spared own-threads 1 0
expect 'a host with threads of its own: before, while the GPU starts, between calls' 'multiplies with 64;set 63;multiplies with 63;set 64;' \
    "$(head -4 own-threads.numbers | sed 's/host: //' | tr '\n' ';')"
expect 'and at last' 'host: set 64' "$(grep set own-threads.numbers | tail -1)"
spared other-threads 2 0
expect 'a host with threads of OpenMP is let be' 'host: multiplies with 64' "$(cat other-threads.numbers)"
spared changed 1 1
expect 'what the program sets meanwhile stays' 0 "$(grep -c 'set 64' changed.numbers)"

# eager: at once, before any call
GPUBLAS_VERBOSE=2 offload=eager preloaded netlib timeout 60 ./start gpu > eager.out 2> eager.trace; expect 'eager: exit' 0 $?
expect 'eager: calls before the start' 0 "$(grep -c 'too little work so far' eager.trace)"
FAKECUDA_START_MS=600000 offload=eager preloaded netlib timeout 60 ./start calls > eager.out 2>&1; expect 'eager, a driver that hangs: exit' 0 $?

unset GPUBLAS_CALIBRATION; export XDG_CACHE_HOME=$PWD/cache; known by-default measured cache/gpublas/calibration
if [ -f cache/gpublas/calibration ]; then ok 'in the user'"'"'s cache folder'; else fail 'no file in the user'"'"'s cache folder'; fi

wait
expect 'a driver that hangs, always: exit, calls of the host, warnings' '0 3 1' "$(cat always.exit) $(grep -c 'route=host why="starting the GPU takes too long"' always.trace) $(grep -c 'has not started in 30 s' always.trace)"
finish
