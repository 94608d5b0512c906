# SPDX-License-Identifier: MIT
"""gpublas bench: host against GPU on this machine, by routine, type and size."""
import csv
import json
import math
import sys

from . import picture
from .library import Failure, Library
from .sweep import Operands, measure, parse_sizes, routines
from .terminal import seconds, table

COLUMNS = ("routine", "n", "operations", "host_seconds", "gpu_seconds", "predicted_host_seconds",
           "predicted_gpu_seconds", "predicted_device_seconds", "link_bytes", "link_seconds")


def run_side(library, operands, offload, least_s):
    """Seconds on that side, or None if the calls did not go there; and how many bytes each call on the GPU
    sent up and down."""
    library.set_option("OFFLOAD", offload)
    before, called = library.stats(), operands.called
    took = measure(operands, least_s)
    after, calls = library.stats(), operands.called - called
    on_gpu = after.gpu_calls > before.gpu_calls
    moved = ((after.bytes_to_gpu - before.bytes_to_gpu) / calls,
             (after.bytes_from_gpu - before.bytes_from_gpu) / calls)
    return took if on_gpu == (offload == "always") else None, moved


def choose_kernels(library, wanted):
    """The kernels of that list, step by step, as the library describes them. wanted: None, all, or names."""
    known = library.described["kernels"]
    chosen = [] if wanted is None else wanted.split(",")
    unknown = set(chosen) - {kernel["name"] for kernel in known} - {"all"}
    if unknown:
        raise Failure(f"{min(unknown)}: not a kernel; gpublas info --all lists them", 2)
    return [kernel for kernel in known if "all" in chosen or kernel["name"] in chosen]


def run_kernels(library, operands, kernels, least_s):
    """Seconds by kernel on the GPU; None where it does not serve for that call."""
    usual = next(option["value"] for option in library.described["options"]
                 if option["name"] == "GPUBLAS_KERNEL")
    found = {}
    for kernel in kernels:
        if kernel["type"] != operands.routine.type:
            continue
        library.set_option("KERNEL", kernel["name"])
        library.set_option("OFFLOAD", "auto")
        answers = library.ask(operands.routine, operands.letters, operands.sizes)
        serves = bool(answers) and all(answer.get("kernel") == kernel["name"] for answer in answers)
        found[kernel["name"]] = run_side(library, operands, "always", least_s)[0] if serves else None
    library.set_option("KERNEL", usual or "")
    return found


def run_point(library, routine, n, least_s, kernels):
    library.set_option("OFFLOAD", "auto")
    operands = Operands(routine, n)
    answers = library.ask(routine, operands.letters, operands.sizes)
    # A triangular routine is asked by its largest product, whose seconds are not the call's.
    parts = [answer for answer in answers if answer["product_of"] or "operations" not in answer]

    def total(name):
        known = answers and not parts and all(answer[name] for answer in answers)
        return sum(answer[name] for answer in answers) if known else None
    host_s, _ = run_side(library, operands, "never", least_s)
    gpu_s, (up, down) = run_side(library, operands, "always", least_s)
    link_s = [max(up / answer["up_bytes_per_second"], down / answer["down_bytes_per_second"])
              for answer in answers if "up_bytes_per_second" in answer][:1]
    return {"routine": routine.name, "n": n, "operations": total("operations"),
            "host_seconds": host_s, "gpu_seconds": gpu_s, "predicted_host_seconds": total("host_seconds"),
            "predicted_gpu_seconds": total("gpu_seconds"),
            "predicted_device_seconds": total("device_seconds"),
            "link_bytes": up + down if gpu_s else None,
            "link_seconds": link_s[0] if gpu_s and link_s else None,
            "kernels": run_kernels(library, operands, kernels, least_s)}


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


def gflops(point, took):
    rate = picture.rate(point, took)
    return f"{rate:.1f}" if rate else "-"


def print_table(points, terminal):
    rows = [("routine", "n", "host", "GPU", "host GFLOP/s", "GPU GFLOP/s", "GPU is faster by")]
    for point in points:
        both = point["host_seconds"] and point["gpu_seconds"]
        ratio = f"{point['host_seconds'] / point['gpu_seconds']:.2f}" if both else "-"
        rows.append((point["routine"], str(point["n"]), seconds(point["host_seconds"]),
                     seconds(point["gpu_seconds"]), gflops(point, point["host_seconds"]),
                     gflops(point, point["gpu_seconds"]), ratio))
    print_rows(rows, "lr", terminal)
    ladder = [(point["routine"], str(point["n"]), kernel, seconds(took), gflops(point, took))
              for point in points for kernel, took in point["kernels"].items()]
    if ladder:
        print_rows([("routine", "n", "kernel", "GPU", "GFLOP/s")] + ladder, "lrl", terminal)


def print_rows(rows, align, terminal):
    lines = table(rows, align).splitlines()
    print("\n".join([terminal.bold(lines[0])] + lines[1:]))


def write_csv(points, path):
    """Kernels have a column each, behind the others."""
    names = dict.fromkeys(name for point in points for name in point["kernels"])
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS + tuple(f"gpu_seconds_{name}" for name in names))
        for point in points:
            writer.writerow([point[column] for column in COLUMNS]
                            + [point["kernels"].get(name) for name in names])


def print_crossovers(points, no_gpu):
    for name in picture.names(points):
        own = [point for point in points if point["routine"] == name]
        at = crossover(own)
        if at is None and own[-1]["gpu_seconds"]:
            print(f"{name}: the host is faster at {own[-1]['n']}")
        elif at is None and not no_gpu:
            print(f"{name}: the GPU does not compute {own[-1]['n']}")
        elif at is not None:
            print(f"{name}: the GPU is faster from {'about ' if at != own[0]['n'] else ''}{at} on")


def main(arguments, terminal):
    if arguments.plot:
        picture.check(arguments.plot)
    library = Library(arguments.library)
    kernels = choose_kernels(library, arguments.kernels)
    sizes = parse_sizes(arguments.sizes)
    work = [(routine, n) for routine in routines(library, arguments.routine, arguments.types) for n in sizes]
    no_gpu = not library.described["devices"]
    if no_gpu:
        terminal.say(f"no GPU: {library.described['why_none']}; only the host is measured")
    points, interrupted, short = [], False, False
    try:
        for done, (routine, n) in enumerate(work):
            terminal.progress(done, len(work), f"{routine.name} {n}")
            points.append(run_point(library, routine, n, arguments.seconds, kernels))
    except KeyboardInterrupt:
        interrupted = True
    except MemoryError:
        short = True
        terminal.warn(f"too little memory for {routine.name} {n}: it ends there")
    terminal.clear()
    if arguments.csv:
        write_csv(points, arguments.csv)
    crossovers = {name: crossover([point for point in points if point["routine"] == name])
                  for name in picture.names(points)}
    if arguments.json:
        print(json.dumps({"gpublas": library.described["gpublas"], "devices": library.described["devices"],
                          "points": points, "crossovers": crossovers}, indent=1))
    elif points:
        print_table(points, terminal)
        print_crossovers(points, no_gpu)
    if arguments.plot and points:
        picture.draw(points, crossovers, arguments.plot)
    sys.stdout.flush()
    return 130 if interrupted else int(short)
