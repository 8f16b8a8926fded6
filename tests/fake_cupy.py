"""A stand-in for CuPy in the host's memory, for tests without a GPU."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from qms22._cpm import scaling
from qms22._cpm.scaling import FeatureScaler

# Functions that work on its arrays as NumPy's do.
_NAMES = "zeros empty full sort searchsorted where asfortranarray ascontiguousarray"


class FakeArray(np.ndarray):
    """A NumPy array that passes for CuPy's: it will not be mixed with others."""

    def get(self) -> np.ndarray:
        return np.array(self)

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.ctypes.data)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        arrays = [array for array in inputs if isinstance(array, np.ndarray) and array.ndim]
        if not all(isinstance(array, FakeArray) for array in arrays):
            raise TypeError("Unsupported type <class 'numpy.ndarray'>")
        plain = [np.asarray(array) for array in inputs]
        out = kwargs.pop("out", (None,))[0]
        result = getattr(ufunc, method)(*plain, **kwargs)
        if out is None:
            return np.asarray(result).view(FakeArray) if np.ndim(result) else result
        np.asarray(out)[...] = result
        return out


@pytest.fixture
def fake_cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let arrays of this class pass for CuPy's."""

    def asarray(array: Any, dtype: Any = None) -> FakeArray:
        if isinstance(array, FakeArray) and dtype in (None, array.dtype):
            return array
        return np.array(array, dtype=dtype).view(FakeArray)

    def of_numpy(name: str) -> Any:
        def function(*arguments: Any, **kwargs: Any) -> FakeArray:
            if any(type(argument) is np.ndarray for argument in arguments):
                raise TypeError("Unsupported type <class 'numpy.ndarray'>")
            plain = (a.get() if isinstance(a, FakeArray) else a for a in arguments)
            return asarray(getattr(np, name)(*plain, **kwargs))

        return function

    def concatenate(arrays: list[Any]) -> FakeArray:
        return asarray(np.concatenate([array.get() for array in arrays]))

    def scale_rows(X: Any, columns: tuple[Any, ...], limit: float, scaled: Any) -> None:
        peak, center, factor = columns
        np.asarray(scaled)[...] = FeatureScaler(peak, center, factor, limit).transform(X.get())

    monkeypatch.setattr(scaling, "scale_rows", scale_rows)
    runtime = SimpleNamespace(getDeviceCount=lambda: 1, CUDARuntimeError=RuntimeError)
    fake = SimpleNamespace(
        ndarray=FakeArray,
        asarray=asarray,
        concatenate=concatenate,
        **{name: of_numpy(name) for name in _NAMES.split()},
        cuda=SimpleNamespace(runtime=runtime),
    )
    monkeypatch.setitem(sys.modules, "cupy", fake)
    return fake
