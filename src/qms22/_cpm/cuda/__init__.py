"""The GPU backend: fits and scores through CuPy (``pip install "qms22[cuda]"``).

CuPy is imported when a GPU is first asked for.
"""
