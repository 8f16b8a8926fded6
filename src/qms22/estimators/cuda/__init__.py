"""Views of the ensemble on a GPU: distances to references, and forests."""
