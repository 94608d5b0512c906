# SPDX-License-Identifier: MIT
"""gpublas tune: lets the library learn this machine now, class by class of calls, instead of from the calls
of the next programs. The library measures, learns and saves by itself; this makes the calls, and says what
changed. Learnt is how fast host and GPU are, so where a call goes; not which kernel is taken."""
import json
import os
import time

from .info import read_calibration
from .library import Failure, Library
from .sweep import Operands, parse_sizes, routines
from .terminal import seconds, table

# A class is known for sure after eight calls, the first of which does not count (dispatch/learn.h).
CALLS = 9
# Of short calls on the host one in 256 is learnt from (src/hub/routing.c); so many of them take half a
# second at most.
SHORT_S, ONE_IN = 2e-4, 256
# The host's threads look for more work for 150 ms after a call (src/copy/contention.c). A call of the GPU
# that shares the cores with them is learnt apart, and says nothing of a program that leaves them idle.
HOST_IDLE_S = 0.2


def ask(library, operands):
    library.set_option("OFFLOAD", "auto")
    answers = library.ask(operands.routine, operands.letters, operands.sizes)
    return answers[0] if answers else None


def teach(library, operands):
    """Calls that the library may send to the side which it wants to know, and some on the GPU: what is sent
    there by order is learnt from as well."""
    for offload in ("auto", "always"):
        library.set_option("OFFLOAD", offload)
        if offload == "always":
            time.sleep(HOST_IDLE_S)
        calls = CALLS * (ONE_IN if offload == "auto" and operands.call() < SHORT_S else 1)
        for _ in range(calls):
            if operands.call() > 2:
                break


class Progress:
    """What the points that are done changed, beside the calibration, so that another run goes on there and
    tells of all."""

    def __init__(self, path, key, again):
        self.path, self.key, self.changes = path, key, []
        try:
            with open(path, encoding="utf-8") as file:
                kept = json.load(file)
            if kept["of"] == key and not again:
                # Each value is asked for, because a file that somebody else wrote may lack one.
                self.changes = [{name: change[name] for name in CHANGE} for change in kept["changes"]]
        except (OSError, ValueError, KeyError, TypeError):
            pass

    def has(self, name, n):
        return any(change["routine"] == name and change["n"] == n for change in self.changes)

    def add(self, change):
        self.changes.append(change)
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            json.dump({"of": self.key, "changes": self.changes}, file)
        os.replace(self.path + ".new", self.path)

    def finish(self):
        try:
            os.unlink(self.path)
        except OSError:
            pass


# What is told of a point: its routine and size, and of these before and after.
ASKED = ("route", "gpu_seconds", "host_seconds")
CHANGE = ("routine", "n") + tuple(f"{what}_{when}" for what in ASKED for when in ("before", "after"))


def changed(name, n, before, after):
    return {"routine": name, "n": n,
            **{f"{what}_{when}": answer.get(what) for what in ASKED
               for when, answer in (("before", before), ("after", after))}}


def print_changes(changes, terminal):
    rows = [("routine", "n", "predicted host", "was", "predicted GPU", "was", "goes to", "went to")]
    for change in changes:
        rows.append((change["routine"], str(change["n"]), seconds(change["host_seconds_after"]),
                     seconds(change["host_seconds_before"]), seconds(change["gpu_seconds_after"]),
                     seconds(change["gpu_seconds_before"]), change["route_after"], change["route_before"]))
    lines = table(rows, "lrrrrrll").splitlines()
    print("\n".join([terminal.bold(lines[0])] + lines[1:]))
    moved = sum(change["route_before"] != change["route_after"] for change in changes)
    print(f"{moved} of {len(changes)} sizes go to the other side now" if moved
          else "no size goes to another side than before")


def main(arguments, terminal):
    library = Library(arguments.library)
    described = library.described
    path = described["calibration"]
    if not path:
        raise Failure("there is no file to keep it in (GPUBLAS_CALIBRATION=off, or no home folder)")
    if not described["devices"]:
        raise Failure(f"no GPU: {described['why_none']}; there is nothing to tune")
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    sizes = parse_sizes(arguments.sizes)
    work = [(routine, n) for n in sizes for routine in routines(library, arguments.routine, arguments.types)]
    key = [described["gpublas"], described["driver"], [device["name"] for device in described["devices"]]]
    progress = Progress(path + ".tune", key, arguments.again)
    left = [(routine, n) for routine, n in work if not progress.has(routine.name, n)]
    if len(left) < len(work):
        terminal.say(f"going on where the last run ended: {len(work) - len(left)} of {len(work)} are done "
                     "(--again begins anew)")
    interrupted = False
    try:
        for at, (routine, n) in enumerate(left):
            terminal.progress(len(work) - len(left) + at, len(work), f"{routine.name} {n}")
            operands = Operands(routine, n)
            before = ask(library, operands)
            teach(library, operands)
            after = ask(library, operands)
            if not library.save():
                raise Failure(f"{path} cannot be written")
            progress.add(changed(routine.name, n, before, after))
    except KeyboardInterrupt:
        interrupted = True
    terminal.clear()
    if not interrupted:
        progress.finish()
    calibration, changes = read_calibration(path), progress.changes
    if arguments.json:
        print(json.dumps({"changes": changes, "finished": not interrupted, "calibration": calibration},
                         indent=1))
    else:
        if changes:
            print_changes(changes, terminal)
        print(f"kept in {path}: " + (", ".join(f"{count} classes of calls on the {name}" for name, count
                                               in calibration["classes"].items()) or "nothing yet"))
        if interrupted:
            terminal.warn("interrupted; the same command goes on from here")
    return 130 if interrupted else 0
