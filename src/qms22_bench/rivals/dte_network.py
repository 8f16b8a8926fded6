"""Diffusion time estimation by a neural network; needs PyTorch."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from qms22_bench.rivals.base import NoveltyDetector, check_count
from qms22_bench.rivals.dte import noise_variances
from qms22_bench.rivals.scaling import Scaler, deviation_scaler

# The settings of the paper.
_HIDDEN = (256, 512, 256)
_DROPOUT = 0.5
_ROWS_PER_STEP = 64
_LEARNING_RATE = 1e-4
_WEIGHT_DECAY = 5e-4

# In standard deviations; float32 has to hold the sums of a layer.
_LARGEST = 1e6


class DTE(NoveltyDetector):
    """Diffusion time estimation: a network guesses how much noise was added to a row.

    It is trained on normal rows with noise of a random step of a diffusion, to tell in which of a
    few ranges the step was. The score of a row is the mean of the distribution it returns. Needs
    PyTorch; runs on the CPU.

    Parameters
    ----------
    n_epochs : int, default=400
        Passes over the normal rows.
    n_steps : int, default=400
        Steps of the diffusion.
    n_bins : int, default=7
        Ranges of steps, at most `n_steps`.
    random_state : int, RandomState or None, default=None
        Seed of the network and of the noise.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the normal rows had names.

    References
    ----------
    V. Livernoche, V. Jain, Y. Hezaveh, S. Ravanbakhsh, "On diffusion modeling for anomaly
    detection", ICLR 2024. https://openreview.net/forum?id=lR3rk7ysXz
    """

    def __init__(
        self,
        *,
        n_epochs: int = 400,
        n_steps: int = 400,
        n_bins: int = 7,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_epochs = n_epochs
        self.n_steps = n_steps
        self.n_bins = n_bins
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_count("n_epochs", self.n_epochs)
        check_count("n_steps", self.n_steps, least=2)
        check_count("n_bins", self.n_bins, least=2)
        if self.n_bins > self.n_steps:
            raise ValueError(f"n_bins must be at most n_steps={self.n_steps}; got {self.n_bins}")

    def _learn_scaler(self, normal: NDArray[np.float64]) -> Scaler:
        return deviation_scaler(normal)

    def _learn(self, rows: NDArray[np.float64]) -> None:
        torch = import_torch()
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        with torch.random.fork_rng(devices=[]):  # leaves the generator of the caller alone
            torch.manual_seed(seed)
            self._network = _build_network(torch, rows.shape[1], self.n_bins)
            self._train(torch, _to_tensor(torch, rows))

    def _train(self, torch: Any, rows: Any) -> None:
        deviations = torch.from_numpy(np.sqrt(noise_variances(self.n_steps))).float()
        optimizer = torch.optim.Adam(
            self._network.parameters(), lr=_LEARNING_RATE, weight_decay=_WEIGHT_DECAY
        )
        self._network.train()
        for _ in range(self.n_epochs):
            for part in torch.randperm(len(rows)).split(_ROWS_PER_STEP):
                clean = rows[part]
                steps = torch.randint(self.n_steps, (len(part),))
                noisy = clean + deviations[steps, None] * torch.randn_like(clean)
                bins = steps * self.n_bins // self.n_steps
                loss = torch.nn.functional.cross_entropy(self._network(noisy), bins)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        self._network.eval()

    def _score(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        torch = import_torch()
        with torch.no_grad():
            shares = self._network(_to_tensor(torch, rows)).softmax(dim=1).numpy()
        times: NDArray[np.float64] = shares.astype(np.float64) @ np.arange(self.n_bins)
        return -times


def import_torch() -> Any:
    """Import PyTorch; raise ImportError with the remedy if it is missing."""
    try:
        return import_module("torch")
    except ImportError as error:
        raise ImportError(
            f"detector 'DTE' needs PyTorch, which cannot be imported ({error}); run "
            "pip install torch"
        ) from error


def _build_network(torch: Any, n_features: int, n_bins: int) -> Any:
    nn = torch.nn
    first, second, third = _HIDDEN
    return nn.Sequential(
        *(nn.Linear(n_features, first), nn.ReLU()),
        *(nn.Linear(first, second), nn.ReLU(), nn.Dropout(_DROPOUT)),
        *(nn.Linear(second, third), nn.ReLU(), nn.Dropout(_DROPOUT)),
        nn.Linear(third, n_bins),
    )


def _to_tensor(torch: Any, rows: NDArray[np.float64]) -> Any:
    return torch.from_numpy(np.clip(rows, -_LARGEST, _LARGEST)).float()
