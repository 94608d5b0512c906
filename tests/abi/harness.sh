# SPDX-License-Identifier: MIT
# Sourced by every tests/abi/test_*.sh: finds the library under test and the software libcuda, makes a scratch
# folder, and defines ok, fail, skip. Usage of each test: test_x.sh <libgpublas.so> <folder with the fake
# libcuda.so.1> [its own arguments]. Exits with 0 (pass), 1 (fail) or 77 (skip).
set -u
export LC_ALL=C OPENBLAS_NUM_THREADS=1 BLIS_NUM_THREADS=1 OMP_NUM_THREADS=1
for name in $(compgen -e GPUBLAS_); do unset "$name"; done
unset LD_PRELOAD LD_LIBRARY_PATH

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
programs=$here/../programs
library=$(realpath "${1:?the path of libgpublas.so}")
fake=$(realpath "${2:?the folder of the fake libcuda.so.1}")
debian=/usr/lib/$(gcc -print-multiarch)
python=/usr/bin/python3
scratch=$(mktemp -d "${TMPDIR:-/tmp}/gpublas.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1

failures=0
ok()   { printf 'ok    %s\n' "$*"; }
fail() { printf 'FAIL  %s\n' "$*"; failures=$((failures + 1)); }
skip() { printf 'SKIP  %s\n' "$*"; exit 77; }
finish() { exit $((failures > 0)); }

# need <file> ...: skips unless the files are there. ci/setup installs what has them.
need() { local file; for file; do [ -e "$file" ] || skip "no $file (ci/setup installs it)"; done; }

# of_today <value ...>: prints the one whose turn it is, by the day's number, so that as many days in a row as
# there are values have all. GPB_TEST_SEED: another day; GPB_TEST_LARGE=1: all, a line each.
of_today() {
    local day=${GPB_TEST_SEED:-$(($(date +%s) / 86400))}
    if [ -n "${GPB_TEST_LARGE:-}" ]; then printf '%s\n' "$@"; else shift $((day % $#)); echo "$1"; fi
}

# expect <what> <wanted> <found>
expect() { if [ "$2" = "$3" ]; then ok "$1: $3"; else fail "$1: wanted '$2', found '$3'"; fi; }

# at_least <least> <number> <what>
at_least() { if [ "${2:-0}" -ge "$1" ]; then ok "$2 $3"; else fail "$2 $3, fewer than $1"; fi; }

# build <output> <compiler and arguments>: a program that does not build is a failure, not a skip.
build() {
    local output=$1; shift
    "$@" -o "$output" > "$output.log" 2>&1 && return
    fail "does not build: $*"
    cat "$output.log"
    return 1
}

# The folder of a host BLAS's libblas.so.3, by name.
host_folder() {
    case $1 in
        netlib)   echo "$debian/blas" ;;
        openblas) echo "$debian/openblas-pthread" ;;
        blis)     echo "$debian/blis-pthread" ;;
    esac
}

# on_host <netlib|openblas|blis> <command>: runs it in front of that BLAS, without us.
on_host() { local folder; folder=$(host_folder "$1"); shift; LD_LIBRARY_PATH=$folder "$@"; }

# preloaded <netlib|openblas|blis> <command>: the same with us in front, and every call offloaded to the fake
# GPU. More to preload goes into the variable `beside`.
preloaded() {
    local folder; folder=$(host_folder "$1"); shift
    env GPUBLAS_OFFLOAD="${offload:-always}" LD_LIBRARY_PATH="$folder:$fake" \
        LD_PRELOAD="$library${beside:+:$beside}" "$@"
}

# traced <file> [text]: how many calls the trace in that file shows on the GPU, of those whose line has the
# text.
traced() { grep '^gpublas: .* route=gpu ' "$1" | grep -cF -- "${2:-}"; }

# known <what> <wanted> <found>: a fault that is known and not repaired yet. It is printed but is no failure.
# Once it is repaired, use expect.
known() {
    if [ "$2" = "$3" ]; then
        ok "$1: $3 (no longer a known fault)"
    else
        printf 'KNOWN %s: wanted %s, found %s\n' "$1" "'$2'" "'$3'"
    fi
}
