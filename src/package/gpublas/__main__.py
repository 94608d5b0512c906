# SPDX-License-Identifier: MIT
"""python -m gpublas: the program gpublas, with the wheel's library."""
import sys

from gpublas import LIBRARY
from gpublas_program.program import main

sys.exit(main(LIBRARY))
