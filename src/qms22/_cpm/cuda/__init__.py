"""The GPU backend: fits and scores through CuPy (``pip install "qms22[cuda]"``).

CuPy is imported on first use.
"""
