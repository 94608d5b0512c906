# SPDX-License-Identifier: MIT
"""The picture of gpublas bench, by Matplotlib: seconds with the crossover, GFLOP/s beside what was predicted,
the roofline of the link, and the ladder of kernels if some were timed."""
from .library import Failure

ENDINGS = (".png", ".svg", ".pdf")
SIDES = (("host", "host", "--"), ("gpu", "GPU", "-"))


def check(path):
    """Before an hour of measuring, and not after it."""
    if not path.endswith(ENDINGS):
        raise Failure(f"{path}: a picture's name ends in .png, .svg or .pdf", 2)
    open_matplotlib()


def open_matplotlib():
    try:
        import matplotlib
        matplotlib.use("Agg")
        # Text in an SVG stays text, and the same points give the same file.
        matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "gpublas"})
        from matplotlib import pyplot
    except ImportError as error:
        raise Failure("--plot needs Matplotlib (Debian: python3-matplotlib)", 2) from error
    return pyplot


def names(points):
    return list(dict.fromkeys(point["routine"] for point in points))


def rate(point, seconds):
    """GFLOP/s, or None."""
    return 1e-9 * point["operations"] / seconds if point["operations"] and seconds else None


def line(axes, points, value, *style, **more):
    known = [(point["n"], value(point)) for point in points if value(point)]
    if known:
        axes.plot(*zip(*known), *style, **more)


def finish(axes, points, title, ylabel):
    axes.set(xscale="log", yscale="log", title=title, xlabel="n", ylabel=ylabel)
    ticks = []
    for n in sorted({point["n"] for point in points}):
        if not ticks or n > 1.4 * ticks[-1]:                         # their numbers have room
            ticks.append(n)
    axes.set_xticks(ticks, [str(n) for n in ticks])
    axes.set_xticks([], minor=True)
    axes.grid(True, which="both", alpha=0.3)
    handles, _ = axes.get_legend_handles_labels()
    if handles:
        axes.legend(fontsize="small")


def draw_seconds(axes, points, crossovers):
    for number, name in enumerate(names(points)):
        own = [point for point in points if point["routine"] == name]
        for side, label, style in SIDES:
            line(axes, own, lambda point: point[f"{side}_seconds"], style, marker="o", color=f"C{number}",
                 label=f"{name}, {label}")
        at = crossovers[name]
        if at:
            axes.axvline(at, linestyle=":", color=f"C{number}",
                         label=f"{name}: the GPU is faster from {at} on")
    finish(axes, points, "a call, operands in host memory", "seconds")


def draw_rates(axes, points):
    """The roof over each line is what the library predicts of link, kernel and host."""
    for number, name in enumerate(names(points)):
        own = [point for point in points if point["routine"] == name]
        for side, label, style in SIDES:
            line(axes, own, lambda point: rate(point, point[f"{side}_seconds"]), style, marker="o",
                 color=f"C{number}", label=f"{name}, {label}")
            line(axes, own, lambda point: rate(point, point[f"predicted_{side}_seconds"]), style,
                 linewidth=4, alpha=0.3, color=f"C{number}", label=f"{name}, {label}, predicted")
    finish(axes, points, "speed, and what was predicted", "GFLOP/s")


def draw_roofline(axes, points):
    """Speed against operations a byte over the link. No call is faster than its bytes cross the link, or than
    it is computed from device memory."""
    for number, name in enumerate(names(points)):
        own = [point for point in points if point["routine"] == name and point["link_bytes"]
               and rate(point, point["gpu_seconds"])]
        for seconds, style, label in (("gpu_seconds", "o", "measured"), ("link_seconds", "-", "the link"),
                                      ("predicted_device_seconds", ":", "operands on the GPU, predicted")):
            known = [(point["operations"] / point["link_bytes"], rate(point, point[seconds]))
                     for point in own if rate(point, point[seconds])]
            if known:
                axes.plot(*zip(*sorted(known)), style, color=f"C{number}", label=f"{name}, {label}")
    axes.set(xscale="log", yscale="log", title="the roofline of the link",
             xlabel="operations a byte over the link", ylabel="GFLOP/s")
    axes.grid(True, which="both", alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small")


def draw_ladder(axes, points):
    """Of each routine the largest size at which kernels were timed."""
    bars = []
    for number, name in enumerate(names(points)):
        timed = [point for point in points if point["routine"] == name and any(point["kernels"].values())]
        if timed:
            bars += [(f"{name} {timed[-1]['n']}, {kernel}", rate(timed[-1], took), f"C{number}")
                     for kernel, took in timed[-1]["kernels"].items() if rate(timed[-1], took)]
    for place, (label, height, color) in enumerate(bars):
        axes.barh(place, height, color=color)
        axes.text(height, place, f" {height:.3g}", va="center", fontsize="small")
    axes.set_yticks(range(len(bars)), [label for label, _, _ in bars], fontsize="small")
    axes.invert_yaxis()
    axes.set(title="the ladder: a kernel each, with the copies", xlabel="GFLOP/s")
    axes.margins(x=0.15)


def draw(points, crossovers, path):
    pyplot = open_matplotlib()
    ladder = any(any(point["kernels"].values()) for point in points)
    roofline = any(point["link_bytes"] and point["gpu_seconds"] for point in points)
    panels = 2 + roofline + ladder
    figure, axes = pyplot.subplots(1, panels, figsize=(7 * panels, 5.5), layout="constrained")
    draw_seconds(axes[0], points, crossovers)
    draw_rates(axes[1], points)
    if roofline:
        draw_roofline(axes[2], points)
    if ladder:
        draw_ladder(axes[-1], points)
    figure.savefig(path, metadata={} if path.endswith(".png") else {"CreationDate": None}
                   if path.endswith(".pdf") else {"Date": None})
