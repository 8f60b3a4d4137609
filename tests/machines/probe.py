"""What decides bits here, and the digests of the golden core as JSON: `python -m tests.machines.probe`."""

from __future__ import annotations

import json
import os
import platform

import llvmlite.binding
import numba
import numpy as np
import scipy
import threadpoolctl

from tests.golden.__main__ import digests


def libraries() -> dict[str, str]:
    """Return the versions, what code is compiled for, and the kernels that the linear algebra chose."""
    kernels = {each["architecture"] for each in threadpoolctl.threadpool_info() if "architecture" in each}
    return {
        "python": platform.python_version(),
        "glibc": platform.libc_ver()[1],
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
        "llvm": ".".join(map(str, llvmlite.binding.llvm_version_info)),
        "processor": os.environ.get("NUMBA_CPU_NAME") or llvmlite.binding.get_host_cpu_name(),
        "blas": ", ".join(sorted(kernels)),
    }


if __name__ == "__main__":
    print(json.dumps({"libraries": libraries(), "core": digests(None)}))
