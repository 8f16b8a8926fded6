"""Tables on the workers of Dask, Ray and Spark.

A `ClusterTable` is a table whose rows stay where they are: rows are picked from it, and functions
are applied to its parts by the workers. With it `qms22.detect` and the detectors do on a cluster
what they do in memory. Sending, scheduling and recomputing are the engine's.
"""
