"""Why a row is suspicious: statements, the cell to blame, and combinations of cells."""
