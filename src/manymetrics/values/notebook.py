"""What notebooks show of a value: a table, every text of it escaped."""

from collections.abc import Iterable, Sequence
from html import escape


def html_table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]], *, more: int = 0) -> str:
    """A title and a table; with `more`, how many rows are not shown."""
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    rest = f"<p>and {more:,} more</p>" if more > 0 else ""
    return f"<p>{escape(title)}</p><table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>{rest}"
