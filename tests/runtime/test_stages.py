"""The line that says what a long run is doing."""

from __future__ import annotations

import io
from contextlib import redirect_stderr

import pytest

from qms22._runtime import stages
from qms22._runtime.stages import begin_stage, clear_stage, progress_bar, stages_shown


class Screen(io.StringIO):
    """A terminal of one line."""

    def isatty(self) -> bool:
        return True

    @property
    def line(self) -> str:
        return self.getvalue().split("\r\x1b[K")[-1]


@pytest.fixture(autouse=True)
def width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(stages, "SECONDS_BETWEEN", 0.0)


def test_a_stage_replaces_the_one_before() -> None:
    with redirect_stderr(Screen()) as screen, stages_shown(enabled=True) as is_shown:
        assert is_shown
        begin_stage("reading today.csv")
        assert screen.line == "reading today.csv …"
        begin_stage("learning")
        assert screen.line == "learning …"
        with progress_bar("sweeps", 80, enabled=True) as show:
            show(20, "loss 3")
            assert screen.line == "learning: 25 %"
        clear_stage()
        assert screen.line == ""
        begin_stage("a stage with a long name that does not fit in")
        assert screen.line == "a stage with a long name that does not "
    assert screen.line == ""
    assert "\n" not in screen.getvalue()


@pytest.mark.parametrize(("stream", "enabled"), [(Screen(), False), (io.StringIO(), True)])
def test_if_not_asked_or_without_a_terminal_nothing_is_shown(
    stream: io.StringIO, enabled: bool
) -> None:
    with redirect_stderr(stream), stages_shown(enabled=enabled) as is_shown:
        assert not is_shown
        begin_stage("learning")
        clear_stage()
    assert stream.getvalue() == ""


def test_the_line_is_removed_if_the_run_fails() -> None:
    def fail() -> None:
        with stages_shown(enabled=True):
            begin_stage("learning")
            raise KeyboardInterrupt

    with redirect_stderr(Screen()) as screen:
        with pytest.raises(KeyboardInterrupt):
            fail()
        assert "learning" in screen.getvalue()
        assert screen.line == ""
        begin_stage("later")
        assert screen.line == ""
