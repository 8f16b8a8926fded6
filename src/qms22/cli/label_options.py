"""True labels of a batch, and how well the outliers among them were found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from qms22.cli.shared import say

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qms22.detection import Detection
    from qms22.tables import Table


def read_truth(source: Table, label: str | None, outlier: str | None) -> NDArray[np.bool_] | None:
    """Return which rows of a table are outliers by their labels, or None without a label column.

    Labels are read chunk by chunk, and each different one is kept once.
    """
    if label is None:
        return None

    import numpy as np

    from qms22.tables.labels import outlier_labels

    n_missing = 0
    numbers: dict[str, int] = {}
    rows = []
    for table in source.chunks([label]):
        column = table.iloc[:, 0]
        n_missing += int(column.isna().sum())
        texts: Any = column.to_numpy(dtype=object)
        values, places = np.unique(texts.astype(str), return_inverse=True)
        found = [numbers.setdefault(value, len(numbers)) for value in values.tolist()]
        rows.append(np.array(found, dtype=np.int32)[places])
    if n_missing:
        lack = "1 row has" if n_missing == 1 else f"{n_missing:,} rows have"
        raise click.UsageError(f"--label {label}: {lack} no label; fill in every row")
    remedy = "name another column, or give the value of outliers with --outlier"
    where = f"--label {label}: the column"
    is_outlier = outlier_labels(np.array(list(numbers)), outlier, where, remedy)
    return is_outlier[np.concatenate(rows)]


def print_evaluation(found: Detection, truth: NDArray[np.bool_]) -> None:
    """Print how many of the flagged rows are outliers, the true positive rate and the AUC."""
    import numpy as np
    from sklearn.metrics import roc_auc_score

    from qms22.metrics import true_positive_rate_at

    is_scored = ~np.isnan(found.scores)
    scores, labels = found.scores[is_scored], truth[is_scored]
    if not labels.any() or labels.all():
        say("no evaluation: all labels are the same")
        return
    n_flagged, n_hits = int(found.flagged.sum()), int(truth[found.flagged].sum())
    if found.fdr is None:
        rate = true_positive_rate_at(labels, scores, n_flagged)
    else:  # the flagged rows need not be the first ones
        rate = n_hits / int(labels.sum())
    say(
        f"by the labels: {n_hits:,} of the {n_flagged:,} flagged "
        f"{'row is an outlier' if n_flagged == 1 else 'rows are outliers'}, "
        f"TPR {rate:.4f}, AUC {roc_auc_score(labels, scores):.4f}",
    )
