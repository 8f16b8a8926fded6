"""What pip installs: dependencies that are true, extras that exist, and light imports."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from oldest_versions import BENCH, PROJECT, requirements

from qms22._runtime.packages import need

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src" / "qms22"
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
PLAIN: list[str] = PROJECT["project"]["dependencies"]


def name_of(requirement: str) -> str:
    """The name of a package, as pip compares it."""
    name = re.split(r"[\[<>=~! ]", requirement, maxsplit=1)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


# Once: it reads the list of files of every package.
DISTRIBUTIONS = packages_distributions()


def packages_of(module: str) -> set[str]:
    """The packages on PyPI that a module may come from."""
    top = module.split(".")[0]
    return {name_of(name) for name in DISTRIBUTIONS.get(top, [top])}


def brings(requirements: list[str], module: str) -> bool:
    """Whether requirements bring a module; extras of a package, too."""
    names = {name_of(each) for each in requirements}
    names |= {name for each in requirements for name in re.findall(r"[\w-]+", each)}
    return bool(packages_of(module) & names)


def needed() -> Iterator[tuple[str, str, str | None]]:
    """Every call of `need`: where it is, the module, and the extra."""
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "need"):
                continue
            extra = [node.args[2]] if len(node.args) > 2 else []
            extra += [keyword.value for keyword in node.keywords if keyword.arg == "extra"]
            values = [
                each.value for each in (node.args[0], *extra) if isinstance(each, ast.Constant)
            ]
            assert len(values) == 1 + len(extra), f"{path}:{node.lineno} must name a module"
            yield f"{path.name}:{node.lineno}", str(values[0]), str(values[1]) if extra else None


def test_what_is_needed_is_installed_by_what_the_message_says() -> None:
    calls = list(needed())
    assert {extra for *_, extra in calls} >= {"sql", "plot", "pyod", "dask", "ray", "spark"}
    for where, module, extra in calls:
        requirements = PLAIN if extra is None else EXTRAS[extra]
        assert brings(requirements, module), f"{where}: {extra or 'qms22'} brings no {module}"


@pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="a source archive has no docs")
def test_extras_that_texts_name_exist() -> None:
    files = [*SOURCES.rglob("*.py"), *ROOT.glob("docs/*.md"), *ROOT.glob("tests/**/*.py")]
    named = set()
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "Makefile", *files]:
        text = path.read_text(encoding="utf-8")
        for extras in re.findall(r"(?:qms22|install \"?'?\.)\[([a-z][a-z,]*)\]", text):
            assert set(extras.split(",")) <= EXTRAS.keys(), f"{path.name} names [{extras}]"
            named |= set(extras.split(","))
    assert named == EXTRAS.keys(), "an extra that no text names"


@pytest.mark.parametrize("package", ["qms22", "qms22_bench"])
def test_everything_that_is_imported_is_declared(package: str) -> None:
    extras = [each for requirements in EXTRAS.values() for each in requirements]
    declared = [*PLAIN, *extras] if package == "qms22" else BENCH["project"]["dependencies"]
    for path in (SOURCES.parent / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                modules = [str(node.module)]
            for module in modules:
                if module.split(".")[0] not in {*sys.stdlib_module_names, package}:
                    assert brings(declared, module), f"{path.name} imports {module}"


def test_plain_rooms_import_plain_packages() -> None:
    """`detect`, `score`, model files and the page need no extra."""
    code = "import qms22.detection.results.page_content, qms22.detection.result, qms22.report.page;"
    code += "import sys;"
    code += "print(*{name.split('.')[0] for name in sys.modules})"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    extras = {name_of(each) for requirements in EXTRAS.values() for each in requirements}
    assert not extras & set(result.stdout.split())


def test_lower_bounds() -> None:
    names = [name for name, _ in requirements()]
    assert {name_of(each) for each in PLAIN} <= {name_of(name) for name in names}
    assert len({*requirements()}) == len({*names}), "two bounds of one package"


def test_a_missing_package_is_named_with_the_command() -> None:
    with pytest.raises(ImportError, match="the table needs no_such, which cannot") as caught:
        need("no_such.module", "the table", "sql")
    assert str(caught.value).endswith("run pip install 'qms22[sql]'")


LATE = """
import sys
from threading import Thread
from qms22._runtime.packages import import_late

import_late("xml.dom.minidom")
import xml.dom.minidom
from xml.dom import minidom as late
assert "xml.dom.xmlbuilder" not in sys.modules  # which it imports
found = []
threads = [Thread(target=lambda: found.append(late.parseString)) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(set(found)) == 1 and len(found) == 8, found
assert sys.modules["xml.dom.minidom"] is not late
assert xml.dom.minidom.Document is late.Document
"""


def test_a_late_module_is_imported_once_by_what_asks_for_it() -> None:
    subprocess.run([sys.executable, "-c", LATE], check=True)


def test_the_program_searches_without_scipy_stats(tmp_path: Path) -> None:
    for name, values in (("normal.csv", range(40)), ("batch.csv", range(10))):
        lines = "".join(f"{value % 7},{value % 5}\n" for value in values)
        Path(tmp_path, name).write_text(f"a,b\n{lines}")
    code = "import sys; from qms22.__main__ import main; sys.exit = lambda *_: None; main();"
    code += "print([each for each in sys.modules if each.startswith('scipy.stats.')])"
    files = [str(tmp_path / name) for name in ("normal.csv", "batch.csv")]
    result = subprocess.run(
        [sys.executable, "-c", code, "detect", *files], capture_output=True, text=True, check=True
    )
    assert result.stdout.endswith("[]\n")


@pytest.mark.parametrize("name", ["dask", "ray", "spark"])
def test_a_missing_cluster_is_named_with_its_extra(name: str) -> None:
    package = {"dask": "distributed", "ray": "ray", "spark": "pyspark"}[name]
    code = f"import sys; sys.modules[{package!r}] = None; import qms22.{name}"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 1
    last = result.stderr.strip().splitlines()[-1]
    assert f"qms22.{name} needs {package}, which cannot be imported" in last
    assert last.endswith(f"run pip install 'qms22[{name}]'")


@pytest.mark.parametrize(
    "code",
    [
        "import qms22; dir(qms22); qms22.__version__",
        "from qms22.cli import main; main(['--help'], standalone_mode=False)",
        "from qms22.cli import main; main(['detect', '--help'], standalone_mode=False)",
    ],
)
def test_imports_are_light(code: str) -> None:
    heavy = {"pandas", "scipy", "sklearn", "matplotlib", "pyarrow", "numpy", "joblib", "rich"}
    code += f"\nimport sys; print('heavy:', sorted({heavy} & set(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines()[-1] == "heavy: []"
