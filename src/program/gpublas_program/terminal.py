# SPDX-License-Identifier: MIT
"""What people see: colour, a progress bar, tables. Progress and messages go to stderr, results to stdout."""
import os
import shutil
import sys
import time


class Terminal:
    def __init__(self, quiet=False, color="auto"):
        self.quiet = quiet
        self.bar = sys.stderr.isatty() and not quiet and os.environ.get("TERM") != "dumb"
        self.colored = color == "always" or (color == "auto" and sys.stdout.isatty()
                                             and not os.environ.get("NO_COLOR")
                                             and os.environ.get("TERM") != "dumb")
        self.began, self.shown = None, False

    def paint(self, text, code):
        return f"\x1b[{code}m{text}\x1b[0m" if self.colored else text

    def bold(self, text):
        return self.paint(text, 1)

    def good(self, text):
        return self.paint(text, 32)

    def say(self, text):
        """A remark, which --quiet leaves out."""
        if not self.quiet:
            self.warn(text)

    def warn(self, text):
        self.clear()
        self.tell(f"gpublas: {text}\n")

    @staticmethod
    def tell(text):
        """A stderr that is closed or full takes nothing from the result and the exit code."""
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:
            pass

    def progress(self, done, total, what):
        if not self.bar:
            return
        now = time.monotonic()
        self.began = now if self.began is None or not done else self.began
        left = (now - self.began) / done * (total - done) if done else 0
        columns = shutil.get_terminal_size().columns
        width = max(10, min(40, columns - 50))
        full = round(width * done / max(total, 1))
        line = f"[{'#' * full}{'.' * (width - full)}] {done}/{total} {what}"
        line += f", {left:.0f} s left" if done else ""
        self.tell("\r\x1b[K" + line[:columns - 1])
        self.shown = True

    def clear(self):
        if self.shown:
            self.tell("\r\x1b[K")
        self.shown = False


def table(rows, align=""):
    """Rows of texts as lines. align: a letter a column, l or r; r after its end."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) if align[i:i + 1] == "l" else cell.rjust(width)
                 for i, (cell, width) in enumerate(zip(row, widths))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def amount(number, units):
    """A number with the unit that suits it: the first that leaves it below 1000. units: (name, size),
    ascending."""
    for name, size in units:
        if abs(number) < 1000 * size or name == units[-1][0]:
            return f"{number / size:.3g} {name}"


def seconds(value):
    if value is None:
        return "-"
    return amount(value, (("us", 1e-6), ("ms", 1e-3), ("s", 1)))


def size(value):
    return amount(value, (("B", 1), ("KB", 1e3), ("MB", 1e6), ("GB", 1e9)))
