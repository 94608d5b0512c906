#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the same sources in other ways, named by the arguments after the second (none: all), with
# warnings as errors. Then runs that build's own tests that need no GPU, and the programs of semantics on its
# fake GPU. Kernels are not compiled again. The variants:
#   clang    another reading of C, optimized as users have it: all tests, with fewer repeats (GPB_TEST_FEW)
#   address  AddressSanitizer and UBSan: all tests, with fewer repeats if these only repeat; the embedded BLAS
#   thread   ThreadSanitizer: tests with threads, with fewer repeats; if a test has both, on a GPU that works
#            by itself (FAKECUDA_ENGINE)
#   no_cuda  the library without CUDA, as the programs below see it; the tests of its parts are the main
#            build's. Once more from a copy of the sources in another folder: the same bytes
#   today    address, thread, or the two others, by the day, because all are a fifth of all tests' time and
#            repeat tests of the main build. GPB_TEST_SEED: another day; GPB_TEST_LARGE=1: all
# test_kernels and test_special run in s alone, because four types took 25 minutes under the sanitizers; fuzz
# and the other tests have all types. AddressSanitizer has all problems of test_kernels for one kernel of each
# form, because all kernels took eight minutes, and a few for the others. How exact sums are
# (test_accuracy_tensor_64 and _128) is arithmetic of the software libcuda, so only the main build tests it.
. "$(dirname "$0")/harness.sh"
source=$(realpath "$here/../..") main_build=$(dirname "$library")
images=$main_build/images
[ -d "$images" ] || images=$(sed -n 's/^GPUBLAS_IMAGES:PATH=//p' "$main_build/CMakeCache.txt")
need "$images" "$debian/blas/libblas.so.3"
include=$(sed -n 's/^GPUBLAS_CUDA_\(INCLUDE\|H\):PATH=\(.*\)$/\2/p' "$main_build/CMakeCache.txt" |
    grep . | head -1)
cuda="-DGPUBLAS_IMAGES=$images -DGPUBLAS_CUDA_INCLUDE=$include"

export ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1 \
    TSAN_OPTIONS=halt_on_error=0:exitcode=66

# The test programs of the build in that folder that its variant runs, all but those tests. Those in C++ no C
# compiler changes.
test_programs() {
    ctest --test-dir "$1" -N -R '^test_' -E "$2" | sed -nE 's/.*: (test_[a-z_0-9]+)$/\1/p' \
        | sed -E 's/_(fake|engine|gpu)$//; s/^test_accuracy_(tensor|large).*/test_accuracy/' | sort -u
}

# tests <name> <folder> <tests> <except those> [few]: runs them; with `few`, with fewer repeats
tests() {
    if env GPB_TEST_TYPES=s ${5:+GPB_TEST_FEW=1} \
        ctest --test-dir "$2" -R "$3" -E "$4" --no-tests=error --output-on-failure \
        > ctest.log 2>&1; then
        ok "$1: $(grep 'tests passed' ctest.log)"
    else
        fail "$1: ctest"
        tail -60 ctest.log
    fi
}

# The library of that build again, from a copy of the sources in another folder. Both have debug information,
# which names folders; the code alone names none.
reproduce() {
    mkdir -p elsewhere/deep
    cp -r "$source"/{CMakeLists.txt,src,dispatch,include,kernels,README.md,LICENSE,CHANGELOG.md,SECURITY.md} \
        elsewhere/deep
    if cmake -S elsewhere/deep -B elsewhere/build "${@:2}" -DBUILD_TESTING=OFF > again.log 2>&1 \
        && cmake --build elsewhere/build --target gpublas >> again.log 2>&1
    then
        expect 'debug information there' yes \
            "$(readelf -S "$1/libgpublas.so" | grep -q debug_info && echo yes)"
        expect 'built in another folder' 'the same bytes' \
            "$(cmp "$1/libgpublas.so" elsewhere/build/libgpublas.so 2>&1 && echo the same bytes)"
    else
        fail 'built in another folder'
        tail -20 again.log
    fi
}

variant() {
    local name=$1 folder=$main_build/variant/$1 compiler=gcc options=$cuda compile= strict=strict checks=53
    local not='_(gpu|engine)$|accuracy_tensor_(64|128)' beside='fakecuda fuzz' program right
    case $name in
        clang)
            # The software libcuda's own tests are arithmetic, too.
            compiler=clang not+='|fakecuda_(kernels|sliced|streamk)'
            beside='fakecuda fuzz soak bench fakecublas fakenvml timeline accuracy_search' ;;
        address)
            options="$cuda -DGPUBLAS_SANITIZE=address"
            compile="-fsanitize=address,undefined -fno-sanitize-recover=undefined" ;;
        thread)
            options="$cuda -DGPUBLAS_SANITIZE=thread" compile=-fsanitize=thread
            # They run beside a GPU at work, as *_engine.
            not='_gpu$|(operands|panels|threads|symmetric|other_triangle)_fake'
            not+='|copy2d|staging|plan|learn|routing|machine_file|kernel_table'
            not+='|kernel_pick|start$|repair|reference|triangular|verify|history_file'      # one thread each
            not+='|sample|digest|fakecuda_(kernels|sliced|solve|streamk)|kernels_fake|special|accuracy'
            not+='|strips' ;;         # the threads of panels and operands, with more to copy
        no_cuda)
            options='-DGPUBLAS_CUDA=OFF -DCMAKE_C_FLAGS=-g' strict= checks=44 beside= not=. ;;
        *)
            fail "no variant $name"
            return ;;
    esac
    need "/usr/bin/$compiler"
    # Compiles in half the time.
    case $name in address | thread) options="$options -DCMAKE_C_FLAGS_RELEASE=-O1" ;; esac
    if ! cmake -S "$source" -B "$folder" -DCMAKE_C_COMPILER=$compiler $options -DGPUBLAS_WERROR=ON \
        > configure.log 2>&1; then
        fail "$name: configure"
        tail -20 configure.log
        return
    fi
    if ! cmake --build "$folder" --target gpublas $beside $(test_programs "$folder" "$not") \
        > build.log 2>&1; then
        fail "$name: build"
        grep -E 'error|warning' build.log | head -20
        tail -5 build.log
        return
    fi
    ok "$name: builds with no warning"

    case $name in
        clang | thread)
            tests "$name" "$folder" '^test_' "$not" few ;;
        address)
            tests "$name" "$folder" '^test_' "$not|repeat|accuracy|kernels_fake|special"
            tests "$name" "$folder" '^test_(repeat|accuracy|kernels_fake|special)' "$not" few
            LD_LIBRARY_PATH=$folder/fakecuda GPUBLAS_CALIBRATION=off GPB_TEST_TYPES=s timeout 900 \
                "$folder/test_kernels" padded float4 ffma fp16x3 tf32x3_thin > kernels.out 2>&1
            expect 'address: a kernel of each form, all problems: exit, tests' '0 5' \
                "$? $(grep -c '^\[       OK \]' kernels.out)" ;;
    esac

    for program in semantics extensions; do
        build $program $compiler -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror $compile \
            "$programs/$program.c" "$folder/libgpublas.so" -Wl,-rpath,"$folder" -lm -lpthread || continue
        LD_LIBRARY_PATH=$folder/fakecuda GPUBLAS_HOST_BLAS=$debian/blas/libblas.so.3 GPUBLAS_OFFLOAD=always \
            timeout 900 ./$program $strict > $program.out 2> $program.err
        expect "$name: $program: exit" 0 $?
        right=$(grep -c '^right ' $program.out)
        case $program in
            semantics) expect "$name: $program: checks right" $checks "$right" ;;
            *)         expect "$name: $program: checks right" 32 "$right" ;;
        esac
        grep '^WRONG' $program.out
        if grep -E 'ERROR: |WARNING: ThreadSanitizer|runtime error' $program.err; then
            fail "$name: $program"
            head -60 $program.err
        fi
    done
    if [ "$name" = address ]; then
        GPUBLAS_HOST_BLAS=embedded GPUBLAS_OFFLOAD=never timeout 900 ./semantics strict > embedded.out \
            2> embedded.err
        expect "address: semantics by the embedded BLAS: exit, checks right" "0 $checks" \
            "$? $(grep -c '^right ' embedded.out)"
        grep -E '^WRONG' embedded.out
        grep -E 'ERROR: |runtime error' embedded.err
    fi
    if [ "$name" != no_cuda ]; then
        build storm $compiler -std=c11 -D_GNU_SOURCE -O1 -g $compile "$programs/storm.c" \
            "$folder/libgpublas.so" -Wl,-rpath,"$folder" -lpthread
        export LD_LIBRARY_PATH=$folder/fakecuda GPUBLAS_HOST_BLAS=$debian/blas/libblas.so.3 \
            GPUBLAS_OFFLOAD=always
        # dl_iterate_phdr's data is guarded by a lock inside ld.so, which ThreadSanitizer does not see.
        printf 'race:%s\n' note_names note_object > unseen
        TSAN_OPTIONS=$TSAN_OPTIONS:suppressions=$PWD/unseen timeout 300 ./storm threads 3 > storm.out \
            2> storm.err
        expect "$name: 64 threads: exit, wrong" '0 wrong 0' "$? $(cat storm.out)"
        timeout 300 "$folder/fuzz" 2 20000 > fuzz.out 2> fuzz.err
        expect "$name: fuzz: exit" 0 $?
        grep -h WRONG fuzz.out
        if cat storm.err fuzz.err | grep -E 'ERROR: |WARNING: ThreadSanitizer|runtime error'; then
            fail "$name: storm or fuzz"
            head -60 storm.err fuzz.err
        fi
        unset LD_LIBRARY_PATH GPUBLAS_HOST_BLAS GPUBLAS_OFFLOAD
    fi
    if [ "$name" = no_cuda ]; then
        if "$folder/libgpublas.so" | grep -q 'CUDA'; then ok 'no_cuda: the doctor says so'
        else fail 'no_cuda: the doctor does not say that CUDA lacks'; fi
        reproduce "$folder" -DCMAKE_C_COMPILER=$compiler $options -DGPUBLAS_WERROR=ON
    fi
}

shift 2
[ $# -gt 0 ] || set -- clang address thread no_cuda
[ "$1" != today ] || set -- $(of_today address thread 'clang no_cuda')
for name; do variant "$name"; done
finish
