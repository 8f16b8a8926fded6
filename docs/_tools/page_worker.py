"""Run the Python blocks of one page, one after the other, in a process of their own.

Each line of standard input is a block, as JSON; each line of standard output is the answer:
``{"output": ..., "error": ...}``. Blocks share their names, as the cells of a notebook do, and the
value of a last expression is printed.
"""

from __future__ import annotations

import ast
import io
import json
import sys
import traceback
import warnings
from contextlib import redirect_stderr, redirect_stdout
from typing import Any


def run(code: str, names: dict[str, Any]) -> dict[str, str]:
    """Run a block; return what it prints, and the traceback if it fails."""
    output, error = io.StringIO(), ""
    with redirect_stdout(output), redirect_stderr(output):
        try:
            body = ast.parse(code).body
            n_before = len(body) - isinstance(body[-1], ast.Expr)
            exec(compile(ast.Module(body[:n_before], []), "<block>", "exec"), names)
            exec(compile(ast.Interactive(body[n_before:]), "<block>", "single"), names)
        except BaseException:
            error = traceback.format_exc()
    return {"output": output.getvalue(), "error": error}


def _print_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: Any = None,
    line: str | None = None,
) -> None:
    """Print a warning without the place in the code, which is not one of the reader's files."""
    print(f"{category.__name__}: {message}")


if __name__ == "__main__":
    warnings.showwarning = _print_warning
    answers, names = sys.stdout, {"__name__": "__main__"}
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line), names)), file=answers, flush=True)
