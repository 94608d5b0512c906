#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# GPUBLAS_REPORT: its numbers are those of a program whose calls are known (programs/report.c), as text and as
# JSON; what it says of the host's reasons, of a GPU that fails, of warnings; forks and threads; every way to
# end, and places where nothing can be written.
. "$(dirname "$0")/harness.sh"
need "$debian/openblas-pthread/libblas.so.3"
build report gcc -std=c11 -O2 "$programs/report.c" -L"$debian/openblas-pthread" -lblas -lpthread || finish
build failures gcc -std=c11 -D_GNU_SOURCE -O2 "$programs/failures.c" -L"$debian/openblas-pthread" -lblas -lm \
    || finish

# ask <file> <expression>: of the report in that file, r, its total, t, and get("routine shape", amount ...)
ask() {
    "$python" - "$@" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
t = r["total"]
calls = {f'{c["routine"]} {c["shape"]}'.strip(): c for c in r["calls"]}
get = lambda routine, *names: [calls[routine][name] for name in names]
print(eval(sys.argv[2]))
PY
}

exists() { if [ -e "$1" ]; then echo yes; else echo no; fi; }

# ---- the numbers. 512 x 512 doubles are 2 MiB.
GPUBLAS_REPORT=all.json preloaded openblas ./report calls 2> err
expect 'exit, lines on stderr' '0 0' "$? $(wc -l < err)"
expect 'all: calls, GPU, host, failed' '[23, 22, 1, 0]' \
    "$(ask all.json '[t[n + "calls"] for n in ("", "gpu_", "host_", "failed_")]')"
expect 'both names of SGEMM, and the reason of the host' \
    "[15, 14, 1, 's', [16, 31], {'nothing to multiply': 1}]" \
    "$(ask all.json 'get("sgemm", "calls", "gpu_calls", "host_calls", "type", "size", "reasons")')"
expect 'DGEMM: calls, flops, bytes up and down' \
    "[3, $((3 * 2 * 512 ** 3)), $((3 * 2 * 512 * 512 * 8)), $((3 * 512 * 512 * 8)), [512, 1023]]" \
    "$(ask all.json 'get("dgemm", "calls", "flops", "bytes_to_gpu", "bytes_from_gpu", "size")')"
expect 'DGEMM with k = 8' "[2, $((2 * 2 * 512 * 512 * 8)), [128, 255]]" \
    "$(ask all.json 'get("dgemm small k", "calls", "flops", "size")')"
expect 'DGEMM with m = 4' "[1, $((2 * 4 * 512 * 512))]" \
    "$(ask all.json 'get("dgemm thin", "calls", "flops")')"
expect 'ZHERK is half a product' "[1, $((4 * 100 ** 3)), False]" \
    "$(ask all.json 'get("zherk", "calls", "flops", "part")')"
expect 'DSYR2K has the flops of two products' "[1, $((2 * 200 * 200 * 100)), False]" \
    "$(ask all.json 'get("dsyr2k", "calls", "flops", "part")')"
expect 'the lines add up' True "$(ask all.json \
    'all(abs(sum(c[n] for c in r["calls"]) - t[n]) <= 1e-9 * abs(t[n]) for n in
         ("calls", "flops", "bytes_to_gpu", "bytes_from_gpu", "gpu_seconds", "host_seconds",
          "saved_seconds"))')"
expect 'the names by which they were called' \
    "{'cblas_dgemm': 6, 'cblas_dsyr2k': 1, 'cblas_sgemm': 11, 'cblas_zherk': 1, 'sgemm_': 4}" \
    "$(ask all.json 'dict(sorted(r["symbols"].items()))')"
expect 'its rate' True "$(ask all.json 'abs(t["gflops_per_second"]
    / (1e-9 * t["flops"] / (t["gpu_seconds"] + t["host_seconds"])) - 1) < 1e-4')"

# ---- on the host; and small ones that are rejected without facts
offload=never GPUBLAS_REPORT=never.json preloaded openblas ./report calls
expect 'never: host, DSYR2K, reason' "23 [1, $((2 * 200 * 200 * 100))] {'GPUBLAS_OFFLOAD=never': 23}" \
    "$(ask never.json 't["host_calls"], get("dsyr2k", "host_calls", "flops"), t["reasons"]' |
        tr -d '()' | sed 's/, \[/ [/; s/\], {/] {/')"
offload=auto GPUBLAS_REPORT=small.json preloaded openblas ./report threads
expect 'too small, 16 threads' "32000 {'too small for the GPU': 32000} True" \
    "$(ask small.json '" ".join(map(str, (t["calls"], t["reasons"], t["host_seconds"] > 0)))')"
GPUBLAS_REPORT=threads.json preloaded openblas ./report threads
expect 'on the GPU, 16 threads: calls, flops' "32000 $((16 * 1000 * 2 * (4 ** 3 + 24 ** 3)))" \
    "$(ask threads.json '" ".join(map(str, (t["gpu_calls"], t["flops"])))')"

# ---- a GPU that fails, warnings, and their letters
failed=0
for count in 3 4 5 6 120; do
    GPUBLAS_REPORT=failed.json GPUBLAS_WHAT=1 GPUBLAS_SPLITS='"x\é' GPUBLAS_MEMORY=2M \
        FAKECUDA_FAIL=cuStreamWaitEvent:$count:999 preloaded openblas ./failures > /dev/null 2> err
    failed=$((failed + $(ask failed.json 'int(t["failed_calls"])')))
done
at_least 1 "$failed" 'calls were finished by the host'
expect 'the reasons' True "$(ask failed.json '{"CUDA_ERROR_UNKNOWN", "no GPU"} >= set(t["reasons"])')"
expect 'every warning is in the report' "$(wc -l < err)" "$(ask failed.json 'len(r["warnings"])')"
expect 'with their letters' True \
    "$(ask failed.json "any('=' + chr(34) + 'x' + chr(92) in w for w in r['warnings'])")"

# ---- text: on stderr; a line a shape; %p; a folder that the program has left meanwhile
GPUBLAS_REPORT=1 preloaded openblas ./report calls 2> text
expect 'text: exit, report, lines of shapes' '0 1 6' \
    "$? $(grep -c '^gpublas: report of report' text) $(grep -cE '^[a-z0-9]+\*? +[0-9]+-[0-9]+ ' text)"
expect 'text: the line of all' 'all 23 22 1 0' "$(awk '$1 == "all" { print $1, $2, $3, $4, $5 }' text)"
for off in 0 ''; do
    GPUBLAS_REPORT=$off preloaded openblas ./report calls 2> text
    expect "GPUBLAS_REPORT=$off: lines" 0 "$(wc -l < text)"
done
GPUBLAS_REPORT=none preloaded openblas true
expect 'a program without calls writes none' no "$(exists none)"
mkdir forks elsewhere
read -r busy idle abrupt parent <<< "$(GPUBLAS_REPORT=forks/%p.json preloaded openblas ./report fork)"
expect 'forks: who calls and exits writes a report; not who has no calls, or ends by _exit' 'yes yes no no' \
    "$(for who in "$parent" "$busy" "$idle" "$abrupt"; do exists "forks/$who.json"; done |
        tr '\n' ' ' | sed 's/ $//')"
expect "forks: a child begins at zero: its calls, the parent's" '7 5' \
    "$(ask "forks/$busy.json" 't["calls"]') $(ask "forks/$parent.json" 't["calls"]')"
GPUBLAS_REPORT=left.json preloaded openblas "$python" -c "
import ctypes, os, sys
os.chdir('elsewhere')
n, one, x = ctypes.byref(ctypes.c_int(20)), ctypes.byref(ctypes.c_float(1)), (ctypes.c_float * 400)()
ctypes.CDLL(sys.argv[1]).sgemm_(b'N', b'N', n, n, n, one, x, n, x, n, one, x, n)" "$library"
expect 'a program that leaves its folder' 1 "$(ask left.json 't["calls"]')"

# ---- when the program asks: nothing before the report is on; its numbers are gpublas_stats's; eight threads
# that ask amid each other's calls; no file, a full one, a pipe that nobody reads
cat > asks.py <<'PY'
import ctypes, errno, json, os, struct, sys, tempfile, threading
library = ctypes.CDLL(sys.argv[1], use_errno=True)
n, one = ctypes.byref(ctypes.c_int(20)), ctypes.byref(ctypes.c_float(1))

def multiply(times):
    x = (ctypes.c_float * 400)()
    for _ in range(times):
        library.sgemm_(b"N", b"N", n, n, n, one, x, n, x, n, one, x, n)

def report(fd, as_json):
    code = library.gpublas_report_calls(fd, as_json)
    return 0 if code == 0 else errno.errorcode[ctypes.get_errno()]

def written(as_json):
    with tempfile.TemporaryFile() as file:
        assert report(file.fileno(), as_json) == 0
        file.seek(0)
        return file.read().decode()

def stats():
    text = ctypes.create_string_buffer(96)
    assert library.gpublas_stats(text, 96) == 0
    return struct.unpack("<6Q2dQ3d", text.raw)

def thread(found):
    multiply(200)
    found.append(json.loads(written(1))["total"]["calls"])

what = sys.argv[2]
if what == "off":
    multiply(3)
    print(report(1, 0), *stats()[-3:])
if what == "totals":
    library.gpublas_set_option(b"REPORT", b"1")
    for offload in b"never", b"always":
        library.gpublas_set_option(b"OFFLOAD", offload)
        multiply(5)
    total = json.loads(written(1))["total"]
    same = [abs(total[name] - value) < 1e-12 for name, value in
            zip(("host_seconds", "saved_seconds", "missed_seconds"), stats()[-3:])]
    print(total["calls"], total["gpu_calls"], same, total["host_seconds"] > 0, total["saved_seconds"] != 0,
          [line.split()[1:4] for line in written(0).splitlines() if line.startswith("all ")])
    library.gpublas_set_option(b"REPORT", b"0")
    multiply(1)
    print(json.loads(written(1))["total"]["calls"])
if what == "threads":
    library.gpublas_set_option(b"REPORT", b"never-written")
    found = []
    threads = [threading.Thread(target=thread, args=(found,)) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    print(min(found) >= 200, max(found), json.loads(written(1))["total"]["calls"])
    os._exit(0)
if what == "places":
    library.gpublas_set_option(b"REPORT", b"1")
    multiply(1)
    reader, pipe = os.pipe()
    os.close(reader)
    print(report(-1, 1), report(os.open("/dev/full", os.O_WRONLY), 0), report(pipe, 1))
    library.gpublas_set_option(b"REPORT", None)
PY
asks() { preloaded openblas "$python" asks.py "$library" "$1" 2> err; echo "$? $(wc -l < err)"; }
expect 'asked for while it is off; exit, lines on stderr' 'ENODATA 0.0 0.0 0.0 0 0' \
    "$(asks off | tr '\n' ' ' | sed 's/ $//')"
expect 'asked for: calls, on the GPU, the totals of gpublas_stats, the table; after it was turned off' \
    "10 5 [True, True, True] True True [['10', '5', '5']] 10 0 0" \
    "$(asks totals | tr '\n' ' ' | sed 's/ $//')"
expect 'asked for by eight threads: calls' 'True 1600 1600 0 0' \
    "$(asks threads | tr '\n' ' ' | sed 's/ $//')"
expect 'asked for where nothing can be written' 'EBADF ENOSPC EPIPE 0 0' \
    "$(asks places | tr '\n' ' ' | sed 's/ $//')"

# ---- ends
for how in signal leave; do
    for i in 1 2 3 4 5; do
        GPUBLAS_REPORT=$how.json timeout 60 env GPUBLAS_OFFLOAD=auto LD_PRELOAD="$library" \
            LD_LIBRARY_PATH="$debian/blas:$fake" ./report $how 2> err
        expect "$how: exit, lines, calls" '0 0 True' \
            "$? $(wc -l < err) $(ask $how.json 't["calls"] > 0')"
    done
done
GPUBLAS_REPORT=1 preloaded openblas ./report closed 2> err
expect 'stderr closed: exit, lines, bytes in the file that has its number' '0 0 0' \
    "$? $(wc -l < err) $(stat -c %s data)"
# Lines and warnings likewise; and if the program was started without stderr.
GPUBLAS_VERBOSE=2 GPUBLAS_TYPO=1 preloaded openblas ./report closed 2> err
expect 'stderr closed, lines: exit, lines of calls, bytes in the file that has its number' '0 0 0' \
    "$? $(grep -c ' route=' err) $(stat -c %s data)"
rm data
GPUBLAS_VERBOSE=2 GPUBLAS_TYPO=1 GPUBLAS_REPORT=1 preloaded openblas ./report closed 2>&-
expect 'started without stderr: exit, bytes in the file that has its number' '0 0' "$? $(stat -c %s data)"
GPUBLAS_REPORT=1 preloaded openblas ./report calls 2> >(:)
expect 'nobody reads stderr: exit' 0 $?

# ---- places where nothing can be written: one warning, and the program's own exit code
mkfifo pipe
mkdir folder
for place in /nowhere/x.json folder pipe /dev/full /proc/1/x "$(printf '%5000s' | tr ' ' x)"; do
    GPUBLAS_REPORT=$place timeout 60 env GPUBLAS_OFFLOAD=always LD_PRELOAD="$library" \
        LD_LIBRARY_PATH="$debian/openblas-pthread:$fake" ./report calls 2> err
    expect "${place:0:20}: exit, warnings" '0 1' "$? $(grep -c '^gpublas: GPUBLAS_REPORT=' err)"
done
(ulimit -f 0; offload=never GPUBLAS_REPORT=limited preloaded openblas ./report calls 2>&1) | cat > err
expect 'a limit on files: exit, warnings' '0 1' "${PIPESTATUS[0]} $(grep -c '^gpublas: GPUBLAS_REPORT=' err)"
finish
