"""Tables: what every report, finding and query gives."""
from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple, Optional, Tuple, Union, overload

from . import _core
from ._frame import frame_of

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

# How much a notebook shows of a table.
HTML_ROWS = 30

Cell = Union[str, int, float, bool, None]
Row = Dict[str, Cell]


class Column(NamedTuple):
    """type: "string", "integer", "number" or "boolean"; unit: "", "count", "ns", "time_ns", "us", "bytes", "percent", "ratio" or "flops"."""

    id: str
    title: str
    type: str
    unit: str
    help: str


class Table:
    """Typed columns of equal length; a cell is None where the value is not known, never 0.

    len(table) rows; table["calls"] is a column as a list, table[0] a row as a dict, table[:10] some rows; iterating gives the rows.
    print(table) shows it as `opscope report` does, a notebook as HTML. It needs its trace no more, and never changes.

    It speaks Arrow's PyCapsule interface: polars.DataFrame(table), pyarrow.table(table), pandas.DataFrame.from_arrow(table) (pandas 3),
    duckdb and others take its columns without copying them again.
    """

    def __init__(self, table: _core.Table):
        self._table = table
        #: Name of the report or section.
        self.name: str = table.name
        #: Its heading.
        self.title: str = table.title
        #: What its numbers do not cover, and what is unknown and why.
        self.notes: Tuple[str, ...] = table.notes
        self.columns: Tuple[Column, ...] = tuple(Column(*facts) for facts in table.columns)
        self._number = {c.id: i for i, c in enumerate(self.columns)}

    @property
    def sections(self) -> Dict[str, Table]:
        """Further tables of the same report, by name."""
        return {t.name: Table(t) for t in self._table.sections}

    def __len__(self) -> int:
        return self._table.rows

    def _column(self, column: str) -> List[Cell]:
        try:
            return self._table.column(self._number[column])
        except KeyError:
            raise KeyError(f"no column {column!r} in {self.name}; there are: {', '.join(self._number)}") from None

    def _row(self, number: int) -> Row:
        return dict(zip(self._number, self._table.row(number)))

    def _rows(self) -> Iterator[Row]:
        ids = list(self._number)
        for values in zip(*(self._column(c) for c in ids)):
            yield dict(zip(ids, values))

    def __iter__(self) -> Iterator[Row]:
        return self._rows()

    @overload
    def __getitem__(self, key: str) -> List[Cell]: ...
    @overload
    def __getitem__(self, key: int) -> Row: ...
    @overload
    def __getitem__(self, key: slice) -> List[Row]: ...

    def __getitem__(self, key: Union[str, int, slice]) -> Union[List[Cell], Row, List[Row]]:
        if isinstance(key, str):
            return self._column(key)
        at = range(len(self))[key]
        return self._row(at) if isinstance(at, int) else [self._row(i) for i in at]

    def to_dict(self) -> Dict[str, List[Cell]]:
        """Column id -> values."""
        return {c: self._column(c) for c in self._number}

    def _text(self, format: str, **options: str) -> bytes:
        return self._table.render(format, options)

    @staticmethod
    def _put(text: bytes, path: Union[str, os.PathLike[str], None]) -> str:
        if path is not None:
            with open(path, "wb") as f:
                f.write(text)
        return text.decode()

    def to_csv(self, path: Union[str, os.PathLike[str], None] = None) -> str:
        """The same bytes as `opscope report NAME --format=csv`: ids as the header, numbers in full, an empty field where unknown."""
        return self._put(self._text("csv"), path)

    def to_json(self, path: Union[str, os.PathLike[str], None] = None) -> str:
        """As `--format=json`, with notes and sections."""
        return self._put(self._text("json"), path)

    def to_markdown(self, path: Union[str, os.PathLike[str], None] = None) -> str:
        """As `--format=markdown`: for pull requests and issues."""
        return self._put(self._text("markdown"), path)

    def to_html(self, path: Union[str, os.PathLike[str], None] = None) -> str:
        """As `--format=html`: one page, to be searched and sorted, with all sections."""
        return self._put(self._text("html"), path)

    def to_text(self, width: int = 0, limit: Optional[int] = None) -> str:
        """As `opscope report NAME` prints it, with human units, for a terminal of `width` columns (0 = unlimited).

        limit: how many rows (0 = all); None = as many as there.
        """
        return self._text("text", width=str(width), **({} if limit is None else {"limit": str(limit)})).decode()

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas.DataFrame: int64, float64, bool and object columns; Int64 and boolean (pandas' own, with NA) where cells are unknown.

        frame.attrs has "units", "titles" and "help", each a dict by column, and "report", "title" and "notes". Numbers are not copied again.
        """
        return frame_of(self._table, self.columns)

    def to_arrow(self) -> pyarrow.Table:
        """A pyarrow.Table, by the C data interface. Fields have title, unit and help as their metadata."""
        import pyarrow

        return pyarrow.table(self)

    def to_polars(self) -> polars.DataFrame:
        """A polars.DataFrame, by the C data interface: title, unit and help, for which polars has no place, stay in `columns`."""
        import polars

        return polars.DataFrame(self)

    def __arrow_c_schema__(self) -> object:
        return self._table.arrow_schema()

    def __arrow_c_array__(self, requested_schema: Optional[object] = None) -> Tuple[object, object]:
        """The types are those of the columns: another schema that is asked for is left to the consumer, as the interface allows."""
        return self._table.arrow_array()

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        return self._table.arrow_stream()

    def __str__(self) -> str:
        return self.to_text(width=shutil.get_terminal_size((0, 0)).columns).rstrip("\n")

    def __repr__(self) -> str:
        return f"<opscope.Table {self.name}: {len(self)} rows x {len(self.columns)} columns>"

    def _repr_html_(self) -> str:
        return self._text("html", fragment="1", limit=str(HTML_ROWS)).decode()
