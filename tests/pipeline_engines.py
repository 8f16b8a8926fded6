"""Run the examples of docs/pipelines.md in the engines that they are for.

`make engines` runs it each night: each engine has an environment of its own, into which it is
installed beside qms22. A good day has to pass, and a spoilt one to fail. Names choose some engines:
``python tests/pipeline_engines.py build/engines dagster prefect``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from weeks import day, write_week

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/pipelines.md"
GOOD, SPOILT = 1, 6
DATES = {number: f"2026-03-{number + 1:02d}" for number in (GOOD, SPOILT)}


def example(heading: str, language: str) -> str:
    """Return the first block of a language below a heading of the page."""
    section = PAGE.read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    found = re.search(rf"^```{language}\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert found is not None, f"{PAGE.name} has no block of {language} below {heading!r}"
    return found[1]


def write_orders(folder: Path) -> None:
    """Write the known-normal orders, and exports of a good and of a spoilt day."""
    write_week(folder)
    for name in ("export", "load", "look-at", "results"):
        (folder / name).mkdir()
    for number, date in DATES.items():
        (folder / f"day-{number}.csv").rename(folder / f"export/{date}.csv")


class Engine:
    """An environment with an engine, and a folder with tables."""

    def __init__(self, environment: Path, folder: Path) -> None:
        self.python = environment / "bin/python"
        self.folder = folder
        self.variables = {**os.environ, "PATH": f"{environment / 'bin'}:{os.environ['PATH']}"}

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a command in the folder, and return what came of it."""
        return subprocess.run(
            command, cwd=self.folder, env=self.variables, capture_output=True, text=True
        )

    def expect(self, is_fine: bool, *command: str | Path) -> str:
        """Run a command, which has to end well or not, and return what it prints."""
        done = self.run(*command)
        printed = done.stdout + done.stderr
        assert (done.returncode == 0) == is_fine, (
            f"{command} ended with {done.returncode}: {printed}"
        )
        return printed


def check_airflow(engine: Engine) -> None:
    """Run the flow for two days."""
    (engine.folder / "dags").mkdir()
    (engine.folder / "dags/orders.py").write_text(example("Airflow", "python"))
    engine.variables |= {
        "AIRFLOW_HOME": str(engine.folder / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(engine.folder / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }
    engine.expect(True, "airflow", "db", "migrate")
    engine.expect(True, "airflow", "dags", "test", "orders", DATES[GOOD])
    failed = engine.expect(False, "airflow", "dags", "test", "orders", DATES[SPOILT])
    assert "The batch contains anomalies" in failed
    assert (engine.folder / f"look-at/{DATES[SPOILT]}.csv").exists()


def check_dagster(engine: Engine) -> None:
    """Materialize the asset with its check on two days."""
    (engine.folder / "checks.py").write_text(example("Dagster", "python"))
    script = (
        "import dagster as dg, pandas as pd, checks\n"
        "@dg.asset\n"
        "def orders():\n"
        "    pd.read_csv('export/{}.csv').to_parquet('orders.parquet')\n"
        "pd.read_csv('normal.csv').to_parquet('normal.parquet')\n"
        "result = dg.materialize([orders, checks.orders_look_as_usual])\n"
        "[found] = result.get_asset_check_evaluations()\n"
        "raise SystemExit(not found.passed)"
    )
    for number, date in DATES.items():
        engine.expect(number == GOOD, engine.python, "-c", script.format(date))


def check_prefect(engine: Engine) -> None:
    """Run the flow on two days."""
    (engine.folder / "flows.py").write_text(example("Prefect", "python"))
    engine.variables |= {
        "PREFECT_HOME": str(engine.folder / "prefect"),
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "300",
    }
    for number, date in DATES.items():
        script = f"import flows; flows.orders('export/{date}.csv')"
        printed = engine.expect(number == GOOD, engine.python, "-c", script)
        assert ("The batch contains anomalies" in printed) == (number == SPOILT)


def check_dbt(engine: Engine) -> None:
    """Run the models around the search on two days, one after the other."""
    import yaml

    project = yaml.safe_load(example("dbt with DuckDB", "yaml"))
    project |= {"name": "shop", "profile": "shop", "version": "1.0"}
    profile = {"target": "dev", "outputs": {"dev": {"type": "duckdb", "path": "shop.duckdb"}}}
    files = {
        "dbt_project.yml": yaml.safe_dump(project),
        "profiles.yml": yaml.safe_dump({"shop": profile}),
        "models/staging/staging_orders.sql": "select * from read_csv('export/today.csv')",
        "models/marts/revenue.sql": "select sum(total) as total "
        "from {{ source('main', 'good_orders') }}",
        "models/marts/sources.yml": yaml.safe_dump(
            {"version": 2, "sources": [{"name": "main", "tables": [{"name": "good_orders"}]}]}
        ),
        "job.sh": example("dbt with DuckDB", "sh"),
    }
    for name, text in files.items():
        path = engine.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    query = "import duckdb; print(duckdb.connect('shop.duckdb').sql({!r}).fetchall())"
    load = "create table orders as select * from read_csv('normal.csv')"
    engine.expect(
        True, engine.python, "-c", f"import duckdb; duckdb.connect('shop.duckdb').sql({load!r})"
    )
    for number, date in (*DATES.items(), (GOOD, DATES[GOOD])):
        (engine.folder / "export/today.csv").write_text(
            (engine.folder / f"export/{date}.csv").read_text()
        )
        engine.expect(number == GOOD, "sh", "job.sh")
        count = query.format(
            "select (select count(*) from good_orders), (select count(*) from bad_orders)"
        )
        [(good, bad)] = eval(engine.expect(True, engine.python, "-c", count))
        assert good + bad == len(day(number))
        assert (bad > 0) == (number == SPOILT)
    [(total,)] = eval(engine.expect(True, engine.python, "-c", query.format("from revenue")))
    assert abs(total - day(GOOD)["total"].sum()) < 1e-6


def check_pre_commit(engine: Engine) -> None:
    """Check a repository with a table of two days."""
    (engine.folder / ".pre-commit-config.yaml").write_text(example("pre-commit", "yaml"))
    (engine.folder / "data").mkdir()
    (engine.folder / "normal.csv").rename(engine.folder / "data/prices-checked.csv")
    engine.expect(True, "git", "init", "--quiet")
    engine.variables["PRE_COMMIT_HOME"] = str(engine.folder / "cache")
    for number, date in DATES.items():
        (engine.folder / f"export/{date}.csv").replace(engine.folder / "data/prices.csv")
        engine.expect(True, "git", "add", "data")
        printed = engine.expect(number == GOOD, "pre-commit", "run")
        assert "prices look as usual" in printed


def check_action(engine: Engine) -> None:
    """Run the step of the action that installs qms22."""
    import yaml

    action = yaml.safe_load((ROOT / ".github/actions/detect/action.yml").read_text())
    engine.variables |= {
        "PYTHON": sys.executable,
        "RUNNER_TEMP": str(engine.folder),
        "GITHUB_ACTION_PATH": str(ROOT / ".github/actions/detect"),
    }
    engine.expect(True, "bash", "-e", "-c", action["runs"]["steps"][0]["run"])
    engine.expect(True, engine.folder / "qms22/bin/qms22", "--version")


# What is installed beside qms22. Newer releases of dbt-core fetch a part of it from elsewhere, and
# the server of Prefect does not start with the newest FastAPI.
ENGINES: dict[str, tuple[Callable[[Engine], None], list[str]]] = {
    "airflow": (check_airflow, ["apache-airflow>=3"]),
    "dagster": (check_dagster, ["dagster"]),
    "prefect": (check_prefect, ["prefect", "fastapi<0.140"]),
    "dbt": (check_dbt, ["dbt-core<1.12", "dbt-duckdb"]),
    "pre-commit": (check_pre_commit, ["pre-commit"]),
    "action": (check_action, []),
}


def main(folder: Path, names: list[str]) -> None:
    """Install the engines where they are not yet, and run their examples."""
    pip = ("-m", "pip", "--quiet", "--disable-pip-version-check")
    wheels = folder / "wheels"
    subprocess.run([sys.executable, *pip, "wheel", "--no-deps", "-w", wheels, ROOT], check=True)
    [wheel] = wheels.glob("qms22-*.whl")
    for name in names or ENGINES:
        check, packages = ENGINES[name]
        environment = folder / name
        python = environment / "bin/python"
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        subprocess.run([python, *pip, "install", *packages, wheel], check=True)
        # The version stays the same while the code changes.
        again = ("install", "--force-reinstall", "--no-deps", wheel)
        subprocess.run([python, *pip, *again], check=True)
        with TemporaryDirectory() as temporary:
            write_orders(Path(temporary))
            check(Engine(environment.absolute(), Path(temporary)))
        print(f"{name}: a good day passes, and a spoilt one fails" if packages else f"{name}: fine")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
