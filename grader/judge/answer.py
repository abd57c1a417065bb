"""Find the answer, the text of one cell, and normalise it. For kernels, check that the cell holds only allowed code."""

import ast
import hashlib
import unicodedata
from pathlib import Path

MOST_BYTES = 200_000
MARKERS = ("### BEGIN SOLUTION", "### END SOLUTION")


class Refused(Exception):
    """Say that the cell holds something an answer may not hold. This costs nothing, and names what is allowed."""

    def __init__(self, message: str, line: int | None = None):
        super().__init__(message)
        self.line = line


class NotFound(Exception):
    """Say that the cell of an answer could not be found from the passed object."""


def normalise(source: str) -> str:
    """Return one text for one answer, whether it comes from a cell, a file or a submitted notebook."""
    if len(source.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise Refused(f"an answer must be at most {MOST_BYTES // 1000} kB, got {len(source) // 1000} kB")
    text = source.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    for number, line in enumerate(text.split("\n"), 1):
        for char in line:
            if char != "\t" and unicodedata.category(char) in ("Cc", "Cf", "Cs"):
                raise Refused(
                    f"an answer must be visible text, got the hidden character U+{ord(char):04X}", number
                )
    lines = [line.rstrip() for line in text.split("\n") if line.strip() not in MARKERS]
    return "\n".join(lines).strip("\n") + "\n"


def digest(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()


def of_object(answer) -> str:
    """Return the source of the cell that defines `answer`: a function, a jit function, a path, or the text itself."""
    if isinstance(answer, Path):
        return answer.read_text(encoding="utf-8")
    if isinstance(answer, str):
        return answer
    function = answer
    while hasattr(function, "__wrapped__") or hasattr(function, "fn"):
        function = getattr(function, "__wrapped__", None) or function.fn
    code = getattr(function, "__code__", None) or getattr(
        getattr(function, "__init__", None), "__code__", None
    )
    if code is None:
        raise NotFound(
            f"answer must be the function that your cell defines, got {type(answer).__name__}; pass its name without brackets"
        )
    return _cell_text(code.co_filename)


def _cell_text(filename: str) -> str:
    import linecache

    lines = linecache.getlines(filename)
    if not lines and Path(filename).is_file():
        lines = Path(filename).read_text(encoding="utf-8").splitlines(keepends=True)
    if not lines or filename.startswith("<string"):
        raise NotFound(
            "the cell of this answer could not be found; run it as a plain cell (no %%time, no exec) and check again"
        )
    return "".join(lines)


DEEPEST = 300


def require_parses(source: str) -> None:
    """Refuse a text that Python would not read, or that is nested deeper than any that a person writes."""
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        line = "".join(source.splitlines()[slice((error.lineno or 1) - 1, error.lineno)]).strip()
        if line.startswith(("%", "!")):
            raise Refused(
                f"an answer must be plain Python, got the notebook magic {line[:40]!r}, which only Jupyter runs; "
                "move that line to a cell of your own",
                error.lineno,
            ) from None
        raise Refused(f"the cell must be Python, got a text that is not: {error.msg}", error.lineno) from None
    except (ValueError, RecursionError, MemoryError):
        raise Refused(
            f"an answer may be nested at most {DEEPEST} deep, got more; write it in steps"
        ) from None
    level, depth = [tree], 0
    while level:
        depth += 1
        if depth > DEEPEST:
            line = next((one.lineno for one in level if hasattr(one, "lineno")), None)
            raise Refused(
                f"an answer may be nested at most {DEEPEST} deep, got more; write it in steps", line
            )
        level = [child for node in level for child in ast.iter_child_nodes(node)]
