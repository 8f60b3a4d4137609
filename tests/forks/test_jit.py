"""Compiled code is cached where a folder can be written, and is used without one."""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError

import forks
import pipeline
import research
from forks.algorithm.kernels import linear
from forks.jit import MARKS, njit
from tests.forks.docstrings import modules_of

PROGRAM = """
import numpy as np
import pipeline.model.warm_up, pipeline.task.merging, pipeline.records.decimals
import pipeline.records.column_encoder, pipeline.records.waiting_texts
from forks.algorithm.kernels import linear
assert linear(np.ones(2), np.ones(2)) == 2.0
"""


@pytest.fixture
def unwritable(tmp_path: Path) -> dict[str, str]:
    """Variables with which Numba finds no folder: a file is where each would be, which stops root, too."""
    file = tmp_path / "file"
    file.touch()
    # Only the folder that the user names is looked for, as if that of the package were read-only.
    only = "UserProvidedCacheLocator"
    return {"NUMBA_CACHE_DIR": str(file / "cache"), "NUMBA_CACHE_LOCATOR_CLASSES": only, "HOME": str(file)}


def test_without_a_folder_to_write_everything_runs_with_one_warning(unwritable: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | unwritable,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("RuntimeWarning: no folder for compiled code can be written") == 1


def test_with_a_folder_code_is_cached_there(tmp_path: Path) -> None:
    variables = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=variables, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert any(path.name.startswith("kernels.linear-") for path in tmp_path.rglob("*.nbi"))


def test_a_call_is_that_of_numba_itself() -> None:
    compiled: Any = linear
    assert isinstance(compiled._cache, FunctionCache)
    assert isinstance(compiled, Dispatcher)


def test_the_folder_of_the_cache_is_known(tmp_path: Path, unwritable: dict[str, str]) -> None:
    program = (
        "from forks.compiled.philox import philox; from forks.jit import cache_folder;"
        "print(cache_folder(philox))"
    )
    for variables, parent in ((unwritable, None), ({"NUMBA_CACHE_DIR": str(tmp_path)}, tmp_path)):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program],
            env=os.environ | variables,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.startswith(str(parent)), done.stdout


def test_code_for_another_processor_is_neither_loaded_nor_lost(tmp_path: Path) -> None:
    program = """
import numpy as np
from forks.algorithm.kernels import gaussian_column
values = np.random.default_rng(0).normal(size=(7, 5))
print(gaussian_column(values[0], values, 0.3).tobytes().hex(), sum(gaussian_column.stats.cache_hits.values()))
"""

    def run(cpu: str | None) -> list[str]:
        command = [sys.executable, "-c", program]
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        environment.pop("NUMBA_CPU_NAME", None)
        if cpu is not None:
            environment["NUMBA_CPU_NAME"] = cpu
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.split()

    bits, hits = zip(*map(run, ("generic", None, "generic", None)), strict=True)
    assert len(set(bits)) == 1
    assert hits == ("0", "0", "1", "1")


def test_code_is_compiled_anew_where_a_function_that_it_calls_has_changed(tmp_path: Path) -> None:
    package = tmp_path / "counted"
    package.mkdir()
    (package / "__init__.py").touch()
    inner = "from forks.jit import njit\n\n@njit(cache=True)\ndef one() -> int:\n    return {number}\n"
    (package / "outer.py").write_text(
        "from counted.inner import one\nfrom forks.jit import njit\n\n"
        "@njit(cache=True)\ndef two() -> int:\n    return 2 * one()\n"
    )
    assert outputs(tmp_path, inner) == ["2 0", "2 1", "8 0", "8 1"]


def outputs(folder: Path, inner: str) -> list[str]:
    """Return result and hits of the cache where a module has the number 1 twice, and then 4 twice."""
    program = "from counted.outer import two\nprint(two(), sum(two.stats.cache_hits.values()))"
    path = os.pathsep.join([str(folder), str(Path(forks.__file__).parents[1])])
    variables = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": path}

    def run(number: int) -> str:
        (folder / "counted" / "inner.py").write_text(inner.format(number=number))
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    return [run(number) for number in (1, 1, 4, 4)]


def test_code_is_compiled_anew_where_an_instruction_of_it_has_changed(tmp_path: Path) -> None:
    package = tmp_path / "counted"
    package.mkdir()
    (package / "__init__.py").touch()
    instruction = (
        "from llvmlite import ir\nfrom numba import types\nfrom numba.extending import intrinsic\n\n"
        "@intrinsic\ndef one(typing):\n"
        "    return types.int64(), lambda *_: ir.Constant(ir.IntType(64), {number})\n"
    )
    (package / "outer.py").write_text(
        "from counted.inner import one\nfrom forks.jit import njit\n\n"
        "@njit(cache=True)\ndef two() -> int:\n    return 2 * one()\n"
    )
    assert outputs(tmp_path, instruction) == ["2 0", "2 1", "8 0", "8 1"]


def test_an_error_of_numba_itself_is_not_taken_for_a_missing_folder() -> None:
    with pytest.raises(TypeError):
        njit(cache=True)(3)  # type: ignore[type-var]  # no function


def compiled_functions() -> Iterator[Any]:
    """Yield the compiled functions of all packages."""
    modules = {*modules_of(forks), *modules_of(pipeline), *modules_of(research)}
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, Dispatcher) and value.__module__ == module.__name__:
                yield value


def test_all_that_is_compiled_comes_from_files_that_the_cache_looks_at() -> None:
    own = {package.__name__ for package in (forks, pipeline, research)}
    for function in compiled_functions():
        module = sys.modules[function.__module__]
        imported = {
            alias.asname or alias.name: node.module or ""
            for node in ast.parse(inspect.getsource(module)).body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        names = inspect.getclosurevars(function.py_func).globals
        sources = {imported[name] for name in names if name in imported} | {module.__name__}
        for source in sources:
            package = source.partition(".")[0]
            if package in own:
                text = inspect.getsource(sys.modules[source]).encode()
                assert any(mark in text for mark in MARKS), f"{function} has code or constants of {source}"
                assert package in {module.__name__.partition(".")[0], "forks"}, f"{function} has {source}"


def functions_that_do_not_allocate() -> Iterator[Any]:
    """Yield those that create no arrays."""
    return (each for each in compiled_functions() if not allocates(each))


def allocates(function: Any) -> bool:
    return bool(function.targetoptions.get("_nrt", True))


def inlined(function: Any) -> bool:
    return bool(function.targetoptions.get("inline") == "always")


def test_functions_that_do_not_allocate_call_none_that_does() -> None:
    # References are not counted there: what the called one made would never be freed.
    functions = list(functions_that_do_not_allocate())
    assert len(functions) > 50
    for function in functions:
        names = inspect.getclosurevars(function.py_func).globals.values()
        for called in (value for value in names if isinstance(value, Dispatcher)):
            assert inlined(called) or not allocates(called), f"{function} calls {called}"


def test_functions_that_do_not_allocate_return_no_array() -> None:
    # No reference to it is counted: a caller that counts them would free it too early.
    for function in functions_that_do_not_allocate():
        returned = typing.get_type_hints(function.py_func)["return"]
        parts = typing.get_args(returned) or (returned,)
        scalars = {int, float, bool, type(None), np.uint32, np.uint64, np.int64}
        assert inlined(function) or set(parts) <= scalars, f"{function} returns {returned}"


def test_a_function_that_allocates_has_to_say_so() -> None:
    @njit(cache=False)
    def make() -> float:
        return float(np.ones(2)[0])

    with pytest.raises(NumbaError):
        make()
