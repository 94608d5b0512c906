# SPDX-License-Identifier: MIT
"""Calls of a routine with operands of one size, timed: what bench and tune have in common."""
import ctypes
import random
import struct
import time

from .library import Failure, LARGEST, SCALAR, REAL, usual_letters

PERIOD = 4099       # a prime, so that columns differ


def parse_sizes(text):
    """256,512 or 64:4096, which is 64, 128, ... 4096, or 100:1000:100."""
    sizes = []
    try:
        for part in text.split(","):
            first, *rest = [int(number) for number in part.split(":")]
            last, step = (rest + [first])[0], rest[1] if len(rest) > 1 else None
            if not 1 <= first <= last <= LARGEST or len(rest) > 2 or (step is not None and step < 1):
                raise ValueError
            while first <= last:
                sizes.append(first)
                first = first + step if step else 2 * first
    except ValueError:
        raise Failure(f"{text}: not sizes such as 256,512 or 64:4096 or 100:1000:100", 2) from None
    return sorted(set(sizes))


class Operands:
    """The matrices of a call with all sides n. The routine's matrix A has a diagonal that makes systems
    easy to solve. What is written is restored before each call."""

    def __init__(self, routine, n):
        self.routine = routine
        self.letters, self.sizes = usual_letters(), {name: n for name in routine.sizes}
        self.fresh, self.work, addresses = {}, {}, {}
        for name, rows, columns, written in routine.shapes(self.letters, self.sizes):
            size = rows * columns * routine.bytes
            self.work[name] = self._make(rows, columns, size)
            addresses[name] = ctypes.addressof(self.work[name])
            if written:
                self.fresh[name] = ctypes.string_at(self.work[name], size)
        pivots = (ctypes.c_int * n)(*range(1, n + 1))
        self.called = 0
        self.arguments = routine.arguments(self.letters, self.sizes, addresses, pivots)

    def _make(self, rows, columns, size):
        real = "f" if REAL[self.routine.type] == "s" else "d"
        letter = random.Random(rows)
        block = struct.pack(f"{PERIOD}{real}", *(letter.random() for _ in range(PERIOD)))
        try:
            memory = ctypes.create_string_buffer(block * (size // len(block) + 1), size + len(block) + 1)
        except OverflowError:
            raise MemoryError from None
        if rows == columns:
            numbers = (SCALAR[REAL[self.routine.type]] * (size // struct.calcsize(real))).from_buffer(memory)
            parts = self.routine.bytes // struct.calcsize(real)
            for i in range(rows):
                numbers[parts * (i * rows + i)] = 2.0 * rows
                if parts == 2:
                    numbers[parts * (i * rows + i) + 1] = 0.0
        return memory

    def call(self):
        """Seconds of one call."""
        for name, fresh in self.fresh.items():
            ctypes.memmove(self.work[name], fresh, len(fresh))
        self.called += 1
        begin = time.perf_counter()
        self.routine.function(*self.arguments)
        return time.perf_counter() - begin


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def measure(operands, least_s, most_calls=1000):
    """The median of calls that take so many seconds together, at least three and without the first, unless
    that takes as long alone."""
    first = operands.call()
    if first > 4 * least_s:
        return first
    times = []
    while len(times) < 3 or (sum(times) < least_s and len(times) < most_calls):
        times.append(operands.call())
    return median(times)


def routines(library, stems, types):
    """The routines of those names, without the letter of the type, and types; a name may have its letter."""
    if not types or set(types) - set(SCALAR):
        raise Failure(f"'{types}': not types, of s, d, c and z", 2)
    known = library.described["routines"]
    found = []
    for stem in stems.split(","):
        rows = [row for row in known if row["stem"] == stem and row["type"] in types] \
            or [row for row in known if row["name"] == stem]
        if not rows and stem in {row["stem"] for row in known}:
            raise Failure(f"{stem} has none of the types {types}", 2)
        if not rows:
            library.routine(stem)                                    # says which there are
        found += [library.routine(row["name"]) for row in rows]
    return found
