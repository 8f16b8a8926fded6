"""Detectors on a Dask cluster: rows stay on the workers, results are those of one machine.

``pip install "qms22[dask]"``. Find the suspicious rows of a data frame with columns of any
kind::

    from distributed import Client
    from qms22.dask import detect

    client = Client("scheduler:8786")
    found = detect(normal, batch, fdr=0.1)  # the batch with score, p_value and flagged
    found[found.flagged].compute()

Where all columns are numbers, `DaskQMS22Ensemble` has the methods of `QMS22Ensemble`::

    detector = DaskQMS22Ensemble(random_state=0)
    detector.fit(normal, unlabeled=batch)
    flagged = detector.flag(fdr=0.1)  # a Dask array

Both learn from a draw. `DaskQMS22` learns from all rows, for which workers and a driver exchange
messages; the notes are about it.

`score_samples`, `decision_function` and `predict` score with any fitted detector: one that was
fitted in memory, or loaded from a file, can score more rows than fit into memory.

Notes
-----
**Exactness.** ``A_``, ``b_`` and all scores are to the bit those of `QMS22` fitted on the same rows
in one memory, for any number of workers and any chunks. Workers hold whole blocks of the kernel's
rows and send the sums of each block, which are added in the kernel's order. Therefore a fit first
moves rows between workers, into blocks; no row goes to the client.

**Round trips.** A sweep tries n_members × n_components × (n_features + 1) entries, and each trial
depends on the decision before it. A round trip tries several entries, presuming decisions from
those of the sweep before; if a presumption is wrong, the trials after it are made again. The number
of entries per round trip follows from measured times. In ``benchmarks/cluster.py``, with four
worker processes on two busy cores, the 770 entries of a sweep over 20,000 rows took 270 round trips
of half a millisecond. From about 50,000 rows per worker on, a trial takes about as long as a
message, and most round trips try one entry.

**When to use it.** For rows that do not fit into the memory of one machine. Where they fit, `QMS22`
is simpler and exchanges no messages.

**Lost workers.** A sweep is a function of ``A`` and ``b`` alone. If a worker is lost, its rows are
computed again from the Dask graph, on other workers, and the sweep starts again, with the same
result. Rows from files are then read again, as they are for each pass over the data: two passes, or
four with ``scaling="standard"``, one per restart and one for the scores of the batch. Call
``persist()`` where rows fit into the workers' memory. The graph must compute the same rows each
time; a shuffle without a seed does not.

**Limits.** The client and one worker use about a dozen bytes per row for planning, of which the
client keeps four; it also holds eight per row of the batch, for ``unlabeled_scores_``. A trial
sends 16 bytes per 2,048 rows to the driver. The driver and the shards use ports of their own and
send sums and decisions, not rows, in plain text; a driver must have the fit's secret token.
"""

from qms22._runtime.packages import need

need("distributed", "qms22.dask", "dask")

from qms22.cluster.dask_detect import detect
from qms22.cluster.dask_detector import DaskQMS22
from qms22.cluster.dask_ensemble import DaskQMS22Ensemble
from qms22.cluster.dask_scoring import decision_function, predict, score_samples

__all__ = [
    "DaskQMS22",
    "DaskQMS22Ensemble",
    "decision_function",
    "detect",
    "predict",
    "score_samples",
]
