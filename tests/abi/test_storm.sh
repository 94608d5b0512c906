#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Threads, forks and cancelled threads by the dozen and the thousand (programs/storm.c), Python's three ways
# to start processes, and a constructor that waits for a computing thread. Every product and every solution
# is right, nothing hangs, nothing is printed. GPB_TEST_LARGE=1: ten times as much.
. "$(dirname "$0")/harness.sh"
need "$debian/openblas-pthread/liblapack.so.3" "$debian/blas/libblas.so.3" "$debian/lapack/liblapack.so.3"
flags="-std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror"
# LAPACK comes with the host, or where it has none from netlib.
build storm gcc $flags "$programs/storm.c" -L"$debian/openblas-pthread" -llapack -lblas -lpthread -lm \
    -Wl,-rpath,"$debian/lapack" || finish
times=$((${GPB_TEST_LARGE:-0} ? 10 : 1))

# BLIS is no host here, because it hangs even without us after a fork in the middle of another thread's call.
# So does OpenBLAS 0.3.21 (blas_memory_alloc's lock; 3 of 114 runs of `storm fork 100` without us). It is the
# host for forks only if the parent's calls are on the GPU.
storm() {   # <host> <offload> <what> <count>
    local offload=$2
    preloaded "$1" ./storm "$3" "$4" > storm.out 2> storm.err
    expect "$3 $4, $1, $2: exit, wrong, lines on stderr" "0 wrong 0 0" \
        "$? $(cat storm.out) $(wc -l < storm.err)"
    [ -s storm.err ] && head -3 storm.err
}
for route in always auto never; do
    storm openblas $route threads $((10 * times))
    storm netlib $route fork $((1000 * times))
done
storm openblas always fork $((1000 * times))
storm openblas always cancel $((400 * times))
# Then each call and each driver call writes: cancellation points, as a real driver has them.
export GPUBLAS_VERBOSE=1 FAKECUDA_LOG=$scratch/driver.log
preloaded openblas ./storm cancel 200 > storm.out 2> storm.err
expect 'cancel 200, traced: exit, wrong' '0 wrong 0' "$? $(cat storm.out)"
at_least 300 "$(traced storm.err)" 'of its calls on the GPU'
for routine in dgesv dgetrf dgetrs dpotrf dpotrs; do
    at_least 20 "$(traced storm.err " ${routine}_")" "calls of $routine on the GPU"
done
# "no GPU": the children.
expect 'and none found it gone' 0 "$(grep ' route=host ' storm.err | grep -cv 'why="no GPU"')"
# Threads that are cancelled in their first calls, before the GPU is started.
for i in $(seq $((40 * times))); do
    preloaded openblas timeout 60 ./storm cancel 2 > first.out 2> first.err && continue
    fail "first calls cancelled, $i: $?"
    break
done
ok "$i times first calls cancelled"
unset GPUBLAS_VERBOSE FAKECUDA_LOG
# A cancellation is pending when a call begins, of each routine: it takes effect behind the call.
build pending gcc $flags "$programs/pending.c" -L"$debian/openblas-pthread" -llapack -lblas -lpthread -lm \
    || finish
for route in always auto never; do
    for before in 0 2; do
        offload=$route preloaded openblas ./pending 50 $before > pending.out 2> pending.err
        expect "pending cancellations, $before calls before, $route: exit, lines" '0 1' \
            "$? $(cat pending.out pending.err | wc -l)"
    done
    GPUBLAS_VERBOSE=2 GPUBLAS_REPORT=pending.json GPUBLAS_TRACE=pending%p.json \
        offload=$route preloaded openblas ./pending 50 0 > pending.out 2> pending.err
    expect "pending cancellations, watched, $route: exit, lines" '0 1' "$? $(wc -l < pending.out)"
done
GPUBLAS_MEMORY=768K storm openblas always threads $((10 * times))      # callers wait for each other's memory
FAKECUDA_START_MS=300 storm openblas always fork 100                   # forks in the midst of the start
FAKECUDA_START_MS=100 storm openblas always cancel 30
for i in $(seq $((10 * times))); do
    FAKECUDA_SEED=$i preloaded openblas ./storm threads 1 > first.out 2> first.err \
        && [ ! -s first.err ] && continue
    fail "64 first calls at once, $i"
    head -3 first.err
done
ok "$i times 64 first calls at once"
for i in $(seq $((40 * times))); do
    preloaded openblas ./storm fork 20 > first.out 2> first.err && [ ! -s first.err ] && continue
    fail "forks beside the first calls, $i"
    head -3 first.err
done
ok "$i times forks beside the first calls"

# Python's multiprocessing, and joblib's way
cat > multiprocess.py <<'PY'
import multiprocessing, sys
import numpy as np
a = (np.arange(300 * 310) % 7 - 3).reshape(300, 310).astype(np.float32)
b = (np.arange(310 * 290) % 5 - 2).reshape(310, 290).astype(np.float32)
exact = a.astype(int) @ b.astype(int)
def right(_=None): return bool(np.array_equal(a @ b, exact))
if __name__ == "__main__":
    before = right() if sys.argv[2] == "warm" else True
    with multiprocessing.get_context(sys.argv[1]).Pool(3) as pool:
        print(before, all(pool.map(right, range(9))), right())
PY
for method in fork forkserver spawn; do
    for state in cold warm; do
        preloaded openblas timeout 60 "$python" multiprocess.py $method $state > python.out 2> python.err
        expect "multiprocessing, $method, $state" '0 True True True' "$? $(cat python.out)"
    done
done

# R's mclapply: children that multiply, by sgemm_ and by R's own dgemm_, forked before and after R has used
# the GPU
build right.so gcc $flags -shared -fPIC "$programs/right.c" -L"$debian/openblas-pthread" -lblas || finish
cat > mclapply.R <<'R'
library(parallel)
dyn.load("right.so")
options(matprod = "blas")
a <- matrix((0:13499) %% 7 - 3, 150)
b <- matrix((0:11699) %% 5 - 2, 90)
exact <- a %*% b
right <- function(i = 0) .C("right", right = 0L)$right == 1 && identical(a %*% b, exact)
before <- if (commandArgs(TRUE) == "warm") right() else TRUE
children <- unlist(mclapply(1:9, right, mc.cores = 3))
cat(before, length(children), all(children), right())
R
for state in cold warm; do
    preloaded openblas env GPUBLAS_VERBOSE=1 timeout 60 Rscript --vanilla mclapply.R $state > R.out 2> R.err
    expect "mclapply, $state" '0 TRUE 9 TRUE TRUE' "$? $(cat R.out)"
    at_least 1 "$(traced R.err)" 'of its products on the GPU'
done

# A constructor that waits for a thread that multiplies. The thread must not need what dlopen holds meanwhile.
build constructor gcc $flags -DPROGRAM "$programs/constructor.c" -L"$debian/openblas-pthread" -lblas -ldl \
    -lpthread || finish
build constructor.so gcc $flags -shared -fPIC "$programs/constructor.c" -L"$debian/openblas-pthread" \
    -llapack -lblas -lpthread -Wl,-rpath,"$debian/lapack" || finish
for offload in never always auto; do
    preloaded openblas timeout 10 ./constructor "$PWD/constructor.so" warm > constructor.out
    expect "a constructor that joins a computing thread, after a call, $offload" '0 constructor right' \
        "$? $(cat constructor.out)"
    preloaded openblas timeout 5 ./constructor "$PWD/constructor.so" > constructor.out
    expect "a constructor that joins a computing thread, whose call is the first, $offload" \
        '0 constructor right' "$? $(cat constructor.out)"
done
# A thread that holds what dlopen holds, but works, is waited for, because the embedded BLAS is slower.
build busy.so gcc $flags -DBUSY -shared -fPIC "$programs/constructor.c" || finish
GPUBLAS_VERBOSE=2 offload=never preloaded openblas timeout 10 ./constructor "$PWD/busy.so" beside \
    > constructor.out 2> constructor.err
expect 'a call beside a library that takes long to open' '0 constructor right 1' \
    "$? $(cat constructor.out) $(head -1 constructor.err | grep -c "the host's sgemm_ is in .*openblas")"
finish
