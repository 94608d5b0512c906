# SPDX-License-Identifier: MIT
"""gpublas why: where a call would go, and why."""
import json

from .library import Failure, Library
from .terminal import seconds, size, table


def explain(answer, call, terminal):
    sizes = " x ".join(str(answer[side]) for side in ("m", "n", "k") if answer[side] is not None)
    where = "the GPU" if answer["route"] == "gpu" else "the host"
    print(terminal.bold(f"{call}: on {where}, because: {answer['why']}"))
    if "operations" not in answer:
        return
    if answer["product_of"]:
        print(f"decided by its largest product, {sizes}")
    rows = [("", "predicted", "GFLOP/s", "measured/modelled"),
            (f"host, {answer['host_threads']} threads", seconds(answer["host_seconds"]),
             rate(answer, "host_seconds"), f"{answer['host_measured_to_modelled']:.2f}"),
            ("GPU", seconds(answer["gpu_seconds"]), rate(answer, "gpu_seconds"),
             f"{answer['gpu_measured_to_modelled']:.2f}")]
    print(table(rows, "lrrr"))
    if answer["host_seconds"] and answer["gpu_seconds"]:
        ratio = answer["host_seconds"] / answer["gpu_seconds"]
        print(f"the GPU is predicted to take {1 / ratio:.2f} of the host's time")
    if answer["device_seconds"]:
        print(f"with operands in its memory the GPU is predicted to take {seconds(answer['device_seconds'])}")
    if answer["kernel"]:
        parts = f", k in {answer['splits']} parts" if answer["splits"] > 1 else ""
        print(f"kernel {answer['kernel']}{parts}; {size(answer['bytes_to_gpu'])} to the GPU, "
              f"{size(answer['bytes_from_gpu'])} back; {size(answer['device_bytes'])} of its memory")
    if answer["gpu_seconds"]:
        print(f"a program's first such calls stay on the host until the GPU would have saved some "
              f"{seconds(answer['start_cost_seconds'])}, what its start costs")


def rate(answer, which):
    return f"{1e-9 * answer['operations'] / answer[which]:.0f}" if answer[which] else "-"


def main(arguments, terminal):
    library = Library(arguments.library)
    routine = library.routine(arguments.routine)
    answers = library.ask(routine, *routine.values(arguments.argument))
    if not answers:
        raise Failure("nothing to compute, or not a legal call")
    if arguments.json:
        print(json.dumps({"call": [routine.name] + arguments.argument, "products": answers}, indent=1))
        return 0
    explain(answers[0], " ".join([routine.name] + arguments.argument), terminal)
    if len(answers) > 1:
        print(f"the call is {len(answers)} such products")
    return 0
