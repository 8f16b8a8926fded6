"""The evaluation uses qms22 as any other program does: by its documented names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def imported() -> Iterator[tuple[str, str, str]]:
    """Every name of qms22 that the evaluation imports: where, the module, the name."""
    for path in sorted((ROOT / "src" / "qms22_bench").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                assert not any(alias.name.split(".")[0] == "qms22" for alias in node.names), path
            elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "qms22":
                for alias in node.names:
                    yield path.name, str(node.module), alias.name
        # The registry names classes by their addresses.
        for module, name in re.findall(r'"(qms22(?:\.[\w.]+)?):(\w+)"', text):
            yield path.name, module, name


@pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="a source archive has no docs")
def test_the_evaluation_imports_documented_names_only() -> None:
    found = list(imported())
    assert {("qms22", "QMS22"), ("qms22.tables", "open_table"), ("qms22.metrics", "roc")} <= {
        (module, name) for _, module, name in found
    }
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"auto(?:class|function):: (\S+)", text)) | {"qms22.__version__"}
    for module, names in re.findall(r"automodule:: (\S+)\n +:members: (.+)", text):
        documented |= {f"{module}.{name}" for name in names.split(", ")}
    for where, module, name in found:
        assert f"{module}.{name}" in documented, f"{where} imports {name} of {module}"
        assert hasattr(import_module(module), name)
