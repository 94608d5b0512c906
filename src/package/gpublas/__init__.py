# SPDX-License-Identifier: MIT
"""libgpublas for Python: `python -m gpublas run script.py` puts it in front of a program's BLAS, and matmul
calls it by itself."""
import os

LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libgpublas.so")

from gpublas.product import matmul  # noqa: E402

__all__ = ["LIBRARY", "matmul"]
