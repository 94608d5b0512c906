#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# LAPACK's single-precision suite in the current folder, several testers at once, the longest first. Usage:
# lapack_suite.sh <folder of Debian's liblapack-test> <testers at once> <library to preload into them>. Leaves
# their outputs, and prints "<tests run> <numerical errors> <other errors>", the same counts as
# lapack_testing.py's.
set -u
from=$1 jobs=$2 preload=$3
ln -sf "$from"/x*s "$from"/*.in .

# xlintsts reads 16 lines of sizes, then a line a group of routines. SLS is half of its calls and runs alone;
# the others run in two parts.
part() { { sed -n 1,16p stest.in; sed -n '17,$p' stest.in | grep -E "$2"; } > "$1.in"; }
part stest_ls '^SLS'
part stest_qx '^(S[TX]Q|STS|SHH|SQ[TX])'
part stest_ab '^S([^LTXQH]|L[^S]|T[^QS]|Q[^TX])'

tester() {      # <program> <input> <output>
    env LD_PRELOAD="$2" "./$1" < "$3" > "$4" 2> "$4.err" \
        || echo " ** $1 < $3 did not end well: illegal" >> "$4"
}
export -f tester
xargs -P "$jobs" -L 1 bash -c 'tester "$1" "$0" "$2" "$3"' "$preload" <<'END'
xlintsts stest_ls.in stest_ls.out
xeigtsts svd.in ssvd.out
xlintsts stest_ab.in stest_ab.out
xeigtsts sgd.in sgd.out
xlintsts stest_qx.in stest_qx.out
xeigtsts sec.in sec.out
xeigtsts se2.in sse2.out
xeigtsts nep.in snep.out
xeigtsts sed.in sed.out
xeigtsts sep.in ssep.out
xeigtsts ssg.in ssg.out
xeigtsts sgg.in sgg.out
xeigtsts ssb.in ssb.out
xeigtsts sbb.in sbb.out
xeigtsts glm.in sglm.out
xeigtsts gqr.in sgqr.out
xeigtsts gsv.in sgsv.out
xeigtsts csd.in scsd.out
xeigtsts lse.in slse.out
xlintstrfs stest_rfp.in stest_rfp.out
END

# A line of success says how many tests ran, one of failure how many of them failed.
cat s*.out | awk '
    /run\)/ { for (i = 3; i <= NF; i++) if ($i == "run)") run += $(i - 2) }
    /out of/ { for (i = 2; i <= NF; i++) if ($i == "out") failed += $(i - 1) }
    /[Ii]llegal/ { other++ } / INFO/ { other++ }
    END { print run + 0, failed + 0, other + 0 }'
