"""Tables as frames of pandas: columns of numbers lie in the memory that the C library filled, and are not copied again."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Sequence

from . import _core

if TYPE_CHECKING:
    import pandas

    from .table import Column


def _texts(table: _core.Table, number: int) -> Any:
    """An array of str, None where unknown: each text is one object, however many rows have it."""
    import numpy

    codes, texts = table.codes(number)
    distinct = numpy.empty(len(texts) + 1, dtype=object)
    distinct[:-1] = texts  # the last one, None, is number -1
    return distinct[numpy.frombuffer(codes, dtype="int32")]


def _numbers(table: _core.Table, number: int, type: str) -> Any:
    import numpy
    import pandas

    data, valid = table.numbers(number)
    known = numpy.frombuffer(valid, dtype=bool)
    values = numpy.frombuffer(data, dtype="float64" if type == "number" else "int64")
    if type == "boolean":
        values = values.astype(bool)
    if type == "number" or known.all():
        return values
    array = pandas.arrays.BooleanArray if type == "boolean" else pandas.arrays.IntegerArray
    return array(values, ~known, copy=False)


def attributes(name: str, title: str, notes: Sequence[str], columns: Sequence[Column]) -> Dict[str, Any]:
    """What a frame keeps in `attrs`: pandas hands them on to what is made of the frame."""
    return {"report": name, "title": title, "notes": list(notes), "units": {c.id: c.unit for c in columns}, "titles": {c.id: c.title for c in columns},
            "help": {c.id: c.help for c in columns}}


def frame_of(table: _core.Table, columns: Sequence[Column]) -> pandas.DataFrame:
    import pandas

    values = {c.id: _texts(table, i) if c.type == "string" else _numbers(table, i, c.type) for i, c in enumerate(columns)}
    frame = pandas.DataFrame(values, index=pandas.RangeIndex(table.rows), copy=False)
    frame.attrs.update(attributes(table.name, table.title, table.notes, columns))
    return frame
