"""Nothing on the way of an output calls a function that may round otherwise elsewhere.

Such are those of the C library, of BLAS and LAPACK, and of NumPy where its code depends on the processor.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import forks
import pipeline
from forks import Forks, ForksSettings
from forks.jit import njit
from pipeline.model.rival import RIVALS, RivalSettings
from pipeline.serving.exploration import probabilities_of_best
from tests.forks.docstrings import modules_of
from tests.golden import core, scenarios

ROOT: Final = Path(__file__).parents[1]

OUTSIDE: Final = {
    "forks/validation/": "makes figures of outputs",
    "pipeline/model/rival.py": "draws events that are thrown away",
    "pipeline/model/warm_up.py": "draws events that are thrown away",
    "pipeline/sources/": "makes inputs",
    "pipeline/tools/": "makes figures of outputs",
}
"""Beginnings of paths whose code may call everything, and why."""

EXACT: Final = {
    *(
        "ceil",
        "copysign",
        "fabs",
        "factorial",
        "floor",
        "fsum",
        "frexp",
        "inf",
        "isfinite",
        "isinf",
        "isnan",
        "nan",
    ),
    *("ldexp", "nextafter", "pi", "prod", "sqrt"),
}
"""Names of `math` whose results IEEE 754, or their definition, leaves no choice."""

INEXACT: Final = {
    *("arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "cbrt", "cos", "cosh", "exp"),
    *("exp2", "expm1", "float_power", "hypot", "i0", "log", "log10", "log1p", "log2", "logaddexp"),
    *("logaddexp2", "power", "sin", "sinc", "sinh", "tan", "tanh", "geomspace", "logspace", "random"),
    *("linalg", "fft", "convolve", "correlate", "dot", "einsum", "inner", "matmul", "tensordot", "vdot"),
    *("cov", "corrcoef", "polyfit", "kron"),
}
"""Names of `numpy` that call the C library, BLAS or LAPACK, or depend on the processor or its version."""

EXACT_CALLS: Final = re.compile(
    r"llvm\.(fma|fabs|sqrt|floor|rint|masked\.(gather|scatter|load|store))\.|sqrt$|PyFloat_"
)
"""Functions of numbers that compiled code may call: IEEE 754 rounds them, or they are no arithmetic."""

NOT_COMPILED: Final = {
    "forks.algorithm.kernels": {
        "factorised_matrix",
        "linear",
        "linear_matrix",
        "polynomial",
        "polynomial_matrix",
    },
    "forks.learning.events": {"_factors"},
    "forks.learning.factors": {"_fill_slots"},
    "forks.sparse.scores": {"weights_in_use"},  # of explanations
    "forks.validation.hindsight": {"_slopes", "losses"},
    "pipeline.features.effects": {"replace"},
}
"""What `compiled_modules` does not compile of `forks`, and of `pipeline` where it computes."""


def sources() -> Iterator[tuple[str, ast.Module]]:
    """Yield the source of each module on the way of an output, with its path."""
    for folder in ("forks", "pipeline"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            path = file.relative_to(ROOT).as_posix()
            if not path.startswith(tuple(OUTSIDE)):
                yield path, ast.parse(file.read_text())


def suspects(tree: ast.Module) -> Iterator[str]:
    """Yield what a module has that may round otherwise elsewhere, as it stands in the source."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="math"), attr=name) if name not in EXACT:
                yield ast.unparse(node)
            case ast.Attribute(value=ast.Name(id="np"), attr=name) if name in INEXACT:
                yield ast.unparse(node)
            case ast.ImportFrom(module="math", names=names) if not {each.name for each in names} <= EXACT:
                yield ast.unparse(node)
            case ast.ImportFrom(module=str(module)) if _inexact_module(module):
                yield ast.unparse(node)
            case ast.Import(names=names) if any(_inexact_module(each.name) for each in names):
                yield ast.unparse(node)
            case ast.BinOp(op=ast.MatMult()) | ast.AugAssign(op=ast.MatMult()):
                yield ast.unparse(node)
            case ast.Attribute(attr="dot"):
                yield ast.unparse(node)
            case ast.BinOp(left=base, op=ast.Pow()) if not _exact_base(base):
                yield ast.unparse(node)
            case ast.AugAssign(op=ast.Pow()):
                yield ast.unparse(node)


def _inexact_module(name: str) -> bool:
    return name.partition(".")[0] in {"cmath", "scipy", "statistics"} and name != "scipy.sparse"


def _exact_base(base: ast.expr) -> bool:
    """Whether a power is one of integers, or of 2."""
    return isinstance(base, ast.Constant) and (isinstance(base.value, int) or base.value == 2.0)


def test_no_source_on_the_way_of_an_output_names_such_a_function() -> None:
    found = {path: names for path, tree in sources() if (names := [*suspects(tree)])}
    assert not found


@pytest.mark.parametrize("beginning", OUTSIDE)
def test_what_is_outside_has_a_reason_to_be(beginning: str) -> None:
    files = [ROOT / beginning] if beginning.endswith(".py") else (ROOT / beginning).rglob("*.py")
    assert any(True for file in files for _ in suspects(ast.parse(file.read_text())))


@pytest.mark.parametrize(
    "line",
    [
        "math.exp(x)",
        "np.hypot(x, y)",
        "np.linalg.norm(x)",
        "x @ y",
        "x.dot(y)",
        "x**2",
        "x **= 0.5",
        "10.0**x",
        "from math import log",
        "from scipy.special import expit",
        "import scipy.linalg",
        "from statistics import NormalDist",
    ],
)
def test_such_a_function_is_seen(line: str) -> None:
    assert [*suspects(ast.parse(line))]


@pytest.mark.parametrize(
    "line", ["math.sqrt(x)", "np.sqrt(x) + np.square(x)", "2**64", "2.0**-53", "from math import pi"]
)
def test_exact_ones_are_let_through(line: str) -> None:
    assert not [*suspects(ast.parse(line))]


def dispatchers() -> list[Any]:
    """Return all compiled functions of both packages."""
    modules = {*modules_of(forks), *modules_of(pipeline)}
    return [
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, Dispatcher) and value.__module__ == module.__name__
    ]


@pytest.fixture(scope="module")
def compiled() -> set[Any]:
    """All functions that are compiled, by themselves or as a part of others, after all kinds of learning."""
    core.replay(scenarios.slates(), batch=150, snapshot_every=5)
    for kind in RIVALS:
        RivalSettings.of(kind, {}, 3).warm_up()
    learner = Forks(ForksSettings.practical(2, tracking=True))
    learner.learn_many(np.eye(2), [1.0, -1.0], weights=[2.0, 0.5])
    learner.replace_one([1.0, 0.0], 1.0, -1.0)
    learner.explain_one([1.0, 0.0])
    learner.variances(np.eye(2))
    probabilities_of_best(np.zeros(2), np.ones(2))
    found = set[Any]()
    waiting = [each for each in dispatchers() if each.overloads]
    while waiting:
        function = waiting.pop()
        if function not in found:
            found.add(function)
            names = inspect.getclosurevars(function.py_func).globals.values()
            waiting += [each for each in names if isinstance(each, Dispatcher)]
    return found


def calls(function: Any) -> Iterator[str]:
    """Yield the functions of floating-point numbers that the code of a compiled function calls."""
    for overload in function.overloads.values():
        code = str(overload.library._get_module_for_linking())
        for declared in re.findall(r"^declare .*\bdouble\b.*$", code, re.MULTILINE):
            yield re.search(r"@\"?([^\"(]+)", declared)[1]  # type: ignore[index]  # each has a name


@pytest.mark.slow
def test_compiled_code_calls_no_such_function(compiled: set[Any]) -> None:
    found = {
        f"{function.__module__}.{function.__name__}": others
        for function in compiled
        if not function.__module__.startswith("forks.validation")
        and (others := {name for name in calls(function) if not EXACT_CALLS.match(name)})
    }
    assert not found


def test_such_a_call_is_seen() -> None:
    @njit(cache=False)
    def grow(x: float) -> float:
        return math.exp(x)

    grow(1.0)
    assert [name for name in calls(grow) if not EXACT_CALLS.match(name)] == ["llvm.exp.f64"]


@pytest.mark.slow
def test_what_is_not_compiled_here_is_known(compiled: set[Any]) -> None:
    computing = ("forks.", "pipeline.features", "pipeline.model", "pipeline.serving")
    missing = {
        (each.__module__, each.__name__)
        for each in dispatchers()
        if each not in compiled and each.__module__.startswith(computing)
    }
    # Other tests of the same process may have compiled some of them.
    assert missing <= {(module, name) for module, names in NOT_COMPILED.items() for name in names}
