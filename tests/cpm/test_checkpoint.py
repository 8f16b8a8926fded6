"""A fit that was killed goes on from its checkpoint, to the same bits."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qms22 import QMS22, QMS22Ensemble
from qms22._cpm.checkpoint import Checkpoint
from qms22._cpm.sweeps import FitState
from qms22.estimators.batch_detector import BatchDetector

Rows = tuple[np.ndarray, np.ndarray]

QUICK: dict[str, Any] = {"n_members": 3, "n_components": 2, "max_iter": 6, "random_state": 0}

DETECTORS = {
    "one fit": QMS22(**QUICK),
    "restarts": QMS22(**QUICK, n_restarts=3),
    "side by side": QMS22(**QUICK, n_restarts=3, n_jobs=2),
    "float32": QMS22(**QUICK, dtype="float32"),
    "drawn rows": QMS22(**QUICK, max_samples=60),
    "ensemble": QMS22Ensemble(**QUICK, n_splits=3),
}


@pytest.fixture(scope="module")
def rows() -> Rows:
    rng = np.random.RandomState(0)
    batch = rng.normal(size=(50, 3))
    batch[:5] += 4
    return rng.normal(size=(120, 3)), batch


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "fit.checkpoint"


def copy_of(detector: BatchDetector, **parameters: Any) -> BatchDetector:
    return type(detector)(**{**detector.get_params(), **parameters})


def members_of(detector: Any) -> list[bytes]:
    if isinstance(detector, QMS22Ensemble):
        view: Any = detector.views_["members"]
        members = [part.members for part in view.parts]
    else:
        members = detector.restarts_
    return [one.A.tobytes() + one.b.tobytes() for one in members]


def interrupt_after(monkeypatch: pytest.MonkeyPatch, n_sweeps: int) -> None:
    """Let the next fit end with Ctrl-C."""
    update, n_made = Checkpoint.update, 0

    def counted(checkpoint: Checkpoint, number: int, state: FitState) -> None:
        nonlocal n_made
        update(checkpoint, number, state)
        n_made += 1
        if n_made == n_sweeps:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "update", counted)


@pytest.mark.parametrize("n_sweeps", [1, 4, 7])
@pytest.mark.parametrize("name", DETECTORS)
def test_goes_on_to_the_same_bits(
    name: str, n_sweeps: int, rows: Rows, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    normal, batch = rows
    expected = copy_of(DETECTORS[name]).fit(normal, unlabeled=batch)
    detector = copy_of(DETECTORS[name], checkpoint=path)
    with monkeypatch.context() as patch:
        interrupt_after(patch, n_sweeps)
        if expected.get_params().get("n_restarts", 2) * expected.n_iter_ >= n_sweeps:
            with pytest.raises(KeyboardInterrupt):
                detector.fit(normal, unlabeled=batch)
            assert path.exists()
    log = path.with_suffix(".log")
    detector.set_params(log=log).fit(normal, unlabeled=batch)
    assert members_of(detector) == members_of(expected)
    assert detector.unlabeled_scores_.tobytes() == expected.unlabeled_scores_.tobytes()
    assert detector.n_iter_ == expected.n_iter_
    assert list(path.parent.iterdir()) == [log]


# A fit kills itself at one of its writes: before it, when the new file is not yet in place, or
# after it. So the kills do not depend on the speed of the machine.
DRIVER = """
import os, random, signal
import numpy as np
from qms22 import QMS22
from qms22._cpm import checkpoint
checkpoint._SECONDS_BETWEEN = checkpoint._TIMES_BETWEEN = 0.0  # after every sweep
rng = np.random.RandomState(0)
T, S = rng.normal(size=(1_000, 6)), rng.normal(size=(300, 6))
S[:20] += 3
parameters = dict(n_members=5, n_components=5, max_iter=25, n_restarts=3, random_state=0)
parameters.update({parameters})

def fit(**others):
    return QMS22(**parameters, **others).fit(T, unlabeled=S)

def die(*ignored):
    os.kill(os.getpid(), signal.SIGKILL)

def die_at_write(number, moment):
    write, n_writes = checkpoint.Checkpoint.write, 0
    def counted(self):
        nonlocal n_writes
        n_writes += 1
        if n_writes == number and moment == "before":
            die()
        if n_writes == number and moment == "during":
            os.fsync = die
        write(self)
        if n_writes == number:
            die()
    checkpoint.Checkpoint.write = counted

random.seed(0)
n_killed = 0
for attempt in range(10):
    # The first write holds what was read, so from the third on an attempt adds a sweep.
    number, moment = random.randint(3, 6), ("before", "during", "after")[attempt % 3]
    pid = os.fork()
    if not pid:
        die_at_write(number, moment)
        fit(checkpoint="fit.npz", log="fit.jsonl")
        os._exit(0)
    n_killed += os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
found, expected = fit(checkpoint="fit.npz", log="fit.jsonl"), fit()
same = all(
    one.A.tobytes() == other.A.tobytes() and one.b.tobytes() == other.b.tobytes()
    for one, other in zip(found.restarts_, expected.restarts_)
)
print(n_killed, same, os.path.exists("fit.npz"))
"""


@pytest.mark.slow
@pytest.mark.parametrize("parameters", ["", "n_jobs=2", "n_jobs=2, dtype='float32'"])
def test_killed_ten_times(parameters: str, tmp_path: Path) -> None:
    code = DRIVER.replace("{parameters}", parameters)
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert result.stdout.split() == ["10", "True", "False"], result.stderr
    lines = (json.loads(line) for line in (tmp_path / "fit.jsonl").read_text().splitlines())
    starts = [sum(line["sweeps"]) for line in lines if line["event"] == "start"]
    assert len({*starts}) == 11  # each attempt began where the one before was killed
    assert starts == sorted(starts)


def test_killed_while_scoring(rows: Rows, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    normal, batch = rows
    detector = QMS22(**QUICK, checkpoint=path, log=path.with_suffix(".log"))

    def fail(*args: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(QMS22, "_scorer", fail)
        with pytest.raises(MemoryError):
            detector.fit(normal, unlabeled=batch)
    detector.set_params(log=path.with_suffix(".again")).fit(normal, unlabeled=batch)
    lines = path.with_suffix(".again").read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["start", "end"]


def started(rows: Rows, path: Path, monkeypatch: pytest.MonkeyPatch) -> QMS22:
    """A fit that was interrupted after two sweeps."""
    detector = QMS22(**QUICK, checkpoint=path)
    with monkeypatch.context() as patch:
        interrupt_after(patch, 2)
        with pytest.raises(KeyboardInterrupt):
            detector.fit(rows[0], unlabeled=rows[1])
    return detector


@pytest.mark.parametrize(
    ("parameters", "what"),
    [
        ({"max_iter": 7}, "max_iter"),
        ({"n_members": 4, "alpha": 0.4}, "n_members, alpha"),
        ({"random_state": 1}, "random_state"),
        ({"n_restarts": 2}, "random_state"),
        ({"scaling": "standard"}, "rows or their scaling"),
    ],
)
def test_of_other_parameters(
    parameters: dict[str, Any],
    what: str,
    rows: Rows,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    detector = started(rows, path, monkeypatch)
    before = path.read_bytes()
    message = rf"is of another fit \(not the same: {what}\); delete it to start from the"
    with pytest.raises(ValueError, match=message):
        detector.set_params(**parameters).fit(rows[0], unlabeled=rows[1])
    assert path.read_bytes() == before


@pytest.mark.parametrize("change", [lambda T, S: (T * 1.0000001, S), lambda T, S: (T[::-1], S)])
def test_of_other_rows(
    change: Callable[[np.ndarray, np.ndarray], Rows],
    rows: Rows,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    detector = started(rows, path, monkeypatch)
    normal, batch = change(*rows)
    with pytest.raises(ValueError, match=r"is of another fit \(not the same: rows or their"):
        detector.fit(normal, unlabeled=batch)
    with pytest.raises(ValueError, match="not the same: number of rows, rows or"):
        detector.fit(rows[0], unlabeled=rows[1][1:])


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_jobs_may_change(
    n_jobs: int, rows: Rows, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    detector = started(rows, path, monkeypatch)
    detector.set_params(n_jobs=n_jobs, verbose=1).fit(rows[0], unlabeled=rows[1])
    assert members_of(detector) == members_of(QMS22(**QUICK).fit(rows[0], unlabeled=rows[1]))


@pytest.mark.parametrize("damage", ["truncated", "empty", "text", "array", "archive", "pickle"])
def test_damaged_and_foreign_files(
    damage: str, rows: Rows, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    detector = started(rows, path, monkeypatch)
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:-100])
    elif damage == "array":
        with path.open("wb") as file:
            np.save(file, rows[0])
    elif damage == "archive":
        with path.open("wb") as file:
            np.savez(file, rows[0])
    elif damage == "pickle":
        with path.open("wb") as file:
            np.savez(file, fingerprint=np.array([object()]))
    else:
        path.write_text("" if damage == "empty" else "a,b\n1,2\n")
    before = path.read_bytes()
    with pytest.raises(ValueError, match="is not a checkpoint of a fit, or a damaged one; delete"):
        detector.fit(rows[0], unlabeled=rows[1])
    assert path.read_bytes() == before


FULL_DISK = """
import numpy as np
from qms22 import QMS22
from qms22._cpm import checkpoint
checkpoint._SECONDS_BETWEEN = checkpoint._TIMES_BETWEEN = 0.0
rng = np.random.RandomState(0)
T, S = rng.normal(size=(200, 20)), rng.normal(size=(100, 20))
detector = QMS22(max_iter=5, random_state=0, n_restarts=2, checkpoint="fit.npz")
try:
    detector.fit(T, unlabeled=S)
except OSError as error:
    print(error)
else:
    expected = detector.set_params(checkpoint=None).fit(T, unlabeled=S)
    print(expected.A_.tobytes() == detector.A_.tobytes())
"""


def fit_with_room(folder: Path, n_bytes: int) -> str:
    """Fit where no file can have more bytes than this."""
    result = subprocess.run(
        [sys.executable, "-c", FULL_DISK],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes)),
    )
    assert result.stderr == ""
    return result.stdout


@pytest.mark.slow
def test_full_disk(tmp_path: Path) -> None:
    # Room for the state of one of the two fits.
    words = "cannot write fit.npz: File too large; the checkpoint is as it was before; once"
    assert fit_with_room(tmp_path, 20_000).startswith(words)
    assert [file.name for file in tmp_path.iterdir()] == ["fit.npz"]
    with np.load(tmp_path / "fit.npz") as archive:
        assert archive["losses0"].size == 6
    assert fit_with_room(tmp_path, 10**6) == "True\n"
    assert list(tmp_path.iterdir()) == []


def test_bad_paths(rows: Rows, tmp_path: Path) -> None:
    for checkpoint, error, words in (
        (3, ValueError, "checkpoint must be a path or None; got 3"),
        (tmp_path / "no" / "fit", FileNotFoundError, "'.*no' of the checkpoint does not exist"),
        (tmp_path, ValueError, "is not a checkpoint of a fit"),
    ):
        with pytest.raises(error, match=words):
            QMS22(**QUICK, checkpoint=checkpoint).fit(rows[0], unlabeled=rows[1])  # type: ignore[arg-type]


def test_a_fit_without_a_seed_cannot_go_on(rows: Rows, path: Path) -> None:
    with pytest.raises(ValueError, match="a checkpoint needs the same random numbers each time"):
        QMS22(checkpoint=path).fit(rows[0], unlabeled=rows[1])


def test_models_keep_no_paths(rows: Rows, path: Path) -> None:
    pytest.importorskip("skops")
    from qms22.models import load_model, save_model

    detector = QMS22(**QUICK, checkpoint=path, log=path.with_suffix(".log"))
    detector.fit(rows[0], unlabeled=rows[1])
    save_model(path.with_suffix(".skops"), detector)
    model = load_model(path.with_suffix(".skops"))
    assert (model.detector.checkpoint, model.detector.log) == (None, None)
    assert model.facts["parameters"]["checkpoint"] is None
    assert detector.checkpoint == path
