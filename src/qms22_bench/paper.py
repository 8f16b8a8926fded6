"""Numbers that the paper prints; its Table 1 is `qms22_bench.datasets.paper_table1`."""

from __future__ import annotations

from dataclasses import dataclass

# Our names, in the order of the paper's tables, and the paper's names.
PAPER_NAMES = {
    "QMS22": "QMS22",
    "BRM": "BRM",
    "OCKRA": "OCKRA",
    "IsolationForest": "ISOF",
    "OneClassSVM": "ocSVM",
}


@dataclass(frozen=True)
class PaperMean:
    """A row of the paper's Table 4: AUC over its 95 data sets."""

    mean: float
    sd: float


@dataclass(frozen=True)
class PaperTest:
    """A row of the paper's Table 2: QMS22 against another detector."""

    r_plus: int
    r_minus: int
    p_value: str


TABLE4 = {
    "QMS22": PaperMean(0.8252, 0.1483),
    "BRM": PaperMean(0.8347, 0.1442),
    "OCKRA": PaperMean(0.8110, 0.1491),
    "IsolationForest": PaperMean(0.7785, 0.1410),
    "OneClassSVM": PaperMean(0.7616, 0.1493),
}

TABLE2 = {
    "BRM": PaperTest(2086, 2379, "> 0.5"),
    "OCKRA": PaperTest(2446, 2019, "> 0.4"),
    "IsolationForest": PaperTest(3470, 1090, "< 0.00001"),
    "OneClassSVM": PaperTest(3481, 984, "< 0.00001"),
}

TABLE5 = {
    "QMS22": "O(n)",
    "BRM": "O(n²)",
    "OCKRA": "not reported",
    "IsolationForest": "O(n)",
    "OneClassSVM": "convex quadratic programming",
}
