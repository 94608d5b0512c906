# SPDX-License-Identifier: MIT
"""gpublas run: a program with the library in front of its BLAS, and what came of it."""
import glob
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

from . import elf
from .library import Failure
from .terminal import seconds, table

# A program that cannot be started: as the shell, env and nohup say it.
CANNOT_RUN, NOT_FOUND = 126, 127


def whole(command):
    """The command line, with Python before a script that is not executable."""
    script = command[0].endswith(".py") and os.path.isfile(command[0]) and not shutil.which(command[0])
    return [sys.executable] * script + command


def find(program):
    """The file that would be run."""
    path = shutil.which(program)
    if path:
        return path
    if os.path.isdir(program) or os.path.exists(program):
        raise Failure(f"{program}: not a program that may be run", CANNOT_RUN)
    raise Failure(f"{program}: no such program", NOT_FOUND)


def find_loaded(path, depth=0):
    """The ELF file that is loaded for it: of a script its interpreter, through `env` as well. None:
    unknown."""
    try:
        with open(path, "rb") as file:
            line = file.readline(512)
    except OSError:
        return None
    if not line.startswith(b"#!"):
        return path
    words = [word for word in os.fsdecode(line[2:]).split() if "=" not in word]
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if not word.startswith("-")]
    found = shutil.which(words[0]) if words else None
    return find_loaded(found, depth + 1) if found and depth < 4 else found


def is_privileged(path):
    """Set-user-ID or the like for this user: the dynamic linker then ignores LD_PRELOAD."""
    status = os.stat(path)
    if status.st_mode & stat.S_ISUID and status.st_uid != os.getuid():
        return "set-user-ID"
    if status.st_mode & stat.S_ISGID and status.st_gid not in (os.getgid(),):
        return "set-group-ID"
    try:
        if os.getuid() and os.getxattr(path, "security.capability"):
            return "with capabilities of its own"
    except OSError:
        pass
    return None


def list_libraries(file):
    """The libraries that come with the program, as its own dynamic linker lists them. Nothing of it is
    run."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    try:
        listed = subprocess.run([file.interpreter, "--list", file.path], env=environment,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=20,
                                check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    paths = [line.split(" => ")[-1].rsplit(" (", 1)[0].strip() for line in os.fsdecode(listed).splitlines()]
    return [path for path in paths if path.startswith("/")]


def read(path):
    try:
        return elf.File(path)
    except elf.Unreadable:
        return None


class Findings:
    """What can be told of a program before it runs. names: what the library exports."""

    def __init__(self, names):
        self.names, self.warnings, self.wanted, self.hosts = names, [], {}, []

    def look_at_library(self, path):
        file = read(path)
        if not file or os.path.basename(path).startswith("libgpublas.so"):
            return
        base, own = os.path.basename(path), file.defined & self.names
        wanted = file.used & self.names
        if wanted:
            self.wanted[path] = wanted
        if not own:
            return
        self.hosts.append(path)
        protected = file.protected & self.names
        if protected:
            self.warnings.append(f"{base} has a BLAS with protected symbols ({some(protected)}): its own "
                                 "calls of them cannot be intercepted, those of others can")
        elif file.symbolic:
            self.warnings.append(f"{base} has a BLAS and is linked with -Bsymbolic: its own calls of it "
                                 f"({some(own)}) cannot be intercepted, those of others can")
        if "mkl" in base:
            self.warnings.append(f"{base}: what MKL calls inside MKL cannot be intercepted; calls of its "
                                 "BLAS by name can")

    def look_at(self, program):
        """False: the library will not be loaded at all."""
        loaded = find_loaded(program)
        file = read(loaded) if loaded else None
        privileged = is_privileged(loaded) if loaded else None
        if privileged:
            self.warnings.append(f"{loaded} is {privileged}: the dynamic linker ignores LD_PRELOAD there")
        if not file:
            return not privileged
        if not file.machine_fits:
            self.warnings.append(f"{loaded} is not an x86-64 program: the library cannot be loaded there")
            return False
        if file.static:
            self.warnings.append(f"{loaded} is static: it has no dynamic linker, so nothing can be preloaded")
            return False
        inside = (file.inside | file.defined) & self.names
        if inside:
            self.warnings.append(f"{loaded} has a BLAS of its own inside ({some(inside)}): calls of it "
                                 "cannot be intercepted")
        if file.used & self.names:
            self.wanted[loaded] = file.used & self.names
        for path in list_libraries(file):
            self.look_at_library(path)
        return not privileged


def some(names):
    names = sorted(names)
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT, signal.SIGQUIT)
TAKEN = PASSED_ON + (signal.SIGCHLD,)


def watch(process, seen):
    """Waits for the process. Signals that come here go to it, but those of the terminal, which it gets by
    itself. Notes meanwhile which libraries it opens, because what dlopen brings (NumPy's BLAS) is in no
    list; looks seldom once the program has run for a while."""
    pause = 0.02
    while process.poll() is None:
        came = signal.sigtimedwait(TAKEN, pause)
        if came:
            terminals = came.si_signo in (signal.SIGINT, signal.SIGQUIT) and came.si_code > 0
            if came.si_signo in PASSED_ON and not terminals:
                process.send_signal(came.si_signo)
            continue
        pause = min(2 * pause, 5)
        try:
            with open(f"/proc/{process.pid}/maps", encoding="utf-8", errors="surrogateescape") as maps:
                seen |= {line.split(None, 5)[5].rstrip("\n") for line in maps
                         if line.count("/") and ".so" in line}
        except (OSError, IndexError):
            pass
    return process.returncode


def execute(command, environment, seen):
    """The program's exit status. Signals are blocked here and taken one by one. A handler would not know who
    sent them, and the program would no longer ignore what nohup or a shell made it ignore."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, TAKEN)
    # Where SIGCHLD is ignored the kernel keeps no exit status.
    kept = signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    def begin():
        """In the child: it starts as it would without us."""
        signal.signal(signal.SIGCHLD, kept)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        status = watch(subprocess.Popen(command, env=environment, close_fds=False, preexec_fn=begin), seen)
    except OSError as error:
        raise Failure(f"{command[0]}: {error.strerror}", CANNOT_RUN) from error
    finally:
        while signal.sigtimedwait(TAKEN, 0):                # The ^C that ended the program is no error here.
            pass
        signal.signal(signal.SIGCHLD, kept)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return status if status >= 0 else 128 - status


def read_reports(pattern, since):
    """The reports that the program's processes wrote since then. pattern: with %p for the process's
    number."""
    reports = []
    for path in sorted(glob.glob("*".join(glob.escape(part) for part in pattern.split("%p")))):
        try:
            if os.stat(path).st_mtime < since:
                continue
            with open(path, encoding="utf-8") as file:
                reports.append(json.load(file))
        except (OSError, ValueError):
            pass
    return reports


SUMS = ("calls", "gpu_calls", "host_calls", "failed_calls", "gpu_seconds", "host_seconds", "saved_seconds")


def sum_up(reports):
    """By routine: its amounts, and its reasons against the GPU."""
    routines = {}
    for report in reports:
        for line in report["calls"]:
            sums = routines.setdefault(line["routine"], dict.fromkeys(SUMS, 0.0) | {"reasons": {}})
            for name in SUMS:
                sums[name] += line[name]
            for reason, calls in line["reasons"].items():
                sums["reasons"][reason] = sums["reasons"].get(reason, 0) + calls
    return dict(sorted(routines.items(), key=lambda item: -item[1]["gpu_seconds"] - item[1]["host_seconds"]))


def count_symbols(reports):
    """Calls by exported name, the most often called first."""
    symbols = {}
    for report in reports:
        for name, calls in report.get("symbols", {}).items():
            symbols[name] = symbols.get(name, 0) + calls
    return dict(sorted(symbols.items(), key=lambda item: -item[1]))


def tabulate(routines):
    rows = [("routine", "calls", "on GPU", "on host", "failed", "GPU time", "host time", "saved",
             "why not on the GPU, most often")]
    for name, sums in routines.items():
        reason = max(sums["reasons"], key=sums["reasons"].get) if sums["reasons"] else "-"
        rows.append((name, *(f"{sums[column]:.0f}" for column in SUMS[:4]), seconds(sums["gpu_seconds"]),
                     seconds(sums["host_seconds"]), seconds(sums["saved_seconds"]), reason))
    return table(rows, "lrrrrrrrl")


def guess(findings, seen, status):
    """Why no call came, as far as it can be told."""
    if status > 128:
        return [f"no report: the program ended by signal {status - 128}, or as if by one"]
    remarks = ["no call came through our doors: the program made none, or ended by _exit, or its BLAS "
               "cannot be intercepted"]
    remarks += [f"{path} wants of a BLAS: {some(wanted)}" for path, wanted in findings.wanted.items()]
    later = Findings(findings.names)
    for path in sorted(seen - set(findings.hosts) - set(findings.wanted)):
        later.look_at_library(path)
    remarks += later.warnings
    remarks += [f"{path}, which was opened later, has a BLAS: if it was opened with RTLD_DEEPBIND, "
                "its users do not come to us" for path in later.hosts]
    if not findings.wanted and not later.hosts and not later.wanted and not findings.hosts:
        remarks.append(f"nothing that it loaded wants or has any of the {len(findings.names)} names that "
                       "the library exports")
    return remarks


def summarise(reports, findings, seen, status, terminal):
    routines = sum_up(reports)
    if not routines:
        for remark in guess(findings, seen, status):
            terminal.say(remark)
        return
    processes = f"{len(reports)} process{'es' if len(reports) > 1 else ''}"
    terminal.say(f"doors that were reached, by {processes}:\n{tabulate(routines)}")
    symbols = ", ".join(f"{name} {calls:.0f}" for name, calls in count_symbols(reports).items())
    if symbols:
        terminal.say(f"by symbol: {symbols}")


def summarise_json(command, reports, findings, seen, status, terminal):
    """One line, on stderr because stdout is the program's."""
    routines = sum_up(reports)
    terminal.tell(json.dumps({
        "program": command, "status": status, "processes": len(reports), "routines": routines,
        "symbols": count_symbols(reports), "warnings": findings.warnings,
        "remarks": [] if routines else guess(findings, seen, status)}) + "\n")


def choose_report(arguments):
    """The pattern of the reports' names, or None for a folder of ours; "" for none."""
    report = arguments.report
    if report is None and arguments.json:
        report = os.environ.get("GPUBLAS_REPORT")
    if arguments.json and (arguments.no_report or not (report or "x.json").endswith(".json")):
        raise Failure("--json is made of reports whose names end in .json", 2)
    if report is None and (arguments.no_report or "GPUBLAS_REPORT" in os.environ):
        return ""
    return report or None


def is_used(folder):
    """A process that the program left behind has the folder in its environment, and will report there."""
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as file:
                if os.fsencode(folder) in file.read():
                    return True
        except OSError:
            pass
    return False


def preload(library):
    there = os.environ.get("LD_PRELOAD", "")
    return f"{library}:{there}" if there else library


def main(arguments, terminal):
    library = os.path.realpath(arguments.library)
    ours = read(library)
    if not ours:
        raise Failure(f"{library}: not a library")
    if any(letter in library for letter in ": "):
        raise Failure(f"{library}: LD_PRELOAD cannot name a path with a space or a colon")
    command = whole(arguments.program[arguments.program[0] == "--":])    # Python 3.11 leaves the -- there
    program = find(command[0])
    findings = Findings({name for name in ours.defined if not name.startswith("gpublas_")})
    intercepted = findings.look_at(program)
    for warning in findings.warnings:
        terminal.say(f"warning: {warning}")
    environment = dict(os.environ, LD_PRELOAD=preload(library))
    folder, report = None, choose_report(arguments)
    if report is None:
        try:
            folder = tempfile.mkdtemp(prefix="gpublas.")
            report = os.path.join(folder, "%p.json")
        except OSError as error:
            terminal.say(f"no report, because there is no folder for it: {error.strerror}")
    if report:
        environment["GPUBLAS_REPORT"] = os.path.abspath(report)
    if arguments.trace:
        environment["GPUBLAS_TRACE"] = os.path.abspath(arguments.trace)
    seen, since = set(), time.time() - 1           # a file system's clock may be coarse
    try:
        status = execute(command, environment, seen)
        if arguments.json or (intercepted and report and (folder or report.endswith(".json"))):
            reports = read_reports(environment["GPUBLAS_REPORT"], since) if report else []
            if arguments.json:
                summarise_json(command, reports, findings, seen, status, terminal)
            else:
                summarise(reports, findings, seen, status, terminal)
    finally:
        if folder and is_used(folder):
            terminal.say(f"processes of the program still run; their reports will be in {folder}")
        elif folder:
            shutil.rmtree(folder, ignore_errors=True)
    return status
