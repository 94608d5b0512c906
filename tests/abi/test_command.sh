#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The program gpublas (src/program), with the software libcuda and without a GPU: each command, its JSON, its
# exit codes; what `run` says of programs and libraries that cannot be intercepted; the manual page and the
# completions. The program is in the library's folder.
. "$(dirname "$0")/harness.sh"
program=$(dirname "$library")/gpublas
root=$(realpath "$here/../..")
modules=$root/src/program
export GPUBLAS_CALIBRATION=$scratch/calibration HOME=$scratch
need "$debian/openblas-pthread/libblas.so.3"

with_gpu() { LD_LIBRARY_PATH=$fake "$program" "$@"; }
without() { "$program" "$@"; }
# of <expression of d, the JSON on stdin>
of() { "$python" -c 'import json, sys; d = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"; }
# says <what> <text> <file>: the file has the text
says() { if grep -qF -- "$2" "$3"; then ok "$1"; else fail "$1: no '$2' in:"; head -5 "$3"; fi; }
# exits <code> <what> <command ...>: leaves out and err
exits() { local code=$1 what=$2; shift 2; "$@" > out 2> err; expect "$what: exit" "$code" $?; }

# ---- help, version, wrong command lines
exits 0 help "$program" --help
version=$(sed -n 's/^#define GPUBLAS_VERSION "\(.*\)"/\1/p' "$root/include/gpublas.h")
expect version "gpublas $version" "$("$program" --version)"
exits 2 'an unknown command' without what
exits 2 'no command' without
exits 2 'an unknown flag' without info --what
exits 1 'a full disk' bash -c '"$0" --version > /dev/full' "$program"
expect 'its message' 'gpublas: No space left on device' "$(cat err)"
exits 0 'stdout is closed' bash -c '"$0" print man >&-' "$program"
expect 'its message' '' "$(cat err)"
exits 2 'no library there' without --library /nowhere info
expect 'its message' 'gpublas: /nowhere cannot be run: No such file or directory' "$(cat err)"

# ---- info
exits 0 'info, no GPU' without info
says 'its verdict' 'no GPU here: calls go to OpenBLAS unchanged' out
says 'how the host was found' 'a known name, opened because the process has no BLAS' out
exits 0 'info, GPU' with_gpu info --all
says 'its device' 'fakecuda sm_90' out
says 'its kernels' 'naive ' out
expect 'info --json: devices, options, kernels, routines' 'True True True True' "$(with_gpu info --json |
    of '" ".join(str(x) for x in (d["devices"][0]["architecture"] == "sm_90",
        d["options"][0]["value"] == "auto", len(d["kernels"]) > 50,
        "dgemm" in {r["name"] for r in d["routines"]}))')"
expect 'info --json: options are those of the library' "$("$library" --all | grep -c '^GPUBLAS_')" \
    "$(GPUBLAS_CALIBRATION=off without info --json | of 'len(d["options"])')"
expect 'a value of the environment' '3 0' "$(GPUBLAS_THREADS=3 without info --json |
    of '" ".join(next((o["value"], o["default"]) for o in d["options"] if o["name"] == "GPUBLAS_THREADS"))')"
found_host() { GPUBLAS_HOST_BLAS=$1 without info --json | of 'd["hosts"][0]["found"]'; }
expect 'a host by name' 'named by GPUBLAS_HOST_BLAS' "$(found_host "$debian/blas/libblas.so.3")"
expect 'the embedded host' 'inside libgpublas' "$(found_host embedded)"
expect 'letters beyond ASCII' "$scratch/é" \
    "$(GPUBLAS_CALIBRATION=$scratch/é without info --json | of 'd["calibration"]["path"]')"
for coding in utf-8 ascii; do
    GPUBLAS_CALIBRATION=$scratch/é$'\xff' PYTHONIOENCODING=$coding exits 0 "bytes of no letter, $coding" \
        without info
done
colored() { without info "$@" | grep -c $'\e'; }
expect 'no colour in a pipe; always' '0 1' "$(colored) $(colored --color=always)"

# ---- why
exits 0 'why, no GPU' without why dgemm N N 100 100 100
says 'its reason' 'on the host, because: no GPU' out
exits 0 'why, GPU' with_gpu why dgemm 3000 3000 3000
says 'its side' 'dgemm 3000 3000 3000: on the GPU, because: faster on the GPU' out
GPUBLAS_OFFLOAD=never exits 0 'why, never' with_gpu why dgemm 3000 3000 3000
says 'its reason' 'because: GPUBLAS_OFFLOAD=never' out
# Every routine in every type: an answer, and nothing computed, because there is no operand.
expect 'why of all routines: how many, wrong ones' '92 []' "$(LD_LIBRARY_PATH=$fake PYTHONPATH=$modules \
    "$python" -B - "$library" <<'PY'
import sys
from gpublas_program.library import Library, usual_letters
library, wrong = Library(sys.argv[1]), []
routines = [library.routine(row["name"]) for row in library.described["routines"]]
for routine in routines:
    answers = library.ask(routine, usual_letters(), dict.fromkeys(routine.sizes, 5000))
    least = 1e8 if routine.name.endswith("con") else 1e10      # gecon and pocon are a few solves
    good = all(a["host_seconds"] > a["gpu_seconds"] > 0 and a["operations"] > least and a["route"] == "gpu"
               for a in answers)
    if len(answers) != 1 or not good:
        wrong.append(routine.name)
print(len(routines), wrong)
PY
)"
expect 'operations of DGEMM, and its bytes' '2e+09 16000000 8000000' "$(
    with_gpu why --json dgemm 1000 1000 1000 |
    of '"%g %d %d" % tuple(d["products"][0][n] for n in ("operations", "bytes_to_gpu", "bytes_from_gpu"))')"
exits 2 'why, too few sizes' without why dgemm 1 2
expect 'its usage' 'gpublas: usage: gpublas why dgemm [transa] [transb] m n k' "$(cat err)"
exits 2 'why, a size of 37 bits' without why dgemm 99999999999 2 3
expect 'its message' 'gpublas: 99999999999: sizes are 2147483647 at most' "$(cat err)"
exits 2 'why, a digit of no number' without why dgemm ² 2 3
exits 2 'why, a wrong letter' without why dgemm N X 1 2 3
exits 2 'why, a routine that is forwarded' without why daxpy 5
exits 1 'why, nothing to compute' without why dgemm 0 0 0

# ---- run
cat > calls.c <<'C'
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *, const double *,
            const int *, const double *, const int *, const double *, double *, const int *, size_t, size_t);
int main(int count, char **words)
{
    static double a[10000], b[10000], c[10000];
    const int n = 100;
    const double one = 1;
    for (int i = 0; i < 5; i++) dgemm_("N", "N", &n, &n, &n, &one, a, &n, b, &n, &one, c, &n, 1, 1);
    printf("%s\n", getenv("LD_PRELOAD"));
    if (count > 2) raise(atoi(words[2]));
    return count > 1 ? atoi(words[1]) : 0;
}
C
build calls gcc calls.c -L"$debian/openblas-pthread" -lblas || finish
exits 0 'run' without run ./calls
expect 'its stdout is the program'"'"'s' "$library" "$(cat out)"
says 'its doors' 'doors that were reached, by 1 process:' err
expect 'its calls' 'dgemm 5 0 5' "$(awk '$1 == "dgemm" { print $1, $2, $3, $4 }' err)"
says 'its symbols' 'gpublas: by symbol: dgemm_ 5' err
GPUBLAS_OFFLOAD=always exits 0 'run, GPU' with_gpu run ./calls
expect 'its calls' 'dgemm 5 5 0' "$(awk '$1 == "dgemm" { print $1, $2, $3, $4 }' err)"
exits 7 "run: the program's exit code" without run ./calls 7
exits 143 'run: its signal' without run ./calls 0 15
says 'it says so' 'signal 15' err
exits 7 'run --' without run -- ./calls 7
exits 0 "run: flags of the program are the program's" without run ./calls --help
expect 'its stdout' "$library" "$(cat out)"
for dashes in '' --; do
    expect "run $dashes: a -- of the program's" '-- x' "$(without run -q $dashes sh -c 'echo "$*"' sh -- x)"
done
expect 'run: open files are the program'"'"'s' file "$(without run -q cat /dev/fd/9 9< <(echo file))"
for to in '2>&-' '2> /dev/full'; do
    exits 7 "run: the program's exit code, $to" bash -c '"$0" run ./calls 7'" $to" "$program"
done
exits 7 'run: no folder for the report' bash -c 'ulimit -f 0; "$0" run ./calls 7 > /dev/null 2>&1' "$program"
exits 0 'run -q' without run -q ./calls
expect 'quiet: lines on stderr' 0 "$(wc -l < err)"
exits 0 'run --no-report' without run --no-report ./calls
expect 'lines on stderr' 0 "$(wc -l < err)"
exits 0 'run --report' without run --report report.json ./calls
expect 'the report' 5 "$(of 'd["total"]["calls"]' < report.json)"
exits 0 'run --report as text' without run --report report.txt ./calls
says 'the report' 'gpublas: report of calls' report.txt
exits 0 'run --trace' without run --trace trace.json ./calls
expect 'the trace' 5 "$(of 'sum(x["name"] == "dgemm_" for x in d)' < trace.json)"
# last <expression of d, the last line of err>
last() { tail -1 err | of "$1"; }
exits 7 'run --json' without run -q --json ./calls 7
expect 'lines on stderr' 1 "$(wc -l < err)"
expect 'its status, processes, routines, symbols' "7 1 {'dgemm': 5.0} {'dgemm_': 5} ['./calls', '7']" \
    "$(last '" ".join(str(x) for x in (d["status"], d["processes"],
        {n: r["host_calls"] for n, r in d["routines"].items()}, d["symbols"], d["program"]))')"
exits 0 'run --json, two processes, and a file for their reports' without run --json --report 'two-%p.json' \
    sh -c './calls; ./calls'
expect 'their symbols, files' "{'dgemm_': 10} 2" "$(last 'd["symbols"]') $(ls two-*.json | wc -l)"
exits 0 'run --json, no calls' without run -q --json true
expect 'its remark' True "$(last 'd["routines"] == {} and "no call came" in d["remarks"][0]')"
GPUBLAS_REPORT=there.json exits 0 'run --json, a report that the user wants' without run -q --json ./calls
expect 'both have it' '5 5' "$(last 'd["symbols"]["dgemm_"]') $(of 'd["symbols"]["dgemm_"]' < there.json)"
for flags in --no-report '--report x.txt'; do
    exits 2 "run --json $flags" without run --json $flags ./calls
done
LD_PRELOAD=$debian/libm.so.6 exits 0 'run: what is preloaded already' without run ./calls
expect 'is kept' "$library:$debian/libm.so.6" "$(cat out)"
exits 127 'run: no such program' without run ./nowhere
exits 126 'run: a folder' without run "$scratch"
exits 0 'run: shell scripts with two processes' without run sh -c './calls; ./calls'
says 'both reports' 'by 2 processes' err
exits 0 'run: no calls' without run true
says 'it says so' 'no call came through our doors' err
TMPDIR=$scratch without run -q ./calls > out
expect 'folders left behind' 0 "$(find . -maxdepth 1 -name 'gpublas.*' | wc -l)"
cat > stop.py <<'PY'
import signal, subprocess, sys, time
p = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
p.stdout.readline()
p.send_signal(signal.SIGTERM)
print(p.wait())
PY
expect 'a signal to run goes to the program' 3 \
    "$("$python" stop.py "$program" run -q \
        sh -c 'trap "exit 3" TERM; echo; for i in $(seq 600); do sleep 0.05; done')"
expect 'SIGINT to run alone' 3 "$(sed 's/SIGTERM/SIGINT/' stop.py | "$python" - "$program" run -q \
    sh -c 'trap "exit 3" INT; echo; for i in $(seq 600); do sleep 0.05; done')"
for number in HUP INT; do
    expect "run: SIG$number stays ignored" 'it is' \
        "$(trap '' $number; without run -q sh -c "kill -$number \$\$; echo it is")"
done
expect "run where SIGCHLD is ignored: the program's exit code" 7 \
    "$(trap '' CHLD; without run -q ./calls 7 > out; echo $?)"
cat > behind.py <<'PY'
import ctypes, os, sys, time
if os.fork():
    os._exit(0)
while not os.path.exists("go"):
    time.sleep(0.01)
n, one, x = ctypes.byref(ctypes.c_int(20)), ctypes.byref(ctypes.c_float(1)), (ctypes.c_float * 400)()
ctypes.CDLL(None).sgemm_(b"N", b"N", n, n, n, one, x, n, x, n, one, x, n)
PY
TMPDIR=$scratch exits 0 'run: a process stays behind' without run "$python" behind.py
says 'it says so' "processes of the program still run; their reports will be in $scratch/gpublas." err
touch go
for i in $(seq 200); do [ -e gpublas.*/*.json ] && break; sleep 0.05; done
expect 'its report' 1 "$(of 'd["total"]["calls"]' < gpublas.*/*.json)"
# Static, so that it runs before the library is even opened; loops on every core make run's Python late.
cat > early.c <<'C'
#include <signal.h>
#include <unistd.h>
static void leave(int number) { (void)number; _exit(3); }
int main(void) { signal(SIGTERM, leave); kill(getppid(), SIGTERM); sleep(2); return 9; }
C
build early gcc -static early.c
for i in $(seq "$(($(nproc) < 8 ? 2 * $(nproc) : 16))"); do timeout 60 sh -c 'while :; do :; done' & done
for i in $(seq 16); do "$program" run -q ./early 2> /dev/null; echo $?; done > codes
kill $(jobs -p) && wait 2> /dev/null
expect 'a signal at once, 16 times' '3' "$(sort -u codes)"

# ---- run: what cannot be intercepted
printf 'int main(void) { return 3; }\n' > three.c
build static gcc -static three.c && exits 3 'a static program' without run ./static
says 'its warning' 'static is static' err
exits 3 'a static program, --json' without run -q --json ./static
expect 'its warning' True "$(last '"static is static" in d["warnings"][0]')"
build three gcc three.c
if [ "$(id -u)" = 0 ]; then
    cp three setuid && chown 65534 setuid && chmod 4755 setuid
    exits 3 'a set-user-ID program' without run ./setuid
    says 'its warning' 'setuid is set-user-ID' err
else ok 'a set-user-ID program: only root can make one here'; fi
cat > own.c <<'C'
#include <stddef.h>
VISIBLE void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *,
                    const double *, const int *, const double *, const int *, const double *, double *,
                    const int *, size_t, size_t) { }
C
build libsymbolic.so gcc -std=c2x -fPIC -shared -DVISIBLE= -Wl,-Bsymbolic own.c
build libprotected.so gcc -std=c2x -fPIC -shared '-DVISIBLE=__attribute__((visibility("protected")))' own.c
build libmkl_mimic.so gcc -std=c2x -fPIC -shared -DVISIBLE= own.c
for kind in symbolic protected mkl_mimic; do
    build "of_$kind" gcc calls.c -L. -l$kind -Wl,-rpath,"$scratch" && exits 0 "$kind" without run "./of_$kind"
    says "$kind: its warning" "warning: lib$kind.so" err
    expect "$kind: calls of others come all the same" 5 "$(awk '$1 == "dgemm" { print $2 }' err)"
done
says 'MKL' 'what MKL calls inside MKL' err
build inside gcc -std=gnu2x -DVISIBLE= calls.c own.c
exits 0 'a BLAS inside the program' without run ./inside
says 'its warning' 'has a BLAS of its own inside (dgemm_)' err
says 'the names that it wanted' 'no call came through our doors' err
cat > deep.py <<'PY'
import ctypes, os, time
library = ctypes.CDLL("./libdeep.so", os.RTLD_NOW | os.RTLD_DEEPBIND)
library.work()
time.sleep(0.3)
PY
printf '#include <stddef.h>\nvoid dgemm_();\nvoid work(void) { dgemm_(); }\n' > work.c
build libdeep.so gcc -fPIC -shared -w work.c -L. -lmkl_mimic -Wl,-rpath,"$scratch"
exits 0 'deep binding' without run "$python" deep.py
says 'what was opened later' 'if it was opened with RTLD_DEEPBIND' err
printf 'not an ELF file' > libbad.so
expect 'the reader of ELF files takes broken ones' 0 "$(PYTHONPATH=$modules "$python" -B - "$library" <<'PY'
import random, sys
from gpublas_program import elf
whole, wrong, chance = open(sys.argv[1], "rb").read(), 0, random.Random(1)
small = open("three", "rb").read()
for i in range(400):
    text = bytearray(small[:chance.randrange(len(small))] if i % 2 else small)
    for _ in range(8):
        text[chance.randrange(min(len(text), 4096))] = chance.randrange(256) if text else 0
    open("broken", "wb").write(text)
    try:
        elf.File("broken")
    except elf.Unreadable:
        pass
    except Exception as error:
        wrong += 1
        print(repr(error))
print(wrong)
PY
)"

# ---- bench
exits 0 'bench, no GPU' without bench --sizes 16,32 --types d --seconds 0.001
says 'it says so' 'no GPU: ' err
exits 0 'bench, GPU' with_gpu bench --routine gemm,trsm,potrf,gesv --sizes 32:64 --types sz --seconds 0.001 \
    --csv bench.csv
expect 'its CSV: lines, both sides measured' '17 16' \
    "$(wc -l < bench.csv) $(awk -F, 'NR > 1 && $4 > 0 && $5 > 0' bench.csv | wc -l)"
expect 'its JSON' "[16, 32] True" "$(with_gpu bench --json --sizes 16:32 --types d --seconds 0.001 |
    of 'str([p["n"] for p in d["points"]]) + " " + str(all(p["gpu_seconds"] > 0 for p in d["points"]))')"
expect 'crossover, between the sizes that were measured' '[None, 64, 181]' \
    "$(PYTHONPATH=$modules "$python" -B -c 'from gpublas_program.bench import crossover
p = lambda *ratios: [{"n": 64 * 2**i, "host_seconds": r, "gpu_seconds": 1} for i, r in enumerate(ratios)]
print([crossover(p(0.1, 0.5)), crossover(p(2, 4)), crossover(p(0.2, 0.5, 2))])')"
exits 2 'bench: wrong sizes' without bench --sizes 5:x
exits 2 'bench: no such kernel' without bench --kernels naive,naiv
expect 'its message' 'gpublas: naiv: not a kernel; gpublas info --all lists them' "$(cat err)"
exits 0 'bench --kernels' with_gpu bench --sizes 16 --types sd --seconds 0.001 --kernels dmma,naive,ffma \
    --csv kernels.csv
expect 'its CSV: columns, which kernels were timed in s, in d' \
    'gpu_seconds_naive,gpu_seconds_ffma,gpu_seconds_dmma sgemm yes yes no dgemm no no yes' \
    "$(awk -F, '{ sub(/\r/, "") } NR == 1 { printf "%s,%s,%s", $11, $12, $13; next }
        { printf " %s", $1; for (i = 11; i < 14; i++) printf ($i > 0 ? " yes" : " no") }' kernels.csv)"
exits 2 'bench: sizes that go down' without bench --sizes 64:32
exits 2 'bench: a size of 37 bits' without bench --sizes 99999999999
exits 1 'bench: more than memory' without bench --sizes 2000000000 --types d
for types in '' sx; do exits 2 "bench: types '$types'" without bench --types "$types"; done
exits 2 'bench: a type that a routine has not' without bench --routine hemm --types s
expect 'its message' 'gpublas: hemm has none of the types s' "$(cat err)"
exits 2 'bench: no number of seconds' without bench --seconds nan
exits 2 'bench: wrong routine' without bench --routine daxpy
exits 2 'bench: a picture of no kind' without bench --plot x.txt
exits 1 'bench: a folder that is not there' without bench --sizes 8 --types s --csv /nowhere/x.csv
if "$python" -c 'import matplotlib' 2> /dev/null; then
    for picture in bench.svg bench.png; do
        exits 0 "bench --plot $picture" env LD_LIBRARY_PATH="$fake" "$python" "$program" bench \
            --sizes 16:64 --types sd --seconds 0.001 --kernels naive,float4,dmma --plot $picture
    done
    expect 'the PNG' PNG "$(head -c 4 bench.png | tail -c 3)"
    for text in 'the roofline of the link' 'sgemm, measured' 'dgemm, the link' \
        'sgemm, host' 'dgemm, GPU' 'dgemm, GPU, predicted' 'GFLOP/s' 'seconds' \
        'sgemm 64, naive' 'sgemm 64, float4' 'dgemm 64, dmma'; do
        says "the SVG: $text" ">$text<" bench.svg
    done
    expect 'the SVG of known points: crossover, no ladder' '1 0' "$(PYTHONPATH=$modules "$python" -B -c '
from gpublas_program import picture
picture.draw([{"routine": "sgemm", "n": n, "operations": 2 * n**3, "host_seconds": n**3 / 1e9,
               "gpu_seconds": n / 1e5, "predicted_host_seconds": None, "predicted_gpu_seconds": n / 1e5,
               "predicted_device_seconds": None, "link_bytes": None, "link_seconds": None,
               "kernels": {}} for n in (64, 128)], {"sgemm": 100}, "known.svg")'
        echo "$(grep -c '>sgemm: the GPU is faster from 100 on<' known.svg) $(grep -c ladder known.svg)")"
else exits 2 'bench --plot without Matplotlib' "$python" "$program" bench --plot bench.svg; fi
cat > terminal.py <<'PY'
import os, pty, sys
shown = b""
def read(fd):
    global shown
    data = os.read(fd, 1024)
    shown += data
    return data
pty.spawn(sys.argv[1:], read)
print(shown.count(b"\r\x1b[K["), file=sys.stderr)
PY
at_least 2 "$(TERM=xterm "$python" terminal.py "$program" bench --sizes 16,32 --types d --seconds 0.001 \
    2>&1 > /dev/null < /dev/null)" 'steps of the progress bar on a terminal'

# ---- tune
exits 1 'tune, no GPU' without tune
GPUBLAS_CALIBRATION=off exits 1 'tune, no file' with_gpu tune
exits 0 'tune' with_gpu tune --sizes 32:64 --types sd
says 'the file' "kept in $scratch/calibration" out
at_least 1 "$(grep -c '^gpu 0 ' calibration)" 'classes of calls from host memory in the calibration'
expect 'tune: nothing left of its progress' no "$([ -e calibration.tune ] && echo yes || echo no)"
expect 'tune --json' 'True [32, 64]' "$(with_gpu tune --json --sizes 32:64 --types s |
    of 'str(d["finished"]) + " " + str([c["n"] for c in d["changes"]])')"
cat > interrupt.py <<'PY'
import os, signal, subprocess, sys, time
p = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
while not os.path.exists("calibration.tune") and p.poll() is None:
    time.sleep(0.005)
p.send_signal(signal.SIGINT)
print(p.wait())
PY
expect 'tune, interrupted: exit' 130 \
    "$(LD_LIBRARY_PATH=$fake "$python" interrupt.py "$program" tune --sizes 32:160:8)"
cp calibration.tune kept.tune
exits 0 'tune, again' with_gpu tune --json --sizes 32:48:8 --types s
says 'it goes on' 'going on where the last run ended' err
expect 'it lists what the interrupted run changed, and its own' 'True True' "$("$python" -c '
import json
before, all_of_it = (json.load(open(name))["changes"] for name in ("kept.tune", "out"))
print(all_of_it[:len(before)] == before, len(all_of_it) > len(before) > 0)')"
for text in '' '[]' '{"of": [], "changes": [{}]}' \
    "$(sed 's/"changes": .*/"changes": [{"routine": "sgemm", "n": 32}]}/' kept.tune)"; do
    echo "$text" > calibration.tune
    exits 0 "tune, a broken file: ${text:0:12}" with_gpu tune --sizes 32 --types s
    expect 'it begins anew' 0 "$(grep -c 'going on' err)"
done

# ---- the manual page and the completions: generated from the parser (ci/generated), and whole
for command in '' info run why bench tune print; do
    for flag in $("$program" $command --help | grep -oE -- '(^|[ ,])--[a-z-]+' | tr -d ' ,'); do
        grep -qF -- "${flag//-/\\-}" "$modules/gpublas.1" || fail "gpublas.1 has no $command $flag"
    done
done
if command -v groff > /dev/null; then
    expect 'the manual page: complaints' '' "$(groff -ww -man -Tutf8 "$modules/gpublas.1" 2>&1 > page)"
fi
# completed <words ...>: what bash offers for the last one
completed() {
    (. "$modules/gpublas.bash"; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _gpublas; echo "${COMPREPLY[*]}")
}
expect 'bash: commands' 'info' "$(completed gpublas in)"
expect 'bash: flags' '--color --csv' "$(completed gpublas -q bench --c)"
expect 'bash: words' 'always' "$(completed gpublas --color al)"
if command -v zsh > /dev/null; then expect 'zsh: syntax' '' "$(zsh -n "$modules/_gpublas" 2>&1)"; fi
finish
