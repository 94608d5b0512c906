#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Removes noise from a photograph by patches: an ordinary NumPy program, which knows of no GPU.

Every patch of the picture is written in the basis of all patches' principal components, where noise spreads
evenly and the picture does not. There are two passes, as in Deledalle, Salmon and Dalalyan (2011) and in
Wiener filtering: coefficients below the noise are dropped; then each is shrunk by the share of signal that
the first pass found in it. Overlapping patches are averaged. The work is large float32 products.

Usage: demo.py FOLDER NAME [ROWS]         reads nothing, writes NAME.png, noisy.png, NAME.npy and
                                          NAME-seconds.npy (of each product) into the folder, prints times and
                                          PSNR. ROWS: only so many of the photograph
       demo.py FOLDER compare GPU HOST    whether the pictures of two runs agree, and how much faster the
                                          products of the first one were"""
import bz2
import os
import struct
import sys
import time
import zlib

import numpy as np
import scipy.misc

SIDE = 12        # of a patch
SIGMA = 30.0     # standard deviation of the noise
ROWS = 64        # rows of patches in one product


def photograph():
    with open(os.path.join(os.path.dirname(scipy.misc.__file__), "face.dat"), "rb") as file:
        return np.frombuffer(bz2.decompress(file.read()), np.uint8).reshape(768, 1024, 3)


def write_png(path, picture):
    height, width, _ = picture.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), picture.reshape(height, -1)], axis=1)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    with open(path, "wb") as file:
        header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
                   + chunk(b"IDAT", zlib.compress(rows.tobytes(), 6)) + chunk(b"IEND", b""))


def patches(picture, first, rows):
    """All patches whose upper edge lies in these rows: one a line."""
    band = picture[first:first + rows + SIDE - 1]
    view = np.lib.stride_tricks.sliding_window_view(band, (SIDE, SIDE), axis=(0, 1))
    return np.ascontiguousarray(view.transpose(0, 1, 3, 4, 2)).reshape(-1, SIDE * SIDE * 3)


def average(lines, weights, first, rows, total, weight):
    """Adds the patches back where they came from."""
    columns = total.shape[1] - SIDE + 1
    lines = (lines * weights[:, None]).reshape(rows, columns, SIDE, SIDE, 3)
    weights = weights.reshape(rows, columns, 1)
    for y in range(SIDE):
        for x in range(SIDE):
            total[first + y:first + y + rows, x:x + columns] += lines[:, :, y, x]
            weight[first + y:first + y + rows, x:x + columns] += weights


def denoise(noisy, products):
    mean = noisy.mean(axis=(0, 1))
    noisy = noisy - mean
    some = patches(noisy, 0, noisy.shape[0] - SIDE + 1)[::7]
    basis = np.linalg.eigh(some.T @ some)[1].astype(np.float32)
    del some

    def multiply(a, b):
        begin = time.perf_counter()
        product = a @ b
        products.append(time.perf_counter() - begin)
        return product

    pilot = None
    for step in ("threshold", "wiener"):
        total, weight = np.zeros_like(noisy), np.zeros(noisy.shape[:2] + (1,), np.float32)
        last = noisy.shape[0] - SIDE + 1
        for first in range(0, last, ROWS):
            rows = min(ROWS, last - first)
            coefficients = multiply(patches(noisy, first, rows), basis)
            if step == "threshold":
                keep = np.abs(coefficients) > 2.8 * SIGMA
                coefficients *= keep
                weights = 1 / (1 + keep.sum(axis=1, dtype=np.float32))
            else:
                signal = multiply(patches(pilot, first, rows), basis) ** 2
                signal /= signal + SIGMA**2
                coefficients *= signal
                weights = 1 / np.einsum("ij,ij->i", signal, signal)
            average(multiply(coefficients, basis.T), weights, first, rows, total, weight)
        pilot = total / weight
    return pilot + mean


def psnr(a, b):
    return 10 * np.log10(255**2 / np.mean((np.clip(a, 0, 255) - b) ** 2, dtype=np.float64))


def compare(folder, gpu, host):
    a, b = (np.load(os.path.join(folder, name + ".npy")) for name in (gpu, host))
    first, *gpu_s = np.load(os.path.join(folder, gpu + "-seconds.npy"))
    gpu_s, host_s = np.median(gpu_s), np.median(np.load(os.path.join(folder, host + "-seconds.npy")))
    off = float(abs(a - b).max())
    print(f"The GPU took {1e3 * gpu_s:.1f} ms for a product, the host {1e3 * host_s:.1f} ms (medians): "
          f"{host_s / gpu_s:.1f} times as fast. The first one took {first:.1f} s, because CUDA had to start.")
    print(f"The pictures {'agree' if off < 4 else 'DIFFER'}: by {off:.2g} of 255 at most.")
    raise SystemExit(not off < 4)     # a coefficient on the threshold's edge may fall to either side


def main():
    folder, name = sys.argv[1:3]
    if name == "compare":
        compare(folder, *sys.argv[3:])
    clean = photograph()[:int(sys.argv[3]) if len(sys.argv) > 3 else None]
    noisy = clean + np.random.default_rng(1).normal(0, SIGMA, clean.shape).astype(np.float32)
    products = []
    begin = time.perf_counter()
    result = denoise(noisy, products)
    seconds = time.perf_counter() - begin
    for file, picture in (("noisy", noisy), (name, result)):
        write_png(os.path.join(folder, file + ".png"), np.clip(picture + 0.5, 0, 255).astype(np.uint8))
    np.save(os.path.join(folder, name + ".npy"), result)
    np.save(os.path.join(folder, name + "-seconds.npy"), products)
    print(f"PSNR {psnr(noisy, clean):.2f} dB noisy, {psnr(result, clean):.2f} dB denoised; "
          f"{seconds:.1f} s, of which {sum(products):.1f} s in {len(products)} products")


main()
