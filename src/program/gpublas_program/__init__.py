# SPDX-License-Identifier: MIT
"""The program `gpublas`: see src/README.md."""
