#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs of many ranks, by the host alone and with the library preloaded: ScaLAPACK's PDGEMM in blocks of
512 and 64, and HPC Challenge's HPL, DGEMM and PTRANS, on a grid of 2 x 2. The ranks share the cores. Open
MPI and the programs come from .gpu-kit/mpi (`ci/gpu-kit mpi`). The host BLAS of both contenders is the
OpenBLAS in SciPy's wheel if there is one, and otherwise --host-blas.

Contenders: `host`; `gpublas`; `gpublas_1024` with GPUBLAS_PBLAS_BLOCK=1024. A row's seconds and gflops are
what the program itself says. gflops of stardgemm are those of one rank of four, on average. calls and
gpu_calls are of all ranks, from their reports, and belong to the whole program: the rows of one run of hpcc
have the same. right: `yes`; `no`; `late` (it was stopped) and `failed` have no figures.

HPL is smaller than --hpl where the host alone would take too long. The rest of HPC Challenge is smaller still
(--hpcc), because its random matrices take longer than its products. What there is no time for has no row.

--hpl-alone: nothing but HPL, of just --hpl rows. The host alone first tries 1, 4 and 16 ranks on --probe
rows, and the best of them with HPL's look-ahead (DEPTH = 1, `_depth1` in the contender's name). What won
runs on all rows, then the library in front of the grids of --ours: unless it is given, four ranks with the
host's DEPTH, one rank, four with the other DEPTH. The rows go behind those of --base, a CSV of earlier runs,
whose rows of the same sizes are left out.

Usage: ranks.py --library LIBGPUBLAS --kit FOLDER --host-blas LIBOPENBLAS [--csv FILE] [--seconds S]
                [--pdgemm N] [--hpl N] [--hpcc N] [--reports FOLDER]
                [--hpl-alone [--probe N] [--ours RANKS:DEPTH,...] [--base CSV]]
Exit code 1: a result is wrong, or a program ended or did not come back in time."""

import argparse
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time

RANKS = 4
GRIDS = {1: (1, 1), 2: (1, 2), 4: (2, 2), 8: (2, 4), 16: (4, 4)}  # rows and columns of HPL's processes
COLUMNS = "program,n,nb,ranks,contender,seconds,gflops,right,residual,calls,gpu_calls"
START_S = 5  # of a program
NUMBER_S = 6e-9  # that one of hpcc's random numbers takes
CORE = 2e9  # flops a second that a core has at the very least
OPTIONS = {"host": None, "gpublas": {}, "gpublas_1024": {"GPUBLAS_PBLAS_BLOCK": "1024"}}


def wheel_blas(folder):
    """A libblas.so.3 of the plain names, made of the OpenBLAS in SciPy's wheel, whose names begin with
    scipy_. It is reached by dlsym, because a reference to such a name would come to the preloaded library."""
    place = os.path.join(sysconfig.get_path("purelib"), "scipy.libs", "libscipy_openblas-*.so")
    found = glob.glob(place)
    if not (found and shutil.which("nm") and shutil.which("gcc")):
        return None
    listed = subprocess.run(["nm", "-D", "--defined-only", found[0]], capture_output=True, text=True)
    names = re.findall(r" T scipy_(\w+)$", listed.stdout, re.M)
    if "dgemm_" not in names or "cblas_dgemm" not in names:
        return None
    lines = ["#include <dlfcn.h>", "#include <stdlib.h>"]
    lines += ["__attribute__((visibility(\"hidden\"))) void *real_blas[%d];" % len(names)]
    lines += ["static const char *const names[] = {"] + [f'"scipy_{name}",' for name in names] + ["};"]
    lines += [
        "__attribute__((constructor)) static void find(void) {",
        f'    void *library = dlopen("{found[0]}", RTLD_NOW | RTLD_LOCAL);',
        "    if (!library) abort();",
        f"    for (int i = 0; i < {len(names)}; i++) real_blas[i] = dlsym(library, names[i]);",
        "}",
    ]
    for i, name in enumerate(names):
        lines += [f'__asm__(".globl {name}\\n.type {name},@function");']
        lines += [f'__asm__("{name}: jmp *real_blas+{8 * i}(%rip)");']
    source, made = os.path.join(folder, "blas.c"), os.path.join(folder, "libblas.so.3")
    with open(source, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    command = ["gcc", "-O1", "-w", "-shared", "-fPIC", "-Wl,-soname,libblas.so.3", source, "-ldl", "-o", made]
    return made if subprocess.run(command).returncode == 0 else None


def sum_of_product(n):
    """The sum of C as pdgemm.c makes it: over k, the sum of A's column times the sum of B's row."""
    of_a = [sum((i + 2 * k) % 7 for i in range(n)) for k in range(7)]
    of_b = [sum((3 * k + j) % 5 for j in range(n)) for k in range(5)]
    return sum(of_a[k % 7] * of_b[k % 5] for k in range(n))


class Bench:
    def __init__(self, arguments):
        self.arguments, self.faults, self.begin = arguments, 0, time.monotonic()
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = self.scratch.name
        self.rate = None  # the host's flops a second in PDGEMM
        kit = os.path.abspath(arguments.kit)
        blas = os.path.join(self.folder, "blas")
        os.mkdir(blas)
        host = wheel_blas(blas)
        host_blas = "the OpenBLAS in SciPy's wheel" if host else arguments.host_blas
        print("host BLAS:", host_blas)
        host = host or os.path.abspath(arguments.host_blas)
        for name in ("libblas.so.3", "liblapack.so.3", "libopenblas.so.0"):
            if not os.path.exists(os.path.join(blas, name)):
                os.symlink(host, os.path.join(blas, name))
        # LD_LIBRARY_PATH's own folders come last, because libcuda may be in one of them.
        path = [blas, kit + "/lib", os.path.dirname(kit), os.environ.get("LD_LIBRARY_PATH", "")]
        path[2:2] = glob.glob(os.path.dirname(kit) + "/usr/lib/*-linux-gnu")
        self.cores = len(os.sched_getaffinity(0))
        self.kit = kit
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("GPUBLAS_", "LD_"))}
        self.environment |= {
            "LD_LIBRARY_PATH": ":".join(path).strip(":"),
            "OPAL_PREFIX": kit,
            "OPAL_BINDIR": kit + "/bin",
            "OPAL_LIBDIR": kit + "/lib",
            "OPAL_PKGLIBDIR": kit + "/plugins",
            "OPAL_PKGDATADIR": kit + "/share",
            "OPAL_SYSCONFDIR": kit + "/etc",
            "PMIX_INSTALL_PREFIX": kit,
            "PMIX_MCA_mca_base_component_show_load_errors": "0",
            "HWLOC_PLUGINS_PATH": "/nowhere",
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "OMPI_MCA_hwloc_base_binding_policy": "none",
            "OMPI_MCA_plm": "isolated",
            "OMPI_MCA_pml": "ob1",
            "OMPI_MCA_btl": "self,vader",
            "OMPI_MCA_orte_tmpdir_base": self.folder,
        }
        if not os.access("/dev/shm", os.W_OK):
            self.environment["OMPI_MCA_btl_vader_backing_directory"] = self.folder
        header = os.environ.get("GPB_BENCH_HEADER")
        earlier = []
        if arguments.base and os.path.exists(arguments.base):
            with open(arguments.base, encoding="utf-8") as file:
                earlier = file.read().splitlines()
        self.csv = open(arguments.csv or os.devnull, "w", encoding="utf-8")
        if earlier:
            sizes = sorted({arguments.probe, arguments.hpl})
            again = re.compile(rf"hpl,({'|'.join(map(str, sizes))}),512,|# HPL of ")
            self.csv.writelines(row + "\n" for row in earlier if not again.match(row))
            said = f"# HPL of {' and '.join(map(str, sizes))}, the rows below: "
            said += (header or "another run").removeprefix("# ")
            self.csv.write(f"{said}; the host's BLAS: {os.path.basename(host_blas)}\n")
        else:
            self.csv.write((header + "\n" if header else "") + COLUMNS + "\n")

    def left(self):
        return self.arguments.seconds - (time.monotonic() - self.begin)

    def run(self, expected, contender, ranks, name, *words, **more):
        """The ranks of one program, in a folder of its own: what it printed (None: it did not end as it
        should), why not, the calls of all ranks and those on the GPU, and the folder. It is stopped when it
        has taken much longer than what is expected of the host alone."""
        folder = tempfile.mkdtemp(dir=self.folder)
        if "hpccinf" in more:
            with open(os.path.join(folder, "hpccinf.txt"), "w", encoding="utf-8") as file:
                file.write(more.pop("hpccinf"))
        more |= {
            "OPENBLAS_NUM_THREADS": str(max(1, self.cores // ranks)),
            "OMPI_MCA_mpi_yield_when_idle": str(int(self.cores < ranks)),
        }
        command = [self.kit + "/bin/mpirun", "-n", str(ranks)]
        if OPTIONS[contender] is not None:
            ours = {"LD_PRELOAD": self.arguments.library, "GPUBLAS_REPORT": folder + "/report.%p.json"}
            ours |= {k: v for k, v in os.environ.items() if k in ("GPUBLAS_OFFLOAD", "GPUBLAS_CALIBRATION")}
            command += ["env"] + [f"{k}={v}" for k, v in (ours | OPTIONS[contender]).items()]
        began, why = time.monotonic(), "failed"
        with open(folder + "/out", "w+", encoding="utf-8") as out:
            child = subprocess.Popen(
                command + [f"{self.kit}/bin/{name}", *map(str, words)],
                cwd=folder,
                env=self.environment | more,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
            try:
                code = child.wait(max(1, min(self.left(), self.arguments.late * expected)))
            except subprocess.TimeoutExpired:
                why, code = "late", 1
                child.send_signal(signal.SIGTERM)  # mpirun then ends its ranks
                try:
                    child.wait(10)
                except subprocess.TimeoutExpired:
                    child.kill()
            out.seek(0)
            said = out.read()
        if os.path.exists(folder + "/hpccoutf.txt"):
            with open(folder + "/hpccoutf.txt", encoding="utf-8") as opened:
                said += opened.read()
        counts = [0, 0]
        for report in glob.glob(folder + "/report.*.json"):
            with open(report, encoding="utf-8") as opened:
                try:
                    rows = json.load(opened)["calls"]
                except ValueError:  # its rank was stopped
                    continue
            counts[0] += sum(row["calls"] for row in rows)
            counts[1] += sum(row["gpu_calls"] for row in rows)
        print(f"{name} {' '.join(map(str, words))} {contender}: {time.monotonic() - began:.1f} s in all")
        if code:
            print(said[-2000:])
        return None if code else said, why, counts, folder

    def keep(self, name, folder):
        """The report of one rank, and what the program wrote."""
        if self.arguments.reports:
            some = sorted(glob.glob(folder + "/report.*.json"))[:1] + glob.glob(folder + "/hpccoutf.txt")
            for file in some:
                end = "json" if file.endswith("json") else "txt"
                with open(file, "rb") as source:
                    with open(f"{self.arguments.reports}/ranks-{name}.{end}", "wb") as target:
                        target.write(source.read())

    def row(self, program, n, nb, contender, seconds, gflops, right, residual, counts, ranks=RANKS):
        number = lambda x, digits: "" if x is None else f"{x:.{digits}f}"
        self.faults += right != "yes"
        values = [program, n, nb, ranks, contender, number(seconds, 3), number(gflops, 1), right]
        values += ["" if residual is None else residual]
        host = contender.startswith("host")
        values += ["", ""] if host else counts
        self.csv.write(",".join(map(str, values)) + "\n")
        self.csv.flush()
        on_gpu = "" if host else f"; {counts[1]} of {counts[0]} calls on the GPU"
        print(
            f"{program:10s} n {n:6d} nb {nb:4d} ranks {ranks:2d} {contender:14s} {number(seconds, 2):>8s} s "
            f"{number(gflops, 1):>8s} GFLOP/s, right: {right}{on_gpu}",
            flush=True,
        )

    def pdgemm(self, nb, contender):
        n = self.arguments.pdgemm
        expected = START_S + 2 * n**3 / self.rate if self.rate else self.left() / 2 / self.arguments.late
        if self.left() < expected:
            return print(f"pdgemm, nb {nb}, {contender}: no time left")
        said, why, counts, folder = self.run(expected, contender, RANKS, "pdgemm", n, nb)
        found = re.search(r"sum (\d+)\nseconds ([0-9.]+)", said or "")
        seconds = gflops = None
        if found:
            seconds = float(found[2])
            gflops = 2e-9 * n**3 / max(seconds, 1e-9)
            why = "yes" if int(found[1]) == sum_of_product(n) else "no"
            if contender == "host":
                self.rate = self.rate or gflops * 1e9
        self.row("pdgemm", n, nb, contender, seconds, gflops, why, None, counts)
        self.keep(f"pdgemm-{nb}-{contender}", folder)

    def cost(self, n, whole, ranks=RANKS):
        """What the host alone takes for HPL, whose matrix is made twice, and if `whole` for the two DGEMMs of
        hpcc, whose three matrices have the room of HPL's one, and for five tests of PTRANS."""
        flops, numbers = 2 / 3 * n**3, 2 * n**2
        if whole:
            flops += 2 * RANKS * 2 * (n * n / RANKS / 3) ** 1.5
            numbers += 2 * RANKS * 4 * n * n / RANKS / 3 + 5 * 2 * n * n / 4
        return START_S + flops / (self.rate or CORE * self.cores) + numbers / ranks * NUMBER_S

    def hpcc(self, n, nb, contender, whole, ranks=RANKS, depth=0, least=1):
        """GFLOP/s of HPL, 0 where there are none. `least`: for how much of what the host alone is expected to
        take there must be time."""
        expected, (p, q) = self.cost(n, whole, ranks), GRIDS[ranks]
        named = contender + (f"_depth{depth}" if depth else "")
        if self.left() < least * expected:
            print(f"hpl, n {n}, nb {nb}, {ranks} ranks, {named}: no time left")
            return 0
        # HPL.dat's lines and PTRANS's. But for DEPTH they are the defaults of both.
        lines = ["title", "author", "HPL.out", 8, 1, n, 1, nb, 0, 1]
        lines += [p, q, 16.0, 1, 2, 1, 4, 1, 2, 1, 1, 1, 1, 1, depth, 2, 64, 0, 0, 1, 8, "-", 0, 0, 0, 0]
        lines = "".join(f"{line}\n" for line in lines)
        more = {} if whole else {"HPL_ALONE": "1"}
        said, why, counts, folder = self.run(expected, contender, ranks, "hpcc", hpccinf=lines, **more)
        said = said or ""
        hpl = re.search(rf"^W[RC]\w+ +\d+ +\d+ +{p} +{q} +([0-9.]+) +([0-9.e+-]+)$", said, re.M)
        check = re.search(r"^\|\|Ax-b.*= +([0-9.e+-]+|nan|inf) \.+ (\w+)$", said, re.M)
        seconds = gflops = residual = None
        if hpl and check:
            seconds, gflops, residual = float(hpl[1]), float(hpl[2]), check[1]
            why = "yes" if check[2] == "PASSED" else "no"
        self.row("hpl", n, nb, named, seconds, gflops, why, residual, counts, ranks)
        self.keep(f"{'hpcc' if whole else 'hpl'}-{n}-{nb}-{ranks}-{named}", folder)
        if whole and said:
            self.rest(contender, said, counts)
        return gflops if why == "yes" else 0

    def rest(self, contender, said, counts):
        """The rows of hpcc's DGEMM and PTRANS."""
        value = {k: float(v) for k, v in re.findall(r"^(\w+)=([0-9.e+-]+)$", said, re.M)}
        residuals = re.findall(r"^Scaled residual: ([0-9.e+-]+|nan|inf)", said, re.M)
        size = int(value.get("DGEMM_N", 0))
        for what in ("Star", "Single"):
            gflops = value.get(what + "DGEMM_Gflops", 0)
            near = [r for r in residuals if float(r) < 16]
            right = "yes" if gflops > 0 and residuals and len(near) == len(residuals) else "no"
            seconds = 2e-9 * size**3 / gflops if gflops > 0 else None
            worst = max(residuals, key=float, default=None)
            self.row(what.lower() + "dgemm", size, 0, contender, seconds, gflops, right, worst, counts)
        right = "yes" if re.search(r"[1-9]\d* tests completed and passed", said) else "no"
        right = "no" if re.search(r"[1-9]\d* tests completed and failed", said) else right
        seconds = value.get("PTRANS_time")
        self.row(
            "ptrans",
            int(value.get("PTRANS_n", 0)),
            int(value.get("PTRANS_nb", 0)),
            contender,
            seconds,
            None,
            right,
            value.get("PTRANS_residual"),
            counts,
        )

    def hpl_alone(self):
        n, probe, best = self.arguments.hpl, min(self.arguments.probe, self.arguments.hpl), (0, RANKS, 0)
        for ranks in (r for r in (1, 4, 16) if r <= max(RANKS, self.cores)):
            best = max(best, (self.hpcc(probe, 512, "host", False, ranks), ranks, 0))
            self.rate = 1e9 * best[0] or None
        if best[1] > 1:  # on one rank nothing is sent that could be hidden
            best = max(best, (self.hpcc(probe, 512, "host", False, best[1], 1), best[1], 1))
        of_all = self.hpcc(n, 512, "host", False, *best[1:], least=0.6)  # a larger n is faster
        self.rate = 1e9 * of_all or self.rate
        ours = self.arguments.ours or f"4:{best[2]},1:0,4:{1 - best[2]}"
        for word in ours.split(","):
            ranks, depth = map(int, word.split(":"))
            self.hpcc(n, 512, "gpublas", False, ranks, depth, least=0.4)


def everything(bench, arguments):
    for contender in ("host", "gpublas_1024", "gpublas"):
        bench.pdgemm(512, contender)
        if not bench.rate:
            sys.exit("the host alone could not do it: nothing more is run")
    n = arguments.hpl
    while n > 4000 and bench.cost(n, False) > bench.left() / 2.2:
        n -= 2000
    for contender in ("host", "gpublas"):
        bench.hpcc(n, 512, contender, False)
    for contender in ("host", "gpublas_1024", "gpublas"):
        bench.pdgemm(64, contender)
    for contender in ("host", "gpublas"):
        bench.hpcc(min(n, arguments.hpcc), 512, contender, True)
    for nb, contender in ((1024, "gpublas"), (256, "gpublas"), (256, "host")):
        bench.hpcc(n, nb, contender, False)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--library", required=True, type=os.path.abspath)
    parser.add_argument("--kit", required=True)
    parser.add_argument("--host-blas", required=True)
    parser.add_argument("--csv")
    parser.add_argument("--seconds", type=float, default=400)
    parser.add_argument("--late", type=float, default=3, help="times what the host is expected to take")
    parser.add_argument("--pdgemm", type=int, default=20000)
    parser.add_argument("--hpl", type=int, default=40000)
    parser.add_argument("--hpcc", type=int, default=16000)
    parser.add_argument("--reports")
    parser.add_argument("--hpl-alone", action="store_true")
    parser.add_argument("--probe", type=int, default=12000)
    parser.add_argument("--ours")
    parser.add_argument("--base")
    arguments = parser.parse_args()
    if not os.path.exists(arguments.kit + "/bin/mpirun"):
        sys.exit(f"no {arguments.kit}: `ci/gpu-kit mpi` makes it, on Debian 12")
    if not os.path.isfile(arguments.library):
        sys.exit("no library: build it first")
    bench = Bench(arguments)
    if arguments.hpl_alone:
        bench.hpl_alone()
    else:
        everything(bench, arguments)
    bench.csv.close()
    print(f"{time.monotonic() - bench.begin:.0f} s, {bench.faults} faults")
    return bench.faults != 0


if __name__ == "__main__":
    sys.exit(main())
