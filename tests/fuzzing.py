"""Profiles of Hypothesis, and how many examples a property test looks at in each."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# `make fuzz` looks at so many times as many examples.
FACTOR = 50
_DEFAULT = 100  # of Hypothesis

# Tests run in parallel, on machines of any speed.
_ANY_SPEED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def register_profiles() -> None:
    """Register "fixed", which is loaded, and "fuzz", which `--hypothesis-profile` asks for.

    A change is judged by the same examples each time; new ones are looked for every night.
    """
    settings.register_profile("fixed", _ANY_SPEED, derandomize=True, max_examples=_DEFAULT)
    settings.register_profile(
        "fuzz", _ANY_SPEED, derandomize=False, max_examples=FACTOR * _DEFAULT, print_blob=True
    )
    settings.load_profile("fixed")


def examples(number: int) -> int:
    """Return how many examples a test looks at that asks for this number of them."""
    return number * settings().max_examples // _DEFAULT
