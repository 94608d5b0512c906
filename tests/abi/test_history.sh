#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What earlier runs of a program change: one that gained by the GPU has it started at its first call, and
# after two quiet runs when it is loaded; one that was too short has not. Nothing is believed that another
# user may have written.
. "$(dirname "$0")/harness.sh"
need "$debian/blas/libblas.so.3"
build start gcc -std=c11 -O2 -I"$here/../.." "$programs/start.c" -L"$debian/blas" -lblas || finish
build hangs.so gcc -std=c11 -O2 -shared -fPIC "$programs/hangs.c" -ldl || finish
history=history-$(date +%s%N)    # a new name, because by it programs stay noted in /dev/shm
mkdir "$history"
file=$history/file.programs
export GPUBLAS_CALIBRATION=$PWD/$history/file FAKECUDA_START_MS=0 GPUBLAS_VERBOSE=2

# run <mode> <name>: the calls of that program, decided by the library
run() { offload=auto preloaded netlib timeout 120 ./start "$1" > "$2.out" 2> "$2.trace"; }
# said <name> <text>: how many lines of that trace have it
said() { grep -c -- "$2" "$1.trace"; }
# rows <condition>: how many programs of the file meet it. Of a row: $4 runs, $5 quiet runs, $6 what the GPU
# could have saved in all, $7 and $8 when started at load and at the first call, in microseconds
rows() { awk "/^program / && $1" "$file" | wc -l; }
took='starting the GPU took'

run gpu first
expect 'a first run: exit, started' '0 1' "$? $(said first "$took")"
expect 'is remembered, by a hash' '1 600' "$(rows 1) $(stat -c %a "$file")"
if grep -qa start "$file" && ! grep -q '^start_us [1-9]' "$file"; then
    fail "$file tells what was run, or not what a start took"
fi
expect 'what came before a start could be over is no gain' 0 "$(rows '$8 >= $6')"
run calls calls                 # other arguments are other programs
FAKECUDA_START_MS=300 run fork forks
run devices devices
expect 'four programs' 4 "$(rows 1)"
expect 'two of them quiet: they neither forked nor changed the environment' 2 "$(rows '$5 == 1')"

# remembered <total> <late of a start at load> <at the first call> [quiet runs]: what the file says of them
# all, in microseconds. A start takes so long that no call is worth it alone.
cp "$file" any.programs
remembered() {
    sed -E "s/^(program [0-9]+ [0-9]+) .*/\1 9 ${4:-0} $1 $2 $3/
            s/^start_us .*/start_us 500000 500000/" any.programs > "$file"
    chmod 600 "$file"
}
at_first='started: this program saved 5.0 s in earlier runs'
remembered 5000000 100 100
run calls loses
expect 'a saving that comes before a start is over: exit, not started' '0 0' "$? $(said loses "$took")"
remembered 5000000 4000000 4000000
cp "$file" saved.programs
run gpu profits
expect 'a program that profited: exit, started' '0 1' "$? $(said profits "$at_first")"

refused() {
    run gpu "$1"
    expect "$1: exit, started by it" '0 0' "$? $(said "$1" "$at_first")"
}
for fault in writable corrupt huge a-link a-pipe a-folder; do
    rm -rf "$file"
    cp saved.programs "$file"
    case $fault in
        writable) chmod o+w "$file" ;;
        corrupt) sed -i 's/^end/und/' "$file" ;;
        huge) head -c 40000 /dev/zero >> "$file" ;;
        a-link) mv "$file" "$history/other"; ln -s other "$file" ;;
        a-pipe) rm "$file"; mkfifo "$file" ;;
        a-folder) rm "$file"; mkdir "$file" ;;
    esac
    refused "$fault"
done
rm -rf "$file"
GPUBLAS_CALIBRATION=off refused forgotten

cp saved.programs "$file"
FAKECUDA_START_MS=10000 run calls slow
expect 'whose start takes 10 s: exit, started, calls on the GPU' '0 1 0' \
    "$? $(said slow "$at_first") $(said slow 'route=gpu')"
cp saved.programs "$file"
FAKECUDA_FAIL=cuInit:1:999 run calls fails
expect 'whose start fails: exit, started' '0 1' "$? $(said fails "$at_first")"
FAKECUDA_START_MS=300 run fork forked
expect 'that forks while it starts: exit, started' '0 1' "$? $(said forked "$at_first")"

# at_load <name> <mode> <how often it is started when it is loaded>
at_load() {
    run "$2" "$1"
    expect "$1: exit, started at load" "0 $3" "$? $(said "$1" 'started at load: this program saved')"
}
remembered 5000000 4000000 0 1
at_load second-quiet calls 0
at_load third-quiet calls 1
expect 'and no call is too early for it' 0 "$(said third-quiet 'too little work so far')"
GPUBLAS_CALIBRATION=off at_load forgotten-at-load calls 0
HANGS=$history beside=$PWD/hangs.so run calls home
expect 'a home folder that hangs: exit, started' '0 1' "$? $(said home "$took")"
cp "$file" quiet.programs
FAKECUDA_FAIL=cuInit:1:999 at_load fails-at-load calls 1

# A note outlives its history for one run, also of a program that does nothing in it.
cp quiet.programs "$file"
run calls noted
rm "$file"
at_load without-its-history calls 1
at_load nothing-known calls 0
cp quiet.programs "$file"
run calls noted-again
rm "$file"
export START_IDLE=1
at_load idle-without-its-history calls 1
at_load idle-again calls 0
unset START_IDLE

# A fork, or another environment for CUDA, is not quiet.
for mode in fork devices; do
    export FAKECUDA_START_MS=300    # so that the fork finds the thread that starts it
    remembered 5000000 4000000 4000000 1
    at_load "first-$mode" $mode 0
    at_load "second-$mode" $mode 0
    expect "a program of mode $mode has no quiet runs" 0 "$(awk '/^program / { print $5; exit }' "$file")"
done
finish
