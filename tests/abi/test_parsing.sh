#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What the library reads from outside: options, calibration files and histories of programs, by libFuzzer
# under AddressSanitizer and UBSan. CI: 200,000 inputs; GPB_TEST_LARGE=1: an hour. A crash leaves its input in
# the log.
. "$(dirname "$0")/harness.sh"
source=$(realpath "$here/../..")
need /usr/bin/clang
echo 'int LLVMFuzzerTestOneInput(const char *x, unsigned long n) { return x && n > 1u << 30; }' > probe.c
clang -fsanitize=fuzzer probe.c -o probe > probe.log 2>&1 || skip 'clang has no libFuzzer here'
build fuzz_parse clang -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -I"$source" \
    -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
    "$source"/tests/fuzz/fuzz_parse.c "$source"/src/service/{log,json}.c "$source"/dispatch/learn.c \
    "$source"/src/learn/{machine_file,history_file,lines,file}.c -lpthread || finish

# Words of both languages: the options with their values, and what lines of the files begin with.
{
    sed -n 's/^OPTION( *\([A-Z_]*\), *[A-Z]*, *\("[^"]*"\|NULL\), *"\([^"]*\)".*/\1\n\3/p' \
        "$source/src/service/option.def" | tr '|' '\n' | grep . | sed 's/.*/"&="\n"&"/'
    printf '"%s"\n' 'gpublas calibration 1\x0a' 'machine GPU of a name, driver 1\x0a' 'dma_mbs ' 'core_mbs ' \
        'launch_ns ' 'host ' 'gpu ' 'end\x0a' 'gpublas programs 1\x0a' 'start_us ' 'lost_us ' 'program '
} | sort -u > words
# Good inputs to begin with. The first byte says what the rest is (fuzz_parse.c).
mkdir corpus
printf '\0%s\n' 'gpublas calibration 1
machine GPU of a name, driver 1
dma_mbs 50900
core_mbs 9000
launch_ns 11000
host 2 17 5 65000
gpu 1 20 8 70000
end' > corpus/good
printf '\3%s\n' 'gpublas programs 1
start_us 341000 29000
program 12 13 4 5000000 4000000
end' > corpus/history
printf '\1memory=3G' > corpus/bytes
printf '\1OFFLOAD=never' > corpus/choice
printf '\1SPLITS=12' > corpus/number
printf '\2MEMROY' > corpus/slip
much=-runs=200000
[ "${GPB_TEST_LARGE:-0}" = 0 ] || much='-max_total_time=3600 -rss_limit_mb=8000'
export ASAN_OPTIONS=detect_leaks=0       # texts of options are kept for ever
./fuzz_parse -seed=1 -dict=words -max_len=4096 $much corpus > fuzz.log 2> fuzz.err; exit=$?
expect 'inputs without a crash: exit' 0 $exit
if [ $exit != 0 ]; then grep -v '^gpublas: ' fuzz.err | tail -40; fi
read -r runs < <(sed -n 's/^Done \([0-9]*\) runs.*/\1/p' fuzz.err)
ok "$runs inputs"
read -r files options < <(sed -n 's/^taken: files \([0-9]*\) options \([0-9]*\)$/\1 \2/p' fuzz.log)
at_least 10 "$files" 'of the files were good'
at_least 1000 "$options" 'of the options were good'
finish
