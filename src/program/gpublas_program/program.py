# SPDX-License-Identifier: MIT
"""The command line: the one place where commands and flags are defined. Help, the manual page and the
completions are made from it."""
import argparse
import importlib
import os
import sys

from .library import Failure
from .terminal import Terminal

EXIT_CODES = (
    ("0", "it worked"),
    ("1", "it did not: of info, the library does not work here"),
    ("2", "a wrong command line, or a library that cannot be found"),
    ("126, 127", "run: PROGRAM cannot be run; is not there"),
    ("128+N", "ended by signal N, of run by PROGRAM; else run's is PROGRAM's own"),
)


def version_of(library):
    from .library import describe
    return describe(library)["gpublas"]


class Version(argparse.Action):
    def __call__(self, parser, arguments, values, option=None):
        try:
            print(f"gpublas {version_of(arguments.library)}", flush=True)
        except Failure as failure:
            print(f"gpublas: {failure}", file=sys.stderr)
            parser.exit(failure.code)
        parser.exit(0)


def add_common(parser, library=None):
    """Flags that stand before the command, or after it: there they have no defaults of their own."""
    def default(value):
        return argparse.SUPPRESS if library is None else value
    parser.add_argument("-q", "--quiet", action="store_true", default=default(False),
                        help="no warnings, remarks or progress bar on stderr; errors are still printed")
    parser.add_argument("--color", choices=("auto", "always", "never"), default=default("auto"),
                        metavar="WHEN",
                        help="auto, always or never; auto: on a terminal, unless NO_COLOR is set")
    parser.add_argument("--library", default=default(library), metavar="FILE",
                        help="another libgpublas.so than the one that was installed with this program")


def duration(text):
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError
    return value


def add_sweep(parser, sizes):
    parser.add_argument("--routine", default="gemm", metavar="NAME,...",
                        help="routines, without the letter of their type; default: gemm")
    parser.add_argument("--types", default="sdcz", metavar="LETTERS",
                        help="types, of s, d, c and z; default: all")
    parser.add_argument("--sizes", default=sizes, metavar="N,...",
                        help="sides of square matrices: 256,512, or 64:1024 for each power of two between, "
                             f"or 100:1000:100; default: {sizes}")


def add_json(parser, what):
    parser.add_argument("--json", action="store_true", help=what)


def add_info(command):
    made = command("info", "info", "what the library sees of this machine",
                   "Devices, driver, the host's BLAS and LAPACK and how they were found, calibration, "
                   "options.")
    made.add_argument("--all", action="store_true", help="also the kernels")
    add_json(made, "everything as JSON")


def add_run(command):
    made = command("run", "run", "run a program with the library in front of its BLAS",
                   "Runs PROGRAM with the library preloaded, after warning of what cannot be intercepted, "
                   "and says at the end which of its BLAS calls came to the library, by which names, and "
                   "where they went. "
                   "A script whose name ends in .py need not be executable. "
                   "Its exit code is PROGRAM's.")
    made.add_argument("--report", metavar="FILE",
                      help="keep the library's report in FILE, JSON if its name ends in .json; %%p in it is "
                           "the process's number")
    made.add_argument("--trace", metavar="FILE",
                      help="write a trace that Perfetto and Chrome open; %%p in its name is the process's "
                           "number")
    made.add_argument("--no-report", action="store_true", help="no report and no summary")
    add_json(made, "the summary as one line of JSON, the last one on stderr")
    # Not one argument and REMAINDER: that takes a -- away which is the program's.
    made.add_argument("program", metavar="PROGRAM", nargs=argparse.PARSER, help="the program, its arguments")


def add_why(command):
    made = command("why", "why", "where a call would go, and why",
                   "Explains the decision for one call with operands in host memory and a GPU that is "
                   "started: gpublas why dgemm N N 1000 1000 1000. Letters and sizes are BLAS's own, in "
                   "BLAS's order; letters may be left out.")
    made.add_argument("routine", metavar="ROUTINE", help="dgemm, ssymm, zherk, dtrsm, dgetrf ...")
    made.add_argument("argument", metavar="ARGUMENT", nargs="*", help="its letters, then its sizes")
    add_json(made, "the prediction as JSON")


def add_bench(command):
    made = command("bench", "bench", "host against GPU on this machine",
                   "Times calls with operands in host memory on the host and on the GPU, and says from "
                   "which size on the GPU is faster.")
    add_sweep(made, "64:2048")
    made.add_argument("--seconds", type=duration, default=0.2, metavar="S",
                      help="how long each point is repeated on each side; default: 0.2")
    made.add_argument("--kernels", metavar="NAME,...",
                      help="also time these kernels on the GPU, or all; gpublas info --all lists them")
    made.add_argument("--csv", metavar="FILE", help="write the points to FILE as CSV")
    add_json(made, "the points as JSON instead of a table")
    made.add_argument("--plot", metavar="FILE",
                      help="draw them, .png, .svg or .pdf: seconds with the crossover, GFLOP/s beside what "
                           "was predicted, the roofline of the link, kernels side by side (needs Matplotlib)")


def add_tune(command):
    made = command("tune", "tune", "let the library learn this machine now",
                   "Makes calls of each size until the library has learnt how fast host and GPU are for "
                   "that class of calls, which decides where they go, and keeps that with the calibration. "
                   "It does not choose kernels: their figures, by which one is taken, are fixed when the "
                   "library is built (dispatch/tuned.def, by tests/bench/fit.py). Interrupted, it goes on "
                   "where it was, and says at the end what changed in all.")
    add_sweep(made, "32:2048")
    made.add_argument("--again", action="store_true",
                      help="begin anew, not where an interrupted run ended")
    add_json(made, "what changed as JSON")


def add_print(command):
    made = command("print", "manual", "print the manual page or a shell's completion",
                   "Prints what is made from the definitions of this command line.")
    made.add_argument("what", choices=("man", "bash", "zsh"), metavar="WHAT", help="man, bash or zsh")


def make_parser(library=""):
    parser = argparse.ArgumentParser(
        prog="gpublas", epilog="gpublas COMMAND --help says more.",
        description="A BLAS whose large products run on an NVIDIA GPU: see it, use it, measure it.")
    add_common(parser, library)
    parser.add_argument("--version", action=Version, nargs=0, help="print the library's version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name, module, summary, description):
        made = commands.add_parser(name, help=summary, description=description)
        made.set_defaults(module=module)
        add_common(made)
        return made
    for add in (add_info, add_run, add_why, add_bench, add_tune, add_print):
        add(command)
    return parser


def main(library):
    for name in ("stdout", "stderr"):                                   # None if it is closed
        setattr(sys, name, getattr(sys, name) or open(os.devnull, "w", encoding="utf-8"))
    sys.stdout.reconfigure(errors="backslashreplace")                   # names of files have any bytes
    parser, terminal = make_parser(library), Terminal()
    try:
        arguments = parser.parse_args()
        arguments.parser = parser
        terminal = Terminal(arguments.quiet, arguments.color)
        # Only what the command needs is imported: 50 ms less.
        status = importlib.import_module(f".{arguments.module}", __package__).main(arguments, terminal)
        sys.stdout.flush()
        return status
    except Failure as failure:
        terminal.warn(str(failure))
        return failure.code
    except KeyboardInterrupt:
        terminal.clear()
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13
    except MemoryError:
        terminal.warn("too little memory")
        return 1
    except OSError as error:
        what = error.strerror or str(error)
        terminal.warn(f"{error.filename}: {what}" if error.filename else what)
        return 1
