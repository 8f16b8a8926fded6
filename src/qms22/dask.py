"""QMS22 on a Dask cluster: rows stay on the workers, results are those of one machine.

``pip install "qms22[cluster]"``. Fit on Dask arrays or data frames, score lazily::

    from distributed import Client
    from qms22.dask import DaskQMS22

    client = Client("scheduler:8786")
    detector = DaskQMS22(random_state=0).fit(normal, unlabeled=batch)
    scores = detector.score_samples(more)  # a Dask collection: nothing is computed yet

`score_samples`, `decision_function` and `predict` do the same with any fitted detector, so that
one fitted in memory, or loaded from a file, scores what fits into no memory.

Notes
-----
**Exactness.** ``A_``, ``b_`` and all scores have the bits of `QMS22` fitted on the same rows in one
memory, whatever the number of workers and the chunks: workers hold whole blocks of
the kernel's rows and send the sums of each block, which are added in the kernel's order. The first
step of a fit therefore brings rows together in blocks; no row goes to the client.

**Round trips.** A sweep has n_members × n_components × (n_features + 1) entries to try, each of
which depends on what became of the one before. Both directions of an entry are one trial, and a
round trip tries several entries along the way that the sweep before makes likely: where that was
wrong, the trials after it are made again. How far to look ahead follows from the times measured.
In ``benchmarks/cluster.py``, with four worker processes on two busy cores, the 770 entries of a
sweep over 20,000 rows took 270 round trips of half a millisecond. From some 50,000 rows per worker
on, trials take about as long as messages, and most round trips try one entry.

**When to use it.** For rows that fit into no single memory. Where they do fit, `QMS22` is the
simpler choice, and has no messages to wait for.

**Lost workers.** A sweep is a function of ``A`` and ``b`` alone. Where a worker is lost, its rows
are computed anew from the Dask graph, on other workers, and the sweep starts again: the result is
the same. What is read from files is read again then, and for each pass over the data: two, or
four with ``scaling="standard"``, one per restart and one for the scores of the batch. ``persist()``
what fits into the workers' memory. A graph that gives other rows each time, such as a shuffle
without a seed, has no such result.

**Limits.** The client and one worker plan with a dozen bytes per row, of which the client keeps
four; it also holds eight per row of the batch, for ``unlabeled_scores_``. A trial sends 16 bytes
per 2,048 rows to the driver. Workers talk to each other on ports of their own, in plain text: to a
driver that has the fit's secret token, and of sums and decisions, not of rows.
"""

from qms22.cluster.dask_detector import DaskQMS22
from qms22.cluster.dask_scoring import decision_function, predict, score_samples

__all__ = ["DaskQMS22", "decision_function", "predict", "score_samples"]
