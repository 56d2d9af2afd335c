"""Compile the packer beside its sources: `python -m trainer.trace.packer.build`. Without it spans are recorded in Python."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from setuptools import Distribution, Extension
from setuptools.command.build_ext import build_ext

HERE = Path(__file__).parent
SLOWER = "Python packs them instead: all works, but recording takes a job several times as long."


def build() -> None:
    with TemporaryDirectory() as folder:
        extension = Extension("packed", [str(path) for path in sorted(HERE.glob("*.c"))], libraries=["m"],
                              extra_compile_args=["-O3", "-fvisibility=hidden", "-fno-math-errno", "-Wall", "-Wextra"])
        command = build_ext(Distribution({"name": "packed", "ext_modules": [extension]}))
        command.build_temp, command.build_lib, command.force = folder, str(HERE), True
        command.ensure_finalized()
        command.run()


if __name__ == "__main__":
    logging.disable(logging.INFO)
    try:
        build()
    except Exception as error:  # no compiler, none of Python's headers, or whatever else a machine lacks
        sys.exit(f"The packer of spans was not compiled, for which it takes a C compiler and Python's headers: {error}\n{SLOWER}")
