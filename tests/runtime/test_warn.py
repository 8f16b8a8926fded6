"""Warnings point at the line of the user, however deep in the package they are raised."""

from __future__ import annotations

from typing import Any

import pytest

from qms22._runtime.warn import warn_user


@pytest.mark.parametrize("depth", [0, 1, 5])
def test_the_first_caller_outside_of_the_package_is_named(depth: int) -> None:
    package: dict[str, Any] = {"__name__": "qms22.somewhere", "warn_user": warn_user}
    exec("def call(n):\n    call(n - 1) if n else warn_user('look out')", package)
    with pytest.warns(UserWarning, match="look out") as warned:
        package["call"](depth)
    assert warned[0].filename == __file__


def test_a_caller_without_a_module_is_no_trouble() -> None:
    nowhere: dict[str, Any] = {"warn_user": warn_user}
    with pytest.warns(UserWarning, match="look out"):
        exec("warn_user('look out')", nowhere)
