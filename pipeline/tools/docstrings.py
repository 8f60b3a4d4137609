"""Read what classes say of themselves and of their fields: settings and records are documented there."""

from __future__ import annotations

import ast
import inspect
import textwrap


def summary(kind: type) -> str:
    """Return the first paragraph of a class's docstring, in one line."""
    return (inspect.getdoc(kind) or "").split("\n\n")[0].replace("\n", " ")


def attribute_docstrings(kind: type) -> dict[str, str]:
    """Return the docstrings below the fields of a class, each in one line.

    Examples
    --------
    >>> from pipeline.config.settings import Learner
    >>> attribute_docstrings(Learner)["preset"][:36]
    'What the settings are that are not n'
    """
    try:
        source = textwrap.dedent(inspect.getsource(kind))
    except OSError:  # the program was installed without its sources
        return {}
    [definition] = ast.parse(source).body
    assert isinstance(definition, ast.ClassDef)
    texts: dict[str, str] = {}
    for statement, following in zip(definition.body, definition.body[1:], strict=False):
        match statement, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = " ".join(text.split())
    return texts
