#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The installed tree: pkg-config, find_package(gpublas), FindBLAS with our name, and the exported names; the
# program gpublas. The build folder is the library's.
. "$(dirname "$0")/harness.sh"
root=$(realpath "$here/../..")
prefix=$scratch/prefix
if ! cmake --install "$(dirname "$library")" --prefix "$prefix" > install.log 2>&1; then
    fail 'cmake --install'
    cat install.log
    finish
fi
installed=$(find "$prefix" -name libgpublas.so)
libraries=$(dirname "$installed")
if [ -f "$prefix/include/gpublas.h" ]; then ok include/gpublas.h; else fail 'no include/gpublas.h'; fi
export LD_LIBRARY_PATH=$libraries:$debian/blas

build netlib gcc -std=c11 -D_GNU_SOURCE -O2 "$programs/linked.c" -L"$debian/blas" -lblas -lm
./netlib > plain.out
right() {
    if "./$1" > "$1.out" 2> "$1.err" && cmp plain.out "$1.out"; then ok "$1: links and runs"
    else fail "$1"; head -5 "$1.err"; fi
}

# -lgpublas, by hand and by pkg-config
build by_hand gcc -std=c11 -D_GNU_SOURCE -O2 "$programs/linked.c" -I"$prefix/include" -L"$libraries" \
    -lgpublas -lm && right by_hand
export PKG_CONFIG_PATH=$libraries/pkgconfig
build by_pkg_config gcc -std=c11 -D_GNU_SOURCE -O2 "$programs/linked.c" \
    $(pkg-config --cflags --libs gpublas) -lm && right by_pkg_config
expect 'version' "$(sed -n 's/^#define GPUBLAS_VERSION "\(.*\)"/\1/p' "$prefix/include/gpublas.h")" \
    "$(pkg-config --modversion gpublas)"

# CMake: our package, and CMake's FindBLAS with BLAS_LIBRARIES
mkdir package blas
cat > package/CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(uses C)
find_package(gpublas 0.1 CONFIG REQUIRED)
add_executable(uses ${SOURCE})
target_compile_definitions(uses PRIVATE _GNU_SOURCE)
target_link_libraries(uses gpublas::gpublas m)
CMAKE
sed 's/find_package.*/find_package(BLAS REQUIRED)/; s/gpublas::gpublas/BLAS::BLAS/' package/CMakeLists.txt \
    > blas/CMakeLists.txt
for way in package blas; do
    case $way in
        package) option=-DCMAKE_PREFIX_PATH=$prefix ;;
        blas)    option=-DBLAS_LIBRARIES=$installed ;;
    esac
    if cmake -S $way -B $way/build "$option" -DSOURCE="$programs/linked.c" > $way.log 2>&1 \
        && cmake --build $way/build >> $way.log 2>&1; then
        cp $way/build/uses by_cmake_$way && right by_cmake_$way
        if ldd $way/build/uses | grep -q libgpublas; then
            ok "by_cmake_$way needs libgpublas"
        else
            fail "by_cmake_$way does not need libgpublas"
        fi
    else
        fail "find_package, $way"
        tail -20 $way.log
    fi
done

# A program of the public header alone, in C and C++
printf '#include <gpublas.h>\n#include <stdio.h>\nint main(void) { puts(gpublas_version()); return 0; }\n' \
    > version.c
cp version.c version.cpp
build version_c gcc version.c $(pkg-config --cflags --libs gpublas) \
    && expect 'C' "$(pkg-config --modversion gpublas)" "$(./version_c)"
build version_cpp g++ version.cpp $(pkg-config --cflags --libs gpublas) \
    && expect 'C++' "$(pkg-config --modversion gpublas)" "$(./version_cpp)"

# The program: it finds its modules and its library, wherever the tree is moved to and by whatever link
program() { GPUBLAS_CALIBRATION=off "$@"; }
expect 'gpublas --version' "gpublas $(pkg-config --modversion gpublas)" "$("$prefix/bin/gpublas" --version)"
program "$prefix/bin/gpublas" run -q ./by_hand > run.out
expect 'gpublas run' same "$(cmp run.out by_hand.out && echo same)"
for file in man/man1/gpublas.1 bash-completion/completions/gpublas zsh/site-functions/_gpublas; do
    if [ -s "$prefix/share/$file" ]; then ok "$file"; else fail "no $file"; fi
done
mkdir elsewhere && cp -a "$prefix" elsewhere/tree && ln -s "$PWD/elsewhere/tree/bin/gpublas" link
expect 'gpublas, moved' "$(realpath elsewhere/tree)" "$(program ./link info --json |
    "$python" -c 'import json, sys; print(json.load(sys.stdin)["path"].split("/lib")[0])')"
expect 'nothing was written there' '' "$(find "$prefix" elsewhere -name '__pycache__')"

# What it exports and needs, and what it prints when it is run
if "$root/ci/exports" "$installed"; then ok 'exports and needs'; else fail 'exports and needs'; fi
"$installed" > doctor.out 2> doctor.err
expect 'the doctor: exit, lines on stderr' '0 0' "$? $(wc -l < doctor.err)"
expect 'the doctor: its verdict comes first' 1 \
    "$(head -1 doctor.out | grep -cE '^(works: GPU|no GPU here: calls go to) ')"
expect 'the doctor: it says no more than eleven lines' yes "$([ "$(wc -l < doctor.out)" -lt 12 ] && echo yes)"
expect 'the doctor, --all: kernels' 1 "$("$installed" --all | grep -c '^ 1 s naive ')"
expect 'the doctor, --help: options' 1 "$("$installed" --help | grep -c '^GPUBLAS_OFFLOAD ')"
"$installed" --what > doctor.out 2> doctor.err
expect 'the doctor, an unknown argument: exit, stdout, stderr' '2 0 1' \
    "$? $(wc -l < doctor.out) $(wc -l < doctor.err)"
finish
