# SPDX-License-Identifier: MIT
"""A process that has multiplied forks. Children and grandchildren multiply right, and so does the parent
afterwards.
Usage: fork.py FOLDER: each process leaves its stderr there, as parent, child and grandchild."""
import ctypes
import multiprocessing
import os
import signal
import sys
import numpy as np

a = (np.arange(300 * 310) % 7 - 3).reshape(300, 310).astype(np.float32)
b = (np.arange(310 * 290) % 5 - 2).reshape(310, 290).astype(np.float32)
exact = a.astype(int) @ b.astype(int)


def right(_=None):
    return bool(np.array_equal(a @ b, exact))


def emptied():
    """KiB that a child of this process gets empty, and how many KiB of them are in memory."""
    size = inside = 0
    with open("/proc/self/smaps") as lines:
        for line in lines:
            words = line.split()
            if words[0] == "Size:":
                here = int(words[1])
            elif words[0] == "Rss:":
                present = int(words[1])
            elif words[0] == "VmFlags:" and "wf" in words:
                size, inside = size + here, inside + present
    return size, inside


def log_to(name):
    """Lines go to this file from now on. They do once they are asked for again."""
    os.dup2(os.open(os.path.join(sys.argv[1], name), os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    ctypes.CDLL(None).gpublas_set_option(b"VERBOSE", b"1")


def child():
    log_to("child")
    fine = right()
    grandchild = os.fork()
    if grandchild == 0:
        log_to("grandchild")
        os._exit(0 if right() else 1)
    os._exit(0 if fine and os.waitpid(grandchild, 0)[1] == 0 and right() else 1)


signal.alarm(60)    # a hang is a failure
log_to("parent")
print("parent", right())
size, inside = emptied()
process = os.fork()
if process == 0:
    size, inside = emptied()
    os._exit(0 if size and not inside else 1)
print("pinned", os.waitpid(process, 0)[1] == 0 and size > 0 and inside > 0)
process = os.fork()
if process == 0:
    child()
print("child and grandchild", os.waitpid(process, 0)[1] == 0)
print("parent while children ran", right())
with multiprocessing.get_context("fork").Pool(4, initializer=log_to, initargs=("child",)) as pool:
    print("pool", all(pool.map(right, range(16))))
print("parent again", right())
