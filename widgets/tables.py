"""Show rows of numbers in a notebook as HTML with aligned columns, or as plain text where HTML can't be shown."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from numbers import Integral, Number


@dataclass(frozen=True)
class Table:
    """Hold a table whose cells are written out already. `right` says which columns hold numbers."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[bool, ...]

    def __repr__(self) -> str:
        """Return columns of equal width, for a terminal or an export without HTML."""
        lines = [self.heads, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.heads))]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(line, widths, self.right, strict=True)
            ).rstrip()
            for line in lines
        )

    def _repr_html_(self) -> str:
        def line(cells: tuple[str, ...], tag: str) -> str:
            made = ""
            for cell, right in zip(cells, self.right, strict=True):
                side = "right" if right else "left"
                scope = ' scope="col"' if tag == "th" else ""
                style = f"text-align:{side};font-variant-numeric:tabular-nums"
                made += f'<{tag}{scope} style="{style}">{escape(cell)}</{tag}>'
            return f"<tr>{made}</tr>"

        body = "".join(line(row, "td") for row in self.rows)
        head = f"<thead>{line(self.heads, 'th')}</thead>"
        return f'<div class="wide" role="group" aria-label="Table"><table>{head}<tbody>{body}</tbody></table></div>'


def table(heads: Sequence[str], rows: Iterable[Sequence], formats: Sequence[str] | None = None) -> Table:
    """Return a table of rows. Put units into the heads, "time (µs)".

    `formats` has a format for the numbers of each column, such as ".1f" or ".0%". "" writes them as they are, whole
    numbers with commas and others with four digits.
    """
    formats, written = formats or [""] * len(heads), []
    if len(formats) != len(heads):
        raise ValueError(
            f"formats must be one for each of {len(heads)} columns, got {len(formats)}; use '' for none"
        )
    rows = [tuple(row) for row in rows]
    for number, row in enumerate(rows, 1):
        if len(row) != len(heads):
            raise ValueError(
                f"a row must have {len(heads)} cells as the heads have, got {len(row)} in row {number}"
            )
        written.append(tuple(_written(cell, form) for cell, form in zip(row, formats, strict=True)))
    right = tuple(bool(rows) and all(isinstance(row[i], Number) for row in rows) for i in range(len(heads)))
    return Table(tuple(map(str, heads)), tuple(written), right)


def _written(cell, form: str) -> str:
    if not isinstance(cell, Number) or isinstance(cell, bool):
        return str(cell)
    return format(cell, form or ("," if isinstance(cell, Integral) else ".4g"))
