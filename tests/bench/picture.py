#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws README.md's picture from the CSVs in a folder of tests/bench/results: TFLOP/s by size, with operands
in host memory and on the GPU, and the time of whole programs, if they were measured. It is an SVG on stdout,
the same bytes for the same figures, and needs no library.

Usage: picture.py tests/bench/results/nvidia-h200 > tests/bench/results/speed.svg"""

import math
import sys

sys.dont_write_bytecode = True

from table import PLAIN, lies, mean, results

BARS = 230  # the height of the programs' part
WIDTH, HEIGHT, LEFT, TOP, WIDE, HIGH, GAP = 1000, 420, 62, 52, 390, 310, 120
OURS, OURS_TOO, RIVAL, RIVAL_TOO = "#0b6e4f", "#7cb518", "#c1440e", "#7a7a7a"


class Panel:
    """A plot over powers of two; `low` to `high` upwards, by the logarithm if `low` is not 0."""
    def __init__(self, x, title, sizes, low, high, ticks):
        self.x, self.sizes, self.low, self.high = x, sizes, low, high
        self.lines = [f'<text x="{x + WIDE / 2:.0f}" y="30" class="title">{title}</text>']
        for n in sizes:
            at = self.across(n)
            self.lines += [f'<line x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{TOP + HIGH}" class="grid"/>',
                           f'<text x="{at:.1f}" y="{TOP + HIGH + 18}" class="middle">{n}</text>']
        for value in ticks:
            at = self.up(value)
            self.lines += [f'<line x1="{x}" y1="{at:.1f}" x2="{x + WIDE}" y2="{at:.1f}" class="grid"/>',
                           f'<text x="{x - 8}" y="{at + 4:.1f}" class="end">{value:g}</text>']
        self.lines += [
            f'<text x="{x + WIDE / 2:.0f}" y="{TOP + HIGH + 40}" class="middle">n (n x n x n)</text>',
            f'<text x="{x - 8}" y="{TOP - 12}" class="end">TFLOP/s</text>',
        ]

    def across(self, n):
        first, last = math.log2(self.sizes[0]), math.log2(self.sizes[-1])
        return self.x + WIDE * (math.log2(n) - first) / (last - first)

    def up(self, value):
        low, high, value = (math.log(x) if self.low else x for x in (self.low, self.high, value))
        return TOP + HIGH * (high - value) / (high - low)

    def draw(self, name, points, colour, dash, at, right, down):
        """A line through {n: value}, with its name beside the point of size `at`."""
        inside = {n: v for n, v in sorted(points.items()) if self.sizes[0] <= n <= self.sizes[-1]}
        if not inside:
            return
        places = [(self.across(n), self.up(v)) for n, v in inside.items()]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        self.lines.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.2" '
            f'stroke-dasharray="{dash or "none"}"/>'
        )
        self.lines += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in places]
        a, b = places[list(inside).index(at)] if at in inside else places[-1]
        self.lines.append(
            f'<text x="{a + right:.1f}" y="{b + down:.1f}" class="name" style="fill:{colour}">{name}</text>'
        )


def host(panel, rows):
    def rate(who):
        return {
            int(r["n"]): 2e-9 * int(r["n"]) ** 3 / float(r["ms_median"])
            for r in rows
            if r["contender"] == who and lies(r) == PLAIN
        }

    ideal = {int(r["n"]): 2e-9 * int(r["n"]) ** 3 / float(r["ideal_ms"]) for r in rows if lies(r) == PLAIN}
    panel.draw("ideal: link, tensor cores", ideal, "#8a8a8a", "3 4", 1024, 10, -14)
    panel.draw("libgpublas", rate("gpublas_auto"), OURS, "", 4096, 48, 18)
    panel.draw("NVBLAS, tuned", rate("nvblas_tuned"), RIVAL, "6 3", 4096, 62, 14)
    panel.draw("OpenBLAS, all cores", rate("host"), RIVAL_TOO, "6 3", 8192, 0, 20)


def device(panel, rows):
    def rate(mode, column):
        mine = [r for r in rows if r["suite"] == "squares" and r["mode"] == mode]
        return {
            n: mean([float(r[column]) for r in mine if int(r["n"]) == n]) for n in {int(r["n"]) for r in mine}
        }

    panel.draw("libgpublas, fp32", rate("fp32", "tflops"), OURS, "", 4096, -62, -4)
    panel.draw("libgpublas, ieee", rate("ieee", "tflops"), OURS_TOO, "", 8192, 0, -9)
    panel.draw("cuBLAS, FP32", rate("ieee", "cublas_tflops"), RIVAL, "6 3", 8192, 0, 21)


def programs(rows):
    """A pair of bars a program: the time of its first and its third run, of the time on the host alone."""
    names = [n for n in dict.fromkeys(r["program"] for r in rows) if n not in ("start", "import")]
    top, low, step = HEIGHT + 40, HEIGHT + BARS - 50, (WIDTH - 2 * LEFT) / len(names)
    up = lambda ratio: low - (low - top) * min(ratio, 1.25) / 1.25
    lines = [
        f'<text x="{x}" y="{HEIGHT + 18}" class="heading" style="fill:{colour}">{words}</text>'
        for x, colour, words in (
            (LEFT, "#333", "whole NumPy programs, of their time on the host alone:"),
            (LEFT + 475, OURS_TOO, "first run ever"),
            (LEFT + 595, OURS, "third run"),
        )
    ]
    for ratio in (0, 0.5, 1):
        lines.append(
            f'<line x1="{LEFT}" y1="{up(ratio):.1f}" x2="{WIDTH - LEFT}" y2="{up(ratio):.1f}" class="grid"/>'
        )
        lines.append(f'<text x="{LEFT - 8}" y="{up(ratio) + 4:.1f}" class="end">{ratio:g}</text>')
    for i, name in enumerate(names):
        ratios = {r["who"]: float(r["ratio"]) for r in rows if r["program"] == name}
        for j, (who, colour) in enumerate((("first", OURS_TOO), ("third", OURS))):
            x, y = LEFT + i * step + (0.15 + 0.35 * j) * step, up(ratios[who])
            lines.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{0.33 * step:.1f}" height="{low - y:.1f}" '
                f'fill="{colour}"/>'
            )
        at = LEFT + (i + 0.5) * step
        words = name.replace(" of ", " x ", 1).split(" with ")
        for j, word in enumerate(words):
            down = low + 16 + 14 * (j + i % 2 * 1.2)
            lines.append(f'<text x="{at:.1f}" y="{down:.1f}" class="small">{word}</text>')
    return lines


def main(folder):
    _, hosts, said = results(folder, "end-to-end")
    _, squares, _ = results(folder, "device")
    if not hosts or not squares:
        sys.exit(f"{folder} has no end-to-end.csv, or no device.csv")
    sizes = [512, 1024, 2048, 4096, 8192, 16384]
    panels = [Panel(LEFT, "operands in host memory", sizes, 0.05, 300, (0.1, 1, 10, 100)),
              Panel(LEFT + WIDE + GAP, "operands on the GPU", sizes, 0, 250, (0, 50, 100, 150, 200, 250))]
    host(panels[0], hosts)
    device(panels[1], squares)
    whole = results(folder, "programs")[1]
    height = HEIGHT + (BARS if whole else 0)
    print(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" font-family="sans-serif">'
    )
    print(
        '<style>text{font-size:13px;fill:#333}.title{font-size:16px;text-anchor:middle}'
        '.middle,.name{text-anchor:middle}.end{text-anchor:end}'
        '.small{font-size:11px;text-anchor:middle}.heading{font-size:16px}'
        '.name{font-weight:bold;paint-order:stroke;stroke:#fff;stroke-width:4px}.grid{stroke:#ddd}</style>'
    )
    print(f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>')
    print(f'<title>SGEMM on one {said.split(",")[0]}: libgpublas and its rivals</title>')
    for panel in panels:
        print("\n".join(panel.lines))
    if whole:
        print("\n".join(programs(whole)))
    print("</svg>")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
