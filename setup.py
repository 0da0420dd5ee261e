"""Compile the kernels; everything else is in pyproject.toml.

What Cython generates for views of memory is the same 23 000 lines of C for every kernel, and took most of the time of
the compiler; it is a module of its own, ``kernels/_shared``, which the kernels import.

One abi3 build per platform serves every CPython from 3.11 on; a free-threaded one has no such interface and gets a
build for its version, as does LOGREEL_ABI3=0, to compare (docs/decisions/wheels.md). LOGREEL_DEBUG=1 builds for gdb
and sanitizers: an index outside of an array raises IndexError, and a pointer outside of its buffer ends the process
(kernels/debug.pxd).
"""

import os
import sys
import sysconfig
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

DEBUG = bool(os.environ.get("LOGREEL_DEBUG"))
ABI3 = not sysconfig.get_config_var("Py_GIL_DISABLED") and os.environ.get("LOGREEL_ABI3") != "0"
MSVC = sys.platform == "win32"
FLAGS = [] if MSVC else (["-O1", "-g"] if DEBUG else ["-O3", "-g0"])
#: It runs once for each call of a kernel, not for each byte.
SHARED, SHARED_FLAGS = "_shared", [] if MSVC else ["-O1", FLAGS[1]]

kernels = [
    Extension(
        f"logreel.kernels.{name}",
        [f"src/logreel/kernels/{name}{'.c' if name == SHARED else '.py'}"],
        extra_compile_args=SHARED_FLAGS if name == SHARED else FLAGS,
        define_macros=[
            *([("Py_LIMITED_API", "0x030B0000"), ("CYTHON_LIMITED_API", "1")] if ABI3 else []),
            *([("LOGREEL_DEBUG", "1")] if DEBUG else []),
        ],
        py_limited_api=ABI3,
    )
    for name in (SHARED, *sorted(path.stem for path in Path("src/logreel/kernels").glob("[a-z]*.py")))
]

setup(
    ext_modules=cythonize(
        kernels,
        nthreads=os.cpu_count() or 1,
        include_path=["src"],
        # Cython does not notice changed directives.
        build_dir="build/cython-debug" if DEBUG else "build/cython",
        shared_utility_qualified_name=f"logreel.kernels.{SHARED}",
        compiler_directives={
            "language_level": "3",
            "boundscheck": DEBUG,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": DEBUG,
            "embedsignature": True,
            # No kernel keeps what calls share, but mapguard: its slots are taken and changed by atomic operations.
            "freethreading_compatible": True,
        },
    ),
    options={
        **({"bdist_wheel": {"py_limited_api": "cp311"}} if ABI3 else {}),
        "build_ext": {"parallel": os.cpu_count() or 1},
    },
)
