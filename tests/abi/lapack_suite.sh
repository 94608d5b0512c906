#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# LAPACK's suite of one type in the current folder, several testers at once, the longest first. Usage:
# lapack_suite.sh <folder of Debian's liblapack-test> <testers at once> <library to preload into them> <s, d,
# c or z>. Leaves their outputs, and prints "<tests run> <numerical errors> <other errors>", the same counts
# as lapack_testing.py's.
set -u
from=$1 jobs=$2 preload=$3 p=$4
ln -sf "$from"/x* "$from"/*.in .

# xlintst reads 16 lines of sizes, then a line a group of routines. SLS is half of its calls and runs alone;
# the others run in two parts.
part() { { sed -n 1,16p "${p}test.in"; sed -n '17,$p' "${p}test.in" | grep "${@:2}"; } > "$1.in"; }
part test_ls -E '^.LS'
part test_qx -E '^.([TX]Q|TS|HH|Q[TX])'
part test_ab -vE '^.([TX]Q|TS|HH|Q[TX]|LS)'

tester() {      # <program> <input> <output>
    env LD_PRELOAD="$2" "./$1" < "$3" > "$4" 2> "$4.err" \
        || echo " ** $1 < $3 did not end well: illegal" >> "$4"
}
export -f tester
xargs -P "$jobs" -L 1 bash -c 'tester "$1" "$0" "$2" "$3"' "$preload" <<END
xlintst$p test_ls.in test_ls.out
xeigtst$p svd.in svd.out
xlintst$p test_ab.in test_ab.out
xeigtst$p ${p}gd.in gd.out
xlintst$p test_qx.in test_qx.out
xeigtst$p ${p}ec.in ec.out
xeigtst$p se2.in se2.out
xeigtst$p nep.in nep.out
xeigtst$p ${p}ed.in ed.out
xeigtst$p sep.in sep.out
xeigtst$p ${p}sg.in sg.out
xeigtst$p ${p}gg.in gg.out
xeigtst$p ${p}sb.in sb.out
xeigtst$p ${p}bb.in bb.out
xeigtst$p glm.in glm.out
xeigtst$p gqr.in gqr.out
xeigtst$p gsv.in gsv.out
xeigtst$p csd.in csd.out
xeigtst$p lse.in lse.out
xlintstrf$p ${p}test_rfp.in test_rfp.out
END

# A line of success says how many tests ran, one of failure how many of them failed.
cat ./*.out | awk '
    /run\)/ { for (i = 3; i <= NF; i++) if ($i == "run)") run += $(i - 2) }
    /out of/ { for (i = 2; i <= NF; i++) if ($i == "out") failed += $(i - 1) }
    /[Ii]llegal/ { other++ } / INFO/ { other++ }
    END { print run + 0, failed + 0, other + 0 }'
