#!/usr/bin/env python3
"""Prints very much, or what is no text at all."""

import os
import sys

MEGABYTE = b"all work and no play makes jack a dull boy, and so does this\n" * 17_190
for _ in range(int(sys.argv[1])):
    os.write(1, MEGABYTE)
os.write(1, b"\nthe end\n")
