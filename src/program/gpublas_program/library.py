# SPDX-License-Identifier: MIT
"""The library: what it says of itself, and its routines as functions. All names of options, routines and
kernels come from it."""
import ctypes
import json
import os
import subprocess

SCALAR = {"s": ctypes.c_float, "d": ctypes.c_double, "c": ctypes.c_float * 2, "z": ctypes.c_double * 2}
REAL = {"s": "s", "d": "d", "c": "s", "z": "d"}
# BLAS's letters, the usual one first.
LETTERS = {"side": "LR", "uplo": "LU", "trans": "NTC", "transa": "NTC", "transb": "NTC", "diag": "NU",
           "norm": "OI"}
SIZES = ("m", "n", "k", "nrhs")
LARGEST = 2**31 - 1                         # the Fortran names' integers have 32 bits
# Workspaces, in n elements of the routine's type.
WORK = {"work": 1, "work4": 4, "iwork": 1, "rwork": 1}


class Failure(Exception):
    """Something that ends the program with a message; code: its exit code."""

    def __init__(self, message, code=1):
        super().__init__(message)
        self.code = code


def plain(value):
    """The library writes bytes beyond ASCII as if they were Latin-1."""
    if isinstance(value, str):
        return os.fsdecode(value.encode("latin-1", "replace"))
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return value


def describe(path):
    """What the library says when it is run as a program."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    try:
        done = subprocess.run([path, "--json"], env=environment, stdout=subprocess.PIPE, check=False)
        return plain(json.loads(done.stdout))
    except OSError as error:
        raise Failure(f"{path} cannot be run: {error.strerror}", 2) from error
    except ValueError as error:
        raise Failure(f"{path} --json does not answer (exit {done.returncode})") from error


def usual_letters():
    return {name: choices[0] for name, choices in LETTERS.items()}


class Routine:
    """A routine by its Fortran name. described: its row of what the library says."""

    def __init__(self, library, described):
        self.name, self.type = described["name"], described["type"]
        self.words = described["arguments"].split()
        self.function = getattr(library.handle, self.name + "_")
        self.letters = [word for word in self.words if word in LETTERS]
        self.sizes = [word for word in self.words if word in SIZES]
        self.matrices = [word for word in self.words if ":" in word or "=" in word]
        self.bytes = ctypes.sizeof(SCALAR[self.type])

    @property
    def usage(self):
        return f"{self.name} {' '.join(f'[{letter}]' for letter in self.letters)} {' '.join(self.sizes)}" \
            .replace("  ", " ")

    def values(self, words):
        """Letters and sizes from a command line: letters in their order, as many as there are, then sizes."""
        letters = usual_letters()
        given = [word for word in words if not word.isdecimal()]
        numbers = [int(word) for word in words if word.isdecimal()]
        if words[:len(given)] != given or len(given) > len(self.letters) or len(numbers) != len(self.sizes):
            raise Failure(f"usage: gpublas why {self.usage}", 2)
        for name, letter in zip(self.letters, given):
            if letter.upper() not in tuple(LETTERS[name]):
                raise Failure(f"{name} is one of {' '.join(LETTERS[name])}, not {letter}", 2)
            letters[name] = letter.upper()
        if max(numbers, default=0) > LARGEST:
            raise Failure(f"{max(numbers)}: sizes are {LARGEST} at most", 2)
        return letters, dict(zip(self.sizes, numbers))

    def shape(self, word, letters, sizes):
        """Name, rows and columns as stored, and whether it is written, of a matrix among the arguments."""
        written = "=" in word
        name, dimensions = word.split("=" if written else ":")
        rows, columns, *exchange = dimensions.split(",")
        known = dict(sizes)
        known["o"] = known.get("m" if letters["side"] == "L" else "n")
        known["n+nrhs"] = known.get("n", 0) + known.get("nrhs", 0)
        rows, columns = known[rows], known[columns]
        if exchange and letters[exchange[0]] != "N":
            rows, columns = columns, rows
        return name, rows, columns, written

    def shapes(self, letters, sizes):
        return [self.shape(word, letters, sizes) for word in self.matrices]

    def arguments(self, letters, sizes, addresses, pivots):
        """For ctypes. addresses: of the matrices, by name. alpha is 1 and beta 0."""
        leading = {f"ld{name}": max(rows, 1) for name, rows, _, _ in self.shapes(letters, sizes)}
        result = []
        for word in self.words:
            last = word.split(".")[-1]
            if word in LETTERS:
                result.append(letters[word].encode())
            elif word in sizes or word in leading:
                result.append(ctypes.byref(ctypes.c_int(sizes.get(word, leading.get(word)))))
            elif last in ("alpha", "beta"):
                scalar = SCALAR[REAL[self.type] if "." in word else self.type]
                one = 1.0 if last == "alpha" else 0.0
                parts = (one, 0.0) if hasattr(scalar, "_length_") else (one,)
                result.append(ctypes.byref(scalar(*parts)))
            elif word == "ipiv":
                result.append(pivots)
            elif word in WORK:
                result.append(ctypes.create_string_buffer(WORK[word] * max(sizes["n"], 1) * self.bytes))
            elif last in ("anorm", "rcond"):
                result.append(ctypes.byref(SCALAR[REAL[self.type]](1.0)))
            elif word == "lwork":
                result.append(ctypes.byref(ctypes.c_int(max(sizes["n"], 1))))
            elif word == "iter":
                result.append(ctypes.byref(ctypes.c_int(0)))
            elif word == "info":
                self.info = ctypes.c_int(0)
                result.append(ctypes.byref(self.info))
            else:
                result.append(ctypes.c_void_p(addresses[word.split("=")[0].split(":")[0]]))
        return result + [ctypes.c_size_t(1)] * len(self.letters)


class Stats(ctypes.Structure):
    """gpublas_stats_t as far as it is needed here."""
    _fields_ = [(name, ctypes.c_uint64) for name in ("calls", "gpu_calls", "host_calls", "failed_calls",
                                                     "bytes_to_gpu", "bytes_from_gpu")]


class Library:
    """The library in this process."""

    def __init__(self, path):
        self.path, self.described = path, describe(path)
        try:
            self.handle = ctypes.CDLL(path)
        except OSError as error:
            raise Failure(f"{path} cannot be loaded: {error}", 2) from error
        self.handle.gpublas_version.restype = ctypes.c_char_p

    def set_option(self, name, value):
        if self.handle.gpublas_set_option(name.encode(), value.encode()):
            raise Failure(f"the library has no option {name}={value}")

    def routine(self, name):
        wanted = name.lower().rstrip("_")
        for described in self.described["routines"]:
            if described["name"] == wanted:
                return Routine(self, described)
        stems = sorted({described["stem"] for described in self.described["routines"]})
        raise Failure(f"{name}: not a routine whose way can be predicted; these are, each after a letter "
                      f"for the type: {' '.join(stems)}", 2)

    def stats(self):
        stats = Stats()
        self.handle.gpublas_stats(ctypes.byref(stats), ctypes.c_size_t(ctypes.sizeof(stats)))
        return stats

    def ask(self, routine, letters, sizes):
        """What would become of the call: a list with an object for each product."""
        text, nothing = ctypes.create_string_buffer(65536), ctypes.create_string_buffer(64)
        start = ctypes.addressof(nothing)
        addresses = {name: start + 8 * i for i, (name, *_) in enumerate(routine.shapes(letters, sizes))}
        arguments = routine.arguments(letters, sizes, addresses, nothing)
        self.handle.gpublas_ask(text, ctypes.c_size_t(len(text)))
        routine.function(*arguments)
        self.handle.gpublas_ask(None, ctypes.c_size_t(0))
        return plain(json.loads(text.value))

    def save(self):
        return self.handle.gpublas_save_calibration() == 0
