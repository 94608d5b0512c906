# SPDX-License-Identifier: MIT
"""gpublas info: what the library sees of this machine."""
import json
import os

from .library import describe
from .terminal import size, table


def read_calibration(path):
    """Its machine and figures, and how many classes of calls are known of each table. Lines are a name and
    values; a table's have several numbers."""
    known = {"path": path, "exists": False, "machine": None, "figures": {}, "classes": {}}
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = [line.rstrip("\n").split(" ") for line in file][1:]
    except (OSError, TypeError):
        return known
    known["exists"] = True
    for name, *values in lines:
        if name == "machine":
            known["machine"] = " ".join(values)
        elif len(values) == 1:
            known["figures"][name] = int(values[0])
        elif values:
            known["classes"][name] = known["classes"].get(name, 0) + 1
    return known


def print_options(options):
    rows = [("option", "value", "default")]
    for option in options:
        star = "*" if option["value"] != option["default"] else ""
        rows.append((option["name"] + star, option["value"] or "-", option["default"] or "-"))
    print(table(rows, "lll"))
    if any(option["value"] != option["default"] for option in options):
        print("*: not as by default")


def print_page(described, terminal, all_of_it):
    verdict = described["verdict"].split("\n")
    print((terminal.good if described["works"] else terminal.bold)(verdict[0]))
    print("\n".join(verdict[1:]), end="\n" if verdict[1:] else "")
    rows = [("library", f"{described['gpublas']}, {described['path']}"),
            ("driver", described["driver"] or "none")]
    if described["why_none"]:
        rows.append(("GPU", f"none: {described['why_none']}"))
    for device in described["devices"]:
        rows.append((f"GPU {device['number']}",
                     f"{device['name']}, {device['architecture']}, "
                     f"{device['multiprocessors']} multiprocessors, "
                     f"{device['kernels']} of {len(described['kernels'])} kernels, uses up to "
                     f"{size(device['memory_bytes'])} of its memory"))
    for host in described["hosts"]:
        rows.append((f"host, {host['interface']}", f"{host['file']} ({host['found']})"))
    calibration = described["calibration"]
    if not calibration["path"]:
        rows.append(("calibration", "off"))
    elif not calibration["exists"]:
        rows.append(("calibration", f"none yet; it will be {calibration['path']}"))
    else:
        classes = ", ".join(f"{count} classes of calls on the {name}" for name, count
                            in calibration["classes"].items())
        figures = ", ".join(f"{name} {value}" for name, value in calibration["figures"].items())
        rows += [("calibration", calibration["path"]), ("", f"of {calibration['machine']}"),
                 ("", ", ".join(filter(None, (figures, classes))))]
    print(table(rows, "ll"))
    print()
    print_options(described["options"])
    if all_of_it:
        print()
        print(table([("kernel", "type", "idea")] + [(kernel["name"], kernel["type"], kernel["idea"])
                                                    for kernel in described["kernels"]], "lll"))


def main(arguments, terminal):
    described = describe(arguments.library)
    described["path"] = os.path.realpath(arguments.library)
    described["calibration"] = read_calibration(described["calibration"])
    if arguments.json:
        print(json.dumps(described, indent=1))
    else:
        print_page(described, terminal, arguments.all)
    return 0 if described["works"] else 1
