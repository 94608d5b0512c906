#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# After every call, on every route, the process around a BLAS is as it was; it ends as it would; and programs
# that are merely started with us in front are unharmed. programs/process.c, programs/launch.c.
. "$(dirname "$0")/harness.sh"
need "$debian/openblas-pthread/libblas.so.3"
flags="-std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror"
build process gcc $flags "$programs/process.c" -L"$debian/openblas-pthread" -lblas -lpthread -ldl -lm \
    || finish
build launch gcc $flags "$programs/launch.c" -ldl || finish
build leave gcc $flags -rdynamic "$programs/leave.c" -L"$debian/openblas-pthread" -lblas -lpthread || finish
build faults gcc $flags "$programs/faults.c" -L"$debian/openblas-pthread" -lblas -lpthread || finish
build linked gcc -std=c11 -D_GNU_SOURCE -O2 "$programs/linked.c" "$library" \
    -Wl,-rpath,"$(dirname "$library")" -lm || finish

# checks <checks> <name> <what ...>: all of them right, nothing on stderr
checks() {
    local wanted=$1 name=$2; shift 2
    "$@" > checks.out 2> checks.err
    expect "$name: exit, checks right, lines on stderr" "0 $wanted 0" \
        "$? $(grep -c ^right checks.out) $(wc -l < checks.err)"
    grep ^WRONG checks.out
    head -3 checks.err
}
for offload in always auto never; do
    checks 8 "state of the process, $offload" preloaded openblas ./process state 40
    checks 4 "signals, $offload" preloaded openblas ./process signals 100
done
offload=always
GPUBLAS_HOST_BLAS=embedded checks 8 'state of the process, no libcuda, embedded' env LD_PRELOAD="$library" \
    LD_LIBRARY_PATH="$debian/blas" GPUBLAS_OFFLOAD=always ./process state 8
FAKECUDA_FAIL=cuMemcpyHtoDAsync:1+:2 preloaded openblas ./process state 8 > checks.out 2> checks.err
expect 'state of the process, every copy failing: exit, checks, lines' '0 8 1' \
    "$? $(grep -c ^right checks.out) $(wc -l < checks.err)"
checks 3 'the current CUDA context' preloaded openblas ./process context 10
# Exceptions that the program traps, in calls and at the end, with all that we may have to say and to save.
for offload in always auto never; do
    checks 3 "everything traps, $offload" preloaded openblas ./process traps
    for host in openblas netlib; do
        GPUBLAS_VERBOSE=2 GPUBLAS_REPORT=1 GPUBLAS_TRACE=traps.json \
            GPUBLAS_CALIBRATION=$PWD/traps/calibration \
            preloaded $host ./process traps > checks.out 2> checks.err
        expect "everything traps, $offload, $host, all is told: exit, checks right" '0 3' \
            "$? $(grep -c ^right checks.out)"
    done
done
GPUBLAS_VERIFY=1 offload=always checks 3 'everything traps, products verified' preloaded openblas \
    ./process traps
GPUBLAS_HOST_BLAS=embedded checks 3 'everything traps, embedded' preloaded openblas ./process traps
checks 4 "and the host's arithmetic still does" preloaded openblas ./process traps host
offload=always
# Rounding modes that a GPU has not: a product, a batch, Level 3 and LAPACK's solvers. To nearest all are the
# GPU's.
GPUBLAS_VERBOSE=1 preloaded openblas ./process rounding nearest > checks.out 2> checks.err
expect 'to nearest: exit' 0 $?
at_least 7 "$(traced checks.err)" 'calls on the GPU'
for host in openblas netlib; do
    GPUBLAS_VERBOSE=1 preloaded $host ./process rounding > checks.out 2> checks.err
    expect "otherwise, $host: exit, checks right, calls on the GPU" '0 2 0' \
        "$? $(grep -c ^right checks.out) $(traced checks.err)"
    at_least 9 "$(grep -c 'route=host why="a rounding mode other' checks.err)" 'on the host for that'
done
# POSIX allows no siglongjmp out of a call. If only the host computes, we add no harm.
offload=never checks 2 'siglongjmp out of calls that the host computes' preloaded openblas ./process \
    interrupts 8

# Faults that the program serves, in any thread; and the report of a crash, which is complete and names the
# calling thread.
export GPUBLAS_THREADS=6
for how in barrier demand truncated userfault; do
    preloaded openblas timeout 60 ./faults $how 3 > faults.out 2> faults.err
    code=$?
    if [ $code = 2 ]; then
        ok "faults, $how: not to be had here"
        continue
    fi
    expect "faults, $how: exit, products wrong, lines on stderr" '0 0 0' \
        "$code $(grep -c ^WRONG faults.out) $(wc -l < faults.err)"
done
for how in null short gone; do
    for which in a b c; do
        codes='' whole=0 caller=0
        for _ in 1 2 3 4; do
            (
                preloaded openblas timeout 60 ./faults $how $which > /dev/null 2> crash.err
                echo $? > crash.exit
            ) 2> /dev/null
            codes+="$(cat crash.exit) "
            whole=$((whole + $(grep -c '^report: whole' crash.err)))
            caller=$((caller + $(grep -c '^report: in the thread that called' crash.err)))
        done
        expect "a bad pointer, $how $which, four times: exits, reports whole, of the caller" \
            '139 139 139 139  4 4' "$codes $whole $caller"
    done
done
if [ -x "$python" ]; then
    cat > crash.py << 'END'
import ctypes
blas = ctypes.CDLL("libblas.so.3")
size, one = ctypes.c_int(1000), ctypes.c_float(1)
n, scalar = ctypes.byref(size), ctypes.byref(one)
bad, good = ctypes.c_void_p(4096), (ctypes.c_float * 1000000)()
ctypes.CDLL(None).sgemm_(b"N", b"N", n, n, n, scalar, bad, n, good, n, scalar, good, n)
END
    whole=0
    for _ in 1 2 3 4 5; do
        (preloaded openblas timeout 60 $python -X faulthandler crash.py > /dev/null 2> crash.err) 2> /dev/null
        grep -q '^Fatal Python error: Segmentation fault' crash.err \
            && grep -q 'File ".*crash.py", line 6 in <module>' crash.err \
            && whole=$((whole + 1))
    done
    expect "Python's faulthandler says which line, five times" 5 $whole
fi
unset GPUBLAS_THREADS

# Its ways to end, while other threads are in the middle of their calls.
for how in return exit quick_exit signal atexit once; do
    codes='' lines=0
    for i in $(seq 25); do
        FAKECUDA_SEED=$i FAKECUDA_START_MS=$((i % 5 == 0)) preloaded openblas timeout 30 ./process $how "$i" \
            > /dev/null 2> end.err
        codes+="$? "
        lines=$((lines + $(grep -cv 'the GPU failed' end.err)))
        said=$((${said:-0} + $(grep -c 'the GPU failed' end.err)))
    done
    expect "25 ends by $how" "$(printf '7 %.0s' {1..25})" "$codes"
    expect "and lines on stderr" 0 $lines
done
expect 'warnings of a GPU that is gone because the process ends' 0 "$said"
FAKECUDA_LOG=$scratch/driver.log preloaded openblas ./process once
expect 'no driver call after the driver has ended' 0 "$(sed '1,/^kernel /d' driver.log | grep -vc ^kernel)"
# main returns while four threads multiply, or while the GPU is starting. The driver ends when nothing of ours
# is queued or being copied, and no call goes to a host BLAS that ends as well. (FAKECUDA_LEAVE: what libcuda
# takes away then.)
for engine in 0 1; do
    for how in 'calls 200' 'start 200'; do
        codes=''
        for i in $(seq 15); do
            FAKECUDA_LEAVE=1 FAKECUDA_ENGINE=$engine FAKECUDA_SEED=$i GPUBLAS_THREADS=4 preloaded openblas \
                timeout 60 ./leave ${how% *} "$i" 30 "${how#* }" > /dev/null 2> end.err
            codes+="$? "
            [ ! -s end.err ] || head -4 end.err
        done
        expect "15 ends beside threads, $how, engine $engine" "$(printf '0 %.0s' {1..15})" "$codes"
    done
done
for pipe in closed full; do
    if [ $pipe = closed ]; then
        (
            sleep 0.2
            GPUBLAS_VERBOSE=1 preloaded openblas ./process once
            echo $? > pipe.exit
        ) 2>&1 >/dev/null | true
    else
        GPUBLAS_VERBOSE=1 preloaded openblas ./process once 2> /dev/full
        echo $? > pipe.exit
    fi
    sleep 0.5
    expect "stderr a $pipe pipe" 7 "$(cat pipe.exit)"
done
GPUBLAS_VERBOSE=1 preloaded openblas ./process once 2>&-
expect 'no stderr at all' 7 $?

# Ways to be loaded.
for how in close space deep spin; do
    GPUBLAS_OFFLOAD=always LD_LIBRARY_PATH=$debian/openblas-pthread:$fake timeout 60 ./launch $how \
        "$library" > launch.out 2> launch.err
    expect "dlopen, $how: exit, lines" '7 0' "$? $(wc -l < launch.err)"
done
LD_PRELOAD=$library LD_LIBRARY_PATH=$debian/openblas-pthread:$fake GPUBLAS_OFFLOAD=always ./launch deep \
    "$debian/openblas-pthread/libblas.so.3"
expect 'another BLAS by RTLD_DEEPBIND beside us' 7 $?
if gcc -static -x c -o static - <<< 'int main(void) { return 5; }' 2> /dev/null; then
    LD_PRELOAD=$library ./static
    expect 'a static program' 5 $?
fi
for command in 'sh -c "env true && echo fine"' 'env sh -c "echo fine"' 'xargs echo < /dev/null' \
    "ldd /bin/sh" "nice -n 1 timeout 5 sh -c 'exit 3'" \
    'bash -c "(echo a; echo b) | sort | tail -1; exit 4"'; do
    eval "$command" > plain.out 2> plain.err
    wanted="$? $(grep -v "$library" plain.out | sed 's/ (0x.*//') $(cat plain.err)"
    eval "GPUBLAS_OFFLOAD=always LD_LIBRARY_PATH=$fake LD_PRELOAD=$library $command" > with.out 2> with.err
    expect "$command" "$wanted" "$? $(grep -v "$library" with.out | sed 's/ (0x.*//') $(cat with.err)"
done

# Nothing is loaded from the working directory. A program with more rights than its user sees neither our
# options nor our user's files.
mkdir -p evil && cd evil || exit 1
gcc -shared -fPIC -x c -o libcuda.so.1 - <<< '#include <fcntl.h>
__attribute__((constructor)) static void come(void) { open("/tmp/gpublas-evil", O_CREAT | O_RDWR, 0666); }' \
    || exit 1
for name in libopenblas.so.0 libblas.so.3 libblis.so.4 libcuda.so libmkl_rt.so.2 libflexiblas.so.3; do
    cp libcuda.so.1 $name
done
rm -f /tmp/gpublas-evil
GPUBLAS_OFFLOAD=always ../linked > ../cwd.out 2> ../cwd.err
expect 'in a directory of false libraries: exit' 0 $?
[ -e /tmp/gpublas-evil ]
expect 'and one of them was loaded (1: none)' 1 $?
cd ..
if [ "$(id -u)" = 0 ]; then
    chmod 755 . && cp linked secure && chown 65534 secure && chmod u+s secure
    ls -lnd secure | grep -q '^-rws' || fail 'no set-user-ID program can be made'
    for evil in GPUBLAS_VERBOSE=2 GPUBLAS_HOST_BLAS="$scratch/evil/libblas.so.3" GPUBLAS_TYPO=1 \
        GPUBLAS_OFFLOAD=nonsense; do
        env "$evil" LD_LIBRARY_PATH="$scratch/evil:$fake" ./secure > secure.out 2> secure.err
        expect "set-user-ID, ${evil%%=*}: exit, lines on stderr" '0 0' "$? $(wc -l < secure.err)"
        [ -e /tmp/gpublas-evil ]
        expect 'and a library of the user was loaded (1: none)' 1 $?
        env "$evil" LD_LIBRARY_PATH="$fake" ./linked > /dev/null 2> same.err
        expect 'which the same program heeds without it' yes "$([ -s same.err ] && echo yes)"
        rm -f /tmp/gpublas-evil
    done
else
    ok 'not root: no set-user-ID program here'
fi
rm -f /tmp/gpublas-evil
finish
