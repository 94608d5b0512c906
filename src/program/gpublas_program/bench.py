# SPDX-License-Identifier: MIT
"""gpublas bench: host against GPU on this machine, by routine, type and size."""
import csv
import json
import math
import sys

from .library import Failure, Library
from .sweep import Operands, measure, parse_sizes, routines
from .terminal import seconds, table

COLUMNS = ("routine", "n", "operations", "host_seconds", "gpu_seconds", "predicted_host_seconds",
           "predicted_gpu_seconds")


def run_side(library, operands, offload, least_s):
    """Seconds on that side, or None if the calls did not go there."""
    library.set_option("OFFLOAD", offload)
    before = library.stats().gpu_calls
    took = measure(operands, least_s)
    on_gpu = library.stats().gpu_calls > before
    return took if on_gpu == (offload == "always") else None


def run_point(library, routine, n, least_s):
    library.set_option("OFFLOAD", "auto")
    operands = Operands(routine, n)
    answers = library.ask(routine, operands.letters, operands.sizes)
    # A triangular routine is asked by its largest product, whose seconds are not the call's.
    parts = [answer for answer in answers if answer["product_of"] or "operations" not in answer]

    def total(name):
        known = answers and not parts and all(answer[name] for answer in answers)
        return sum(answer[name] for answer in answers) if known else None
    return {"routine": routine.name, "n": n, "operations": total("operations"),
            "host_seconds": run_side(library, operands, "never", least_s),
            "gpu_seconds": run_side(library, operands, "always", least_s),
            "predicted_host_seconds": total("host_seconds"), "predicted_gpu_seconds": total("gpu_seconds")}


def crossover(points):
    """The least size from which on the GPU is faster, between two measured ones; None: never, or unknown."""
    ratios = [(point["n"], point["host_seconds"] / point["gpu_seconds"]) for point in points
              if point["host_seconds"] and point["gpu_seconds"]]
    if not ratios or ratios[-1][1] < 1:
        return None
    at = len(ratios) - 1
    while at and ratios[at - 1][1] >= 1:
        at -= 1
    if at == 0:
        return ratios[0][0]
    (below, low), (above, high) = ratios[at - 1], ratios[at]
    share = -math.log(low) / (math.log(high) - math.log(low))
    return round(math.exp(math.log(below) + share * (math.log(above) - math.log(below))))


def gflops(point, side):
    return f"{1e-9 * point['operations'] / point[side]:.1f}" if point["operations"] and point[side] else "-"


def print_table(points, terminal):
    rows = [("routine", "n", "host", "GPU", "host GFLOP/s", "GPU GFLOP/s", "GPU is faster by")]
    for point in points:
        both = point["host_seconds"] and point["gpu_seconds"]
        ratio = f"{point['host_seconds'] / point['gpu_seconds']:.2f}" if both else "-"
        rows.append((point["routine"], str(point["n"]), seconds(point["host_seconds"]),
                     seconds(point["gpu_seconds"]), gflops(point, "host_seconds"),
                     gflops(point, "gpu_seconds"), ratio))
    lines = table(rows, "lr").splitlines()
    print("\n".join([terminal.bold(lines[0])] + lines[1:]))


def print_crossovers(points, no_gpu):
    for name in dict.fromkeys(point["routine"] for point in points):
        own = [point for point in points if point["routine"] == name]
        at = crossover(own)
        if at is None and own[-1]["gpu_seconds"]:
            print(f"{name}: the host is faster at {own[-1]['n']}")
        elif at is None and not no_gpu:
            print(f"{name}: the GPU does not compute {own[-1]['n']}")
        elif at is not None:
            print(f"{name}: the GPU is faster from {'about ' if at != own[0]['n'] else ''}{at} on")


def plot(points, path):
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError as error:
        raise Failure("--plot needs Matplotlib (Debian: python3-matplotlib)", 2) from error
    figure, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
    for color, name in enumerate(dict.fromkeys(point["routine"] for point in points)):
        for side, line in (("host", "--"), ("gpu", "-")):
            own = [(point["n"], point[f"{side}_seconds"]) for point in points
                   if point["routine"] == name and point[f"{side}_seconds"]]
            if own:
                axes.plot(*zip(*own), line, marker="o", color=f"C{color}",
                          label=f"{name}, {'GPU' if side == 'gpu' else 'host'}")
    axes.set(xscale="log", yscale="log", xlabel="n", ylabel="seconds a call, operands in host memory")
    axes.grid(True, which="both", alpha=0.3)
    axes.legend()
    figure.savefig(path)


def check_plot(path):
    """Before an hour of measuring, and not after it."""
    if path:
        if not path.endswith((".png", ".svg", ".pdf")):
            raise Failure(f"{path}: a picture's name ends in .png, .svg or .pdf", 2)
        try:
            import matplotlib  # noqa: F401
        except ImportError as error:
            raise Failure("--plot needs Matplotlib (Debian: python3-matplotlib)", 2) from error


def main(arguments, terminal):
    check_plot(arguments.plot)
    library = Library(arguments.library)
    sizes = parse_sizes(arguments.sizes)
    work = [(routine, n) for routine in routines(library, arguments.routine, arguments.types) for n in sizes]
    no_gpu = not library.described["devices"]
    if no_gpu:
        terminal.say(f"no GPU: {library.described['why_none']}; only the host is measured")
    points, interrupted, short = [], False, False
    try:
        for done, (routine, n) in enumerate(work):
            terminal.progress(done, len(work), f"{routine.name} {n}")
            points.append(run_point(library, routine, n, arguments.seconds))
    except KeyboardInterrupt:
        interrupted = True
    except MemoryError:
        short = True
        terminal.warn(f"too little memory for {routine.name} {n}: it ends there")
    terminal.clear()
    if arguments.csv:
        with open(arguments.csv, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(points)
    if arguments.json:
        crossovers = {name: crossover([point for point in points if point["routine"] == name])
                      for name in dict.fromkeys(point["routine"] for point in points)}
        print(json.dumps({"gpublas": library.described["gpublas"], "devices": library.described["devices"],
                          "points": points, "crossovers": crossovers}, indent=1))
    elif points:
        print_table(points, terminal)
        print_crossovers(points, no_gpu)
    if arguments.plot and points:
        plot(points, arguments.plot)
    sys.stdout.flush()
    return 130 if interrupted else int(short)
