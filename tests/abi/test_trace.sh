#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# GPUBLAS_TRACE: every call of a program whose calls are known (programs/report.c) is an event, with the start
# of the GPU, the copies, and what the GPU does in each stream; threads, forks, every way to end, files that
# the program takes away, and places where nothing can be written.
. "$(dirname "$0")/harness.sh"
need "$debian/openblas-pthread/libblas.so.3"
build report gcc -std=c11 -O2 "$programs/report.c" -L"$debian/openblas-pthread" -lblas -lpthread || finish

# ask <file> <expression>: of its events e, of those that are calls, c, of what the GPU does, gpu, and of
# names(kind)
ask() {
    "$python" - "$@" <<'PY'
import collections, json, sys
e = json.load(open(sys.argv[1]))
spans = [x for x in e if x["ph"] == "X"]
c = [x for x in spans if x["cat"] in ("host", "gpu")]
gpu = [x for x in spans if x["cat"] in ("kernel", "link")]
inside = lambda y, x: x["ts"] - .01 <= y["ts"] and y["ts"] + y["dur"] <= x["ts"] + x["dur"] + .01
names = lambda kind: collections.Counter(x["name"] for x in spans if x["cat"] == kind)
print(eval("(" + sys.argv[2] + ")"))
PY
}
exists() { if [ -e "$1" ]; then echo yes; else echo no; fi; }

GPUBLAS_TRACE=all.json preloaded openblas ./report calls 2> err
expect 'exit, lines on stderr' '0 0' "$? $(wc -l < err)"
expect 'calls on the GPU and on the host' '[22, 1]' \
    "$(ask all.json '[sum(names(side).values()) for side in ("gpu", "host")]')"
expect 'both names of SGEMM, on the GPU' '14' \
    "$(ask all.json 'sum(n for s, n in names("gpu").items() if "sgemm" in s)')"
expect 'DGEMM: its size and bytes' '[512, 512, 512, 4194304, 2097152]' \
    "$(ask all.json '[next(x for x in c if "dgemm" in x["name"])["args"][n]
        for n in ("m", "n", "k", "bytes_to_gpu", "bytes_from_gpu")]')"
expect 'the start of the GPU' 1 "$(ask all.json 'names("start")["start the GPU"]')"
expect 'copies lie within calls' True "$(ask all.json 'names("copy")["copy"] > 0 and all(any(
    x["ts"] <= y["ts"] and y["ts"] + y["dur"] <= x["ts"] + x["dur"] + 1 for x in c)
    for y in spans if y["cat"] == "copy")')"
expect 'what the GPU does lies within a call, which has its kernel' 'True True' \
    "$(ask all.json 'all(any(inside(y, x) for x in c) for y in gpu)') $(ask all.json 'all(any(
        inside(y, x) and y["name"].endswith("gemm_" + x["args"]["kernel"]) for y in gpu)
        for x in c if x["cat"] == "gpu")')"
expect 'its copies have the bytes of the calls' True "$(ask all.json '
    [sum(y["args"]["bytes"] for y in gpu if y["name"] == name) for name in ("to the GPU", "from the GPU")]
    == [sum(x["args"][n] for x in c) for n in ("bytes_to_gpu", "bytes_from_gpu")]')"
expect 'spans of a stream come one after the other' True "$(ask all.json 'all(
    x["ts"] + x["dur"] <= y["ts"] + .01 for t in {x["tid"] for x in gpu}
    for line in [sorted((x for x in gpu if x["tid"] == t), key=lambda x: x["ts"])]
    for x, y in zip(line, line[1:]))')"
expect 'streams have names' True "$(ask all.json 'all(x["args"]["name"].startswith("GPU 0, lane ")
    for x in e if x["name"] == "thread_name" and x["tid"] in {y["tid"] for y in gpu})')"
expect 'no time is negative' True "$(ask all.json 'all(x["dur"] >= 0 for x in spans)')"
expect 'threads and the process have names' True "$(ask all.json 'e[0]["args"]["name"] == "report" and
    {x["tid"] for x in spans} == {x["tid"] for x in e if x["name"] == "thread_name"}')"
offload=auto GPUBLAS_TRACE=threads.json preloaded openblas ./report threads
expect '16 threads: calls, threads' '[32000, 16]' \
    "$(ask threads.json '[len(c), len({x["tid"] for x in c})]')"
GPUBLAS_TRACE=none.json preloaded openblas true
expect 'a program without calls writes none' no "$(exists none.json)"
offload=never GPUBLAS_TRACE=both.json GPUBLAS_REPORT=report.json preloaded openblas ./report calls
expect 'beside a report: calls' '23' "$(ask both.json 'len(c)')"
# A locale with decimal commas, where there is one
GPUBLAS_TRACE=locale.json preloaded openblas env LC_ALL=de_DE.UTF-8 "$python" -c "
import ctypes, locale, sys
try: locale.setlocale(locale.LC_ALL, '')
except locale.Error: pass
n, one, x = ctypes.byref(ctypes.c_int(20)), ctypes.byref(ctypes.c_float(1)), (ctypes.c_float * 400)()
ctypes.CDLL(sys.argv[1]).sgemm_(b'N', b'N', n, n, n, one, x, n, x, n, one, x, n)" "$library"
expect 'a locale of the program' 1 "$(ask locale.json 'len(c)')"

# ---- a profiler: each call is a range of NVTX, on either side
include=$(sed -n 's/^GPUBLAS_CUDA_INCLUDE:PATH=//p' "$(dirname "$library")/CMakeCache.txt")
build injection.so gcc -std=c11 -shared -fPIC -O1 -I"$include" "$programs/injection.c" || finish
profiled() { env NVTX_INJECTION64_PATH="$PWD/injection.so" "$@"; }
for offload in always never; do
    profiled env LD_PRELOAD="$library" LD_LIBRARY_PATH="$debian/openblas-pthread:$fake" \
        GPUBLAS_OFFLOAD=$offload ./report calls 2> err
    expect "profiler, offload $offload: exit, ranges" '0 begun 23, open 0' "$? $(tail -1 err)"
    expect 'ranges of DGEMM of 512' 3 "$(grep -c '^range cblas_dgemm 512 x 512 x 512, batch 1$' err)"
done
profiled env LD_PRELOAD="$library" LD_LIBRARY_PATH="$debian/openblas-pthread:$fake" ./report threads 2> err
expect 'profiler, 16 threads: ranges' 'begun 32000, open 0' "$(tail -1 err)"
NVTX_INJECTION64_PATH=/nowhere/x.so preloaded openblas ./report calls 2> err
expect 'a profiler that is not there: exit, lines' '0 0' "$? $(wc -l < err)"

# ---- forks
read -r busy idle abrupt parent <<< "$(GPUBLAS_TRACE=%p.json preloaded openblas ./report fork)"
expect "forks: the parent's calls, the child's" '5 7' \
    "$(ask "$parent.json" 'len(c)') $(ask "$busy.json" 'len(c)')"
expect 'no file of a child without calls' no "$(exists "$idle.json")"
GPUBLAS_TRACE=one.json preloaded openblas ./report fork > pids
expect 'one name: the parent alone' "5 $(awk '{ print $4 }' pids)" \
    "$(ask one.json 'len(c), {x["pid"] for x in e}' | tr -d '(),{}')"

# ---- ends
bad=0 calls=0
for how in signal leave; do
    for i in 1 2 3 4 5; do
        GPUBLAS_TRACE=$how.json timeout 60 env GPUBLAS_OFFLOAD=auto LD_PRELOAD="$library" \
            LD_LIBRARY_PATH="$debian/blas:$fake" ./report $how 2> err
        found="$? $(grep -vc 'events are missing' err) $(ask $how.json 'len(c) >= 0')"
        [ "$found" = '0 0 True' ] || { bad=$((bad + 1)); echo "$how: $found"; cat err; }
        calls=$((calls + $(ask $how.json 'len(c)')))
    done
done
expect 'exits amid calls and in a signal handler: bad ones of 10' 0 $bad
at_least 10 $calls 'calls in their traces'
GPUBLAS_TRACE=closed.json preloaded openblas ./report closed 2> err
expect 'stderr closed: exit, bytes in the file that has its number' '0 0' "$? $(stat -c %s data)"
# The trace does not take that number itself: what the program writes there would be amid the events.
GPUBLAS_TRACE=free.json preloaded openblas ./report free
expect 'stderr closed: its number is taken (0: no), events' '0 yes' \
    "$? $(grep -q dgemm free.json && echo yes)"
GPUBLAS_TRACE=free.json preloaded openblas ./report free <&- >&- 2>&-
expect 'started without any: the number of stderr is taken (0: no), events' '0 yes' \
    "$? $(grep -q dgemm free.json && echo yes)"
cat > taken.py <<'PY'
import ctypes, os, sys
n, one, x = ctypes.byref(ctypes.c_int(20)), ctypes.byref(ctypes.c_float(1)), (ctypes.c_float * 400)()
sgemm = ctypes.CDLL(sys.argv[1]).sgemm_
for i in range(500):
    sgemm(b'N', b'N', n, n, n, one, x, n, x, n, one, x, n)
    if i == 0:
        os.closerange(3, 100)
        own = [open("own", "w") for _ in range(20)]
PY
GPUBLAS_TRACE=taken.json preloaded openblas "$python" taken.py "$library" 2> err
expect 'the program closes the file: exit, lines, bytes in its own' '0 0 0' \
    "$? $(wc -l < err) $(stat -c %s own)"

# ---- places where nothing can be written: one warning, and the program's own exit code
mkfifo pipe
mkdir folder
for place in /nowhere/x.json folder pipe /dev/full /proc/1/x "$(printf '%5000s' | tr ' ' x)"; do
    GPUBLAS_TRACE=$place timeout 60 env GPUBLAS_OFFLOAD=always LD_PRELOAD="$library" \
        LD_LIBRARY_PATH="$debian/openblas-pthread:$fake" ./report calls 2> err
    expect "${place:0:20}: exit, warnings" '0 1' "$? $(grep -c '^gpublas: GPUBLAS_TRACE=' err)"
done
finish
