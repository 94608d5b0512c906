#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# bench_smoke: every mode of the bench for a moment, on the software libcuda, with a stand-in for cuBLAS, and
# OpenBLAS in the place of NVBLAS. Each row that table.py and the goals want is there, answers are right, and
# there is no fault. It says nothing of speed.
# Usage: smoke.sh <libgpublas.so> <folder of the fake libcuda> <bench> <folder of the stand-in for cuBLAS>
source "$(dirname "$0")/../abi/harness.sh"
bench=$(realpath "${3:?the bench}") standin=$(realpath "${4:?the folder of the stand-in for cuBLAS}")
host=$debian/openblas-pthread/libopenblas.so.0
venv=${VENV:-$here/../../build/venv}/bin/python
need "$host" "$venv" /usr/bin/orterun /usr/bin/hpcc "$debian/libscalapack-openmpi.so.2.2"
export GPUBLAS_CALIBRATION=off

# mode <name> <rows wanted> <arguments>: the CSV is left in <name>.csv
mode() {
    local name=$1 rows=$2; shift 2
    if ! env LD_LIBRARY_PATH="$fake:$standin" "$bench" "--$name" --library "$library" --host-blas "$host" \
        --plain-blas "$host" --nvblas "$host" --csv "$name.csv" "$@" > "$name.log" 2>&1; then
        fail "$name: exit"
        tail -20 "$name.log"
    fi
    expect "$name: rows" "$rows" "$(($(grep -vc '^#' "$name.csv") - 1))"
    expect "$name: faults" 1 "$(grep -c '\b0 faults' "$name.log")"
}
# rows <name> <wanted> <a line's pattern>
rows() { expect "$1: $3" "$2" "$(grep -cE "$3" "$1.csv")"; }

mode end-to-end 38 --largest 48 --seconds 1
for contender in gpublas_auto gpublas_always; do rows end-to-end 10 "^$contender,48,48,48,"; done
rows end-to-end 3 '^host,'
rows end-to-end 4 '^nvblas,'
rows end-to-end 5 '^nvblas_tuned,'
rows end-to-end 6 '^copy_cublas,'
rows end-to-end 10 '^gpublas_always,.*,1\.000,[^,]*,[^,]*,[^,]*,s$'
mv end-to-end.csv s.csv
mode end-to-end 45 --largest 48 --seconds 1 --types d,c,z
for type in d c z; do
    rows end-to-end 6 "^[a-z_]*,48,48,48,.*,fresh,packed,.*,$type$"
    rows end-to-end 4 "^[a-z_]*,48,48,48,.*,fresh,inside,.*,$type$"
    rows end-to-end 5 "^[a-z_]*,48,48,48,.*,pinned,packed,.*,$type$"
    rows end-to-end 3 "^gpublas_always,.*,1\.000,[^,]*,[^,]*,[^,]*,$type$"
done
mv end-to-end.csv types_host.csv
mv s.csv end-to-end.csv

mode out-of-core 6 --largest 300 --seconds 20
rows out-of-core 1 '^gpublas_always,300,300,61,0,column,fresh,packed,0,2M,.*,s$'
mv out-of-core.csv s.csv
mode out-of-core 12 --largest 300 --seconds 20 --types d,z
for type in d z; do
    rows out-of-core 1 "^gpublas_always,300,300,61,0,column,fresh,packed,0,2M,.*,1\.000,.*,$type$"
done
mv out-of-core.csv types_outofcore.csv
mv s.csv out-of-core.csv

mode never-slower 60 --largest 64 --seconds 2 --shapes 12
for setting in 16,0 4,0 1,0 4,4 1,1; do rows never-slower 12 "^$setting,.*,s$"; done
mv never-slower.csv s.csv
mode never-slower 90 --largest 64 --seconds 2 --shapes 6 --types d,c,z
for type in d c z; do rows never-slower 6 "^1,1,.*,$type$"; done
mv never-slower.csv types_never.csv
mv s.csv never-slower.csv
# The same shapes in all types, but for what is conjugated.
for csv in never-slower types_never; do
    grep '^16,0,' $csv.csv | cut -d, -f3-12 | tr C T | sort -u > $csv.shapes
done
expect 'never-slower: shapes of d, c and z that are not of s' '6 0' \
    "$(wc -l < types_never.shapes) $(comm -13 never-slower.shapes types_never.shapes | wc -l)"

mode processes 6 --largest 64 --seconds 1
for program in one_2048 many_64 many_256 training no_sgemm true; do rows processes 1 "^$program,"; done

if ! env LD_LIBRARY_PATH="$fake" "$python" -B "$here/../bench/programs.py" \
    --library "$library" --smoke --csv programs.csv \
    --only "5 of 4096,layers,layers with CUDA,distances,k-means,threads,import" > programs.log 2>&1; then
    fail "programs: exit"; tail -20 programs.log
fi
expect 'programs: rows' 28 "$(($(grep -vc '^#' programs.csv) - 1))"
rows programs 1 '^"layers with CUDA",always,.*,[1-9][0-9]*$'

if env LD_LIBRARY_PATH="$fake" "$venv" -B "$here/../bench/solvers.py" --library "$library" --smoke \
    --only getrf,symm,mixed1 --types d --seconds 60 --csv solvers.csv > solvers.log 2>&1; then
    ok 'solvers: exit'
else fail 'solvers: exit'; tail -20 solvers.log; fi
rows solvers 1 '^ours,getrf,d,300,.*,[1-9][0-9]*,[0-9.]*$'
rows solvers 1 '^ours,mixed1,d,300,.*,[1-9][0-9]*,[0-9.]*$'
rows solvers 1 '^ours,symm,d,300,.*,[1-9][0-9]*,[0-9.]*$'

# The MPI programs as Debian has them, in a kit made of links. Its hpcc cannot leave anything out. In a
# session of their own, as in abi/test_ranks.sh.
kit=$PWD/kit/mpi
mkdir -p "$kit/bin"
ln -s "$debian/openmpi/lib/openmpi3" "$kit/plugins"
ln -s /usr/share/openmpi "$kit/share"
ln -s /usr/bin/orterun "$kit/bin/mpirun"
ln -s /usr/bin/hpcc "$kit/bin/hpcc"
build "$kit/bin/pdgemm" gcc -std=c11 -O2 "$programs/pdgemm.c" "$debian/libscalapack-openmpi.so.2.2" \
    -Wl,--allow-shlib-undefined
if setsid -w env LD_LIBRARY_PATH="$fake" GPUBLAS_OFFLOAD=always "$python" -B "$here/../bench/ranks.py" \
    --library "$library" --kit "$kit" --host-blas "$host" --pdgemm 100 --hpl 200 --hpcc 100 --seconds 600 \
    --late 20 --csv ranks.csv > ranks.log 2>&1; then
    ok 'ranks: exit'
else fail 'ranks: exit'; tail -40 ranks.log; fi
rows ranks 6 '^pdgemm,100,(512|64),4,.*,yes,'
rows ranks 5 '^hpl,200,(256|512|1024),4,.*,yes,'
rows ranks 2 '^hpl,100,512,4,.*,yes,'
rows ranks 4 '^(star|single)dgemm,28,0,4,.*,yes,'
rows ranks 2 '^ptrans,50,512,4,.*,yes,'
for program in pdgemm,100,512 hpl,200,512 stardgemm,28,0; do
    rows ranks 1 "^$program,4,gpublas,.*,[1-9][0-9]*\$"
done
# HPL alone, behind the rows of the run above.
if setsid -w env LD_LIBRARY_PATH="$fake" GPUBLAS_OFFLOAD=always "$python" -B "$here/../bench/ranks.py" \
    --library "$library" --kit "$kit" --host-blas "$host" --hpl 300 --probe 150 --ours 4:0,1:0 --seconds 600 \
    --late 20 --hpl-alone --base ranks.csv --csv hpl.csv > hpl.log 2>&1; then
    ok 'hpl: exit'
else fail 'hpl: exit'; tail -40 hpl.log; fi
rows hpl 6 '^pdgemm,100,'
rows hpl 1 '^hpl,150,512,1,host,.*,yes,'
rows hpl 1 '^hpl,150,512,4,host,.*,yes,'
rows hpl 1 '^hpl,300,512,[14],host(_depth1)?,.*,yes,'
for ranks in 1 4; do rows hpl 1 "^hpl,300,512,$ranks,gpublas,.*,yes,.*,[1-9][0-9]*\$"; done

mode callers 29 --largest 48 --seconds 1
for callers in 1 2 4 8 16; do rows callers 5 "^[a-z_]*,48,$callers,0,"; done
rows callers 2 '^[a-z_]*,48,15,48,'
rows callers 12 '^gpublas_always,.*,[1-9][0-9]*\.[0-9]*,s$'
mv callers.csv s.csv
mode callers 58 --largest 48 --seconds 1 --types d,z
for type in d z; do rows callers 12 "^gpublas_always,.*,[1-9][0-9]*\.[0-9]*,$type$"; done
mv callers.csv types_callers.csv
mv s.csv callers.csv

mode overhead 34 --largest 64 --seconds 1
rows overhead 3 '^never,.*,no$'
for watch in report trace verbose; do rows overhead 3 "^$watch,[0-9]*,[1-9].*,no\$"; done
rows overhead 3 '^possible,'
rows overhead 3 '^started,.*,yes$'
rows overhead 8 '^plan_host,'
rows overhead 1 '^plan_host,4,.*,host$'
rows overhead 1 '^plan_host,4096,.*,gpu$'

# Once with clocks and watts, in one mode with other data and on end; without NVML those columns are empty.
mode device 20 --largest 64 --suites squares,batched,beta --seconds 1 --least 1
rows device 4 ',squares,tf32,'
rows device 20 ',1234,567.8,43,power,1234,567.8$'
mv device.csv squares.csv
mode device 8 --largest 64 --suites rank_k --types s,d,c,z --seconds 1 --least 1
rows device 4 ',64,64,64,[TC],N,1,(syrk|herk),'
mkdir -p no_nvml && cp "$standin"/libcublas.so* no_nvml
standin=$PWD/no_nvml mode device 13 --largest 64 --suites data,sustained --seconds 1 --least 1 --sustained 0.1
rows device 6 ',data,.*,half_zeros,.*,,,,,,$'
for kind in continuous one_small wide_row one_nan bf16_weights integers; do
    rows device 1 ",data,.*,$kind,"
done
rows device 1 ',sustained,fp32,64,64,64,N,N,'
mv device.csv data.csv
mv squares.csv device.csv

# Sums that leave the tensor cores every 256 k alone: below FP32's error, and a hundredth of the bound of
# k + 4, and yet not as it should be.
env LD_LIBRARY_PATH="$fake" FAKECUDA_TENSOR=8 "$bench" --device --library "$library" --kernel fp16x3 \
    --largest 1024 --suites sustained --modes fp32 --least 1 --sustained 0.1 --csv seldom > seldom.log 2>&1
expect 'device: lost promotions are noticed: exit' 1 $?
expect 'device: lost promotions are noticed: far within k + 4' 1 \
    "$(awk -F, '$5 == 1024 && $24 < 10' seldom | grep -c fp16x3)"
expect 'device: lost promotions are noticed: told' 1 "$(grep -c '1024 .* WRONG' seldom.log)"
if env LD_LIBRARY_PATH="$fake:$standin" "$bench" --fit --library "$library" --host-blas "$host" \
    --plain-blas "$host" --seed 3 --shapes 3 --largest 48 --seconds 1 --csv regret \
    > regret.log 2>&1; then ok 'fit: exit'; else fail 'fit: exit'; tail -20 regret.log; fi
$python "$here/../bench/fit.py" regret > fit.out 2> fit.err
expect 'fit.py: three shapes in each mode' '0 3' "$? $(grep -c '3 shapes, regret' fit.out)"

TIMELINE_DRIVER=$fake/libcuda.so.1 GPUBLAS_OFFLOAD=always GPUBLAS_HOST_BLAS=$host \
    "$(dirname "$bench")/timeline" 64 --device 32 > timeline.log 2>&1
expect 'timeline: exit, a launch in each' '0 2' "$? $(grep -cE 'cuLaunchKernel(Ex)? +1 calls' timeline.log)"

$python "$here/../bench/reduce.py" regret regret regret.csv 2> reduce.err
expect 'reduce.py: two rows a shape' '0 6' "$? $(grep -c '^s,[1-9]' regret.csv)"
expect 'table.py' 0 "$($python "$here/../bench/table.py" "$PWD" > table.md 2> table.err; echo $?)"
for text in 'two seconds on end' 'one row in 128' 'ordinary host memory' 'never slower' 'whole processes' \
    'callers at once' 'nanoseconds' 'dgemm' 'HPL'; do
    expect "table.py: $text" 1 "$(grep -ciF "$text" table.md | sed 's/[1-9][0-9]*/1/')"
done
$python "$here/../bench/goals.py" . > goals.out 2> goals.err
expect 'goals.py, the kinds of data' '1 7' \
    "$(grep -c 'goals met' goals.out) $(grep -c 'fp32, .*_\|continuous\|integers' goals.out)"
cat reduce.err table.err goals.err
finish
