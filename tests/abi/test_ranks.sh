#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Many processes. ScaLAPACK's own testers with four ranks under Open MPI and MPICH, unmodified, say with us in
# front what they say without us, and every rank comes through our doors to the software GPU of its local
# rank. So do those of HPC Challenge and ELPA. MPICH's ranks spin, which takes long where there are fewer
# cores than ranks, so its testers are cut down. The two take turns by the day; GPB_TEST_SEED: another day,
# GPB_TEST_LARGE=1: both. Then pools of workers: Dask, joblib, R; and Ray and Spark
# where $POOLS names a Python that has them (70 and 320 MB, too much for every day: pip install ray
# pyspark==3.5.*).
. "$(dirname "$0")/harness.sh"
testers=$debian/scalapack
need "$testers/openmpi-tests/xslu" "$testers/mpich-tests/xslu" /usr/bin/mpirun.openmpi /usr/bin/mpirun.mpich \
    "$debian/openblas-pthread/libblas.so.3"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
    OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1 MPIR_CVAR_ENABLE_HEAVY_YIELD=1
export FAKECUDA_DEVICES=3 GPUBLAS_CALIBRATION=off
cp /usr/share/scalapack/*.dat /usr/share/scalapack/PBLAS/*.dat . || finish

# ranks <launcher> <command>. In a session of its own: ranks that wait give their core away, to whoever else
# is in their session, where that has Linux's autogroup. Beside one busy test that was ten times their time.
ranks() {
    local launcher=$1; shift
    timeout 300 setsid -w "/usr/bin/mpirun.$launcher" -n 4 "$@" < /dev/null
}

# verdicts <file>: what a tester says, without its times, rates and residuals.
verdicts() {
    grep -E 'PASSED|FAILED|BYPASS|SKIPPED|tests |^  \|' "$1" \
        | sed -E 's/ +[0-9]+\.[0-9]+//g; s/^(WALL.*(PASSED|FAILED|BYPASS)).*/\1/'
}

# reported <expression>: of the calls on the GPU of each rank, by routine
reported() {
    "$python" - "$1" report.*.json <<'PY'
import collections, json, sys
ranks = []
for name in sys.argv[2:]:
    calls = collections.Counter()
    for row in json.load(open(name))["calls"]:
        calls[row["routine"]] += row["gpu_calls"]
    ranks.append(calls)
print(eval(sys.argv[1]))
PY
}

# tests <launcher> <tester> <routine that every rank calls>
tests() {
    local name=$1-tests/$2
    rm -f report.*.json
    ranks "$1" env LD_LIBRARY_PATH="$debian/openblas-pthread" "$testers/$name" > without.out 2> without.err
    local code=$?
    ranks "$1" env LD_LIBRARY_PATH="$debian/openblas-pthread:$fake" LD_PRELOAD="$library" GPUBLAS_VERBOSE=2 \
        GPUBLAS_OFFLOAD=always GPUBLAS_REPORT="$PWD/report.%p.json" "$testers/$name" > with.out 2> with.err
    expect "$name: exit codes" "$code 0" "$? $code"
    at_least 8 "$(verdicts without.out | grep -c .)" 'verdicts'
    expect 'the same with us' '' "$(diff <(verdicts without.out) <(verdicts with.out) | head -5)"
    expect 'failures' 0 "$(verdicts with.out | grep -c 'FAILED *$\|[1-9][0-9]* tests completed and failed')"
    expect "ranks, and those that called $3 on the GPU" '[4, 4]' \
        "$(reported "[len(ranks), sum(calls['$3'] > 0 for calls in ranks)]")"
    expect 'GPUs of the four' '0 0 1 2 ' \
        "$(sed -n 's/^gpublas: GPU \([0-9]\): .*/\1/p' with.err | sort | tr '\n' ' ')"
}
testers() {
    tests "$1" PBLAS/spb3tst sgemm
    tests "$1" PBLAS/dpb3tst dgemm
    tests "$1" xslu sgemm
    tests "$1" xdlu dtrsm
    tests "$1" xsqr sgemm
}
today=" $(of_today openmpi mpich | paste -sd' ') "
[[ $today != *' openmpi '* ]] || testers openmpi
# The first problem alone, of LU and QR two, because these are small, on the grids 2 x 2 and 4 x 1 (spb3tst:
# 2 x 2). Only what the files have: given a problem of its own, 31 x 31, xslu calls PSGETRS with an illegal
# argument and hangs, without us.
sed -i 's/^4\(.*number of tests problems\)/1\1/; s/^4\(.*number of process grids\)/2\1/
    s/^2 1 2 1 4.*values of P/2 4\tvalues of P/; s/^2 2 1 4 1.*values of Q/2 1\tvalues of Q/' \
    P[SD]BLAS3TST.dat
sed -i 's/^2\(.*number of process grids\)/1\1/' PSBLAS3TST.dat
sed -i 's/^4\(\t.*number of process grids\)/2\1/; s/^1 2 1 4.*values of P/2 4\tvalues of P/
    s/^1 2 4 1.*values of Q/2 1\tvalues of Q/; s/^3\(\t.*number of N\(B\|RHS\).s\)/1\1/
    s/^3\(\t.*Number of NBRHS.s\)/1\1/; s/^4\(\t.*number of blocking sizes\)/1\1/
    s/^4\(\t.*number of problems sizes\)/2\1/' LU.dat QR.dat
[[ $today != *' mpich '* ]] || testers mpich

# ---- HPC Challenge: HPL, PTRANS and DGEMM (the other parts call no BLAS)
need /usr/bin/hpcc
# HPL.dat's lines and PTRANS's: n 400, blocks of 128, a grid of 2 x 2, the defaults of both.
printf '%s\n' title author HPL.out 8 1 400 1 128 0 1 2 2 16.0 1 2 1 4 1 2 1 1 1 1 1 0 2 64 0 0 1 8 - 0 0 0 0 \
    > hpccinf.txt
rm -f report.*.json
ranks openmpi env LD_LIBRARY_PATH="$debian/openblas-pthread:$fake" LD_PRELOAD="$library" \
    GPUBLAS_OFFLOAD=always GPUBLAS_REPORT="$PWD/report.%p.json" hpcc > hpcc.out 2> hpcc.err
expect 'hpcc: exit code' 0 $?
expect 'tests passed of PTRANS, HPL' '5 1' "$(awk '/completed and passed/ { print $1 }' hpccoutf.txt | xargs)"
expect 'failures' 0 "$(grep -c 'FAILED\|[1-9][0-9]* tests completed and failed' hpccoutf.txt)"
expect 'DGEMM within 16 units' yes \
    "$(awk '/^Scaled residual/ { print $3 < 16 ? "yes" : "no" }' hpccoutf.txt | sort -u | xargs)"
for routine in dgemm dtrsm; do
    expect "ranks, and those that called $routine on the GPU" '[4, 4]' \
        "$(reported "[len(ranks), sum(calls['$routine'] > 0 for calls in ranks)]")"
done

# ---- ELPA, by one stage and by two
need /usr/include/elpa/elpa/elpa.h
build elpa gcc -std=c11 -O2 -Wall -Wextra -Werror -I/usr/include/elpa "$programs/elpa.c" \
    "$debian/libelpa.so.19" "$debian/libscalapack-openmpi.so.2.2" -lm -Wl,--allow-shlib-undefined || finish
for stages in 1 2; do
    rm -f report.*.json
    line=$(ranks openmpi env LD_LIBRARY_PATH="$debian/openblas-pthread:$fake" LD_PRELOAD="$library" \
        GPUBLAS_OFFLOAD=always GPUBLAS_REPORT="$PWD/report.%p.json" ./elpa $stages 2> elpa.err)
    expect "ELPA, stages $stages: error, first and last eigenvalue, A v = lambda v" \
        '0 0.386295918 11.109671338 1' "$line"
    expect 'ranks, and those that called dgemm on the GPU' '[4, 4]' \
        "$(reported "[len(ranks), sum(calls['dgemm'] > 0 for calls in ranks)]")"
done

# ---- PBLAS's block: the depth of the products that it makes of its own
build pdgemm gcc -std=c11 -O2 -Wall -Wextra -Werror "$programs/pdgemm.c" \
    "$debian/libscalapack-openmpi.so.2.2" -Wl,--allow-shlib-undefined -Wl,-rpath-link,"$debian" || finish
sum=$(ranks openmpi ./pdgemm 1536 64 | grep '^sum')
for block in 0 1024; do
    ranks openmpi env LD_LIBRARY_PATH="$debian/openblas-pthread:$fake" LD_PRELOAD="$library" \
        GPUBLAS_PBLAS_BLOCK=$block GPUBLAS_VERBOSE=1 GPUBLAS_OFFLOAD=always ./pdgemm 1536 64 \
        > block.out 2> block.err
    expect "PDGEMM, PBLAS_BLOCK=$block" "$sum" "$(grep '^sum' block.out)"
    expect 'its products of all ranks, by k' \
        "$([ $block = 0 ] && echo '192 k=32' || echo '4 k=1024,4 k=512')" \
        "$(grep -o '^gpublas: dgemm_ .* k=[0-9]*' block.err | grep -o 'k=[0-9]*$' | sort | uniq -c |
            sed 's/^ *//' | paste -sd,)"
done

# ---- pools of workers, threads and processes: a worker's first product starts a GPU of its own
need /usr/bin/Rscript
"$python" -c 'import dask, joblib' || skip 'no joblib or Dask (ci/setup installs them)'
# pool <program and arguments>: the sum comes last, because R tells of its workers before.
pool() {
    local sum
    sum=$("$@" 2> pool.err | tail -1)
    expect "$(basename "$2") $3: sum" "$sum" \
        "$(GPUBLAS_VERBOSE=1 preloaded openblas timeout 120 "$@" 2> pool.err | tail -1)"
    expect 'products on the GPU, on the host' '6 0' \
        "$(grep -c 'dgemm.* route=gpu ' pool.err) $(grep -c ' route=host ' pool.err)"
}
for how in threads processes threading loky multiprocessing; do pool "$python" "$programs/pools.py" $how; done
export RAY_DEDUP_LOGS=0
for how in ${POOLS:+ray spark}; do pool "$POOLS" "$programs/pools.py" $how; done
for how in fork cluster; do pool Rscript "$programs/pools.R" $how; done
finish
