"""A pytest plugin that loads the core from QMS22_CORE, a build with sanitizers."""

from __future__ import annotations

import importlib.util
import os
import sys

# Pytest also imports this module when it looks for tests.
if "QMS22_CORE" in os.environ:
    spec = importlib.util.spec_from_file_location("qms22._core", os.environ["QMS22_CORE"])
    assert spec is not None
    assert spec.loader is not None
    core = sys.modules["qms22._core"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(core)
