"""The Arrow capsules, taken by a consumer of our own (ctypes on the structs of the specification), and by pyarrow and polars where they are."""
import ctypes
import gc
import struct
import sys
import tempfile
import unittest

from support import RESNET, oracle
import opscope

GPU = oracle.synthetic("all_categories")


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p), ("flags", ctypes.c_int64),
                   ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(Schema))), ("dictionary", ctypes.c_void_p),
                   ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))), ("private_data", ctypes.c_void_p)]
Array._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
                  ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)), ("children", ctypes.POINTER(ctypes.POINTER(Array))),
                  ("dictionary", ctypes.c_void_p), ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))), ("private_data", ctypes.c_void_p)]
Stream._fields_ = [("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Schema))),
                   ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Array))),
                   ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(Stream))),
                   ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Stream))), ("private_data", ctypes.c_void_p)]

get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


set_name = ctypes.pythonapi.PyCapsule_SetName
set_name.restype, set_name.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_void_p]


def struct_in(capsule, name, kind):
    return kind.from_address(get_pointer(capsule, name))


def release(s):
    s.release(ctypes.byref(s))


def metadata(schema):
    """Key -> value of the binary form: an int32 count, then sizes and bytes."""
    out, at = {}, schema.metadata

    def number():
        nonlocal at
        value = ctypes.c_int32.from_address(at).value
        at += 4
        return value

    def text():
        nonlocal at
        n = number()
        value = ctypes.string_at(at, n)
        at += n
        return value.decode()

    for _ in range(number() if at else 0):
        key = text()
        out[key] = text()
    return out


def bit(address, i):
    return ctypes.c_uint8.from_address(address + i // 8).value >> i % 8 & 1


def values(schema, array):
    """A column as Python has it, by the layout of its format."""
    def plain(kind):
        return lambda i: kind.from_address(array.buffers[1] + 8 * i).value

    def text(kind):
        def get(i):
            size = ctypes.sizeof(kind)
            a, b = (kind.from_address(array.buffers[1] + size * k).value for k in (i, i + 1))
            return ctypes.string_at(array.buffers[2] + a, b - a).decode()
        return get

    get = {b"l": plain(ctypes.c_int64), b"g": plain(ctypes.c_double), b"u": text(ctypes.c_int32), b"U": text(ctypes.c_int64),
           b"b": lambda i: bool(bit(array.buffers[1], i))}[schema.format]
    valid = array.buffers[0]
    got = [get(i) if not valid or bit(valid, i) else None for i in range(array.length)]
    assert array.offset == 0 and array.null_count == got.count(None) and not array.dictionary
    assert array.n_buffers == (3 if schema.format in b"uU" else 2)
    assert all(not array.buffers[i] or array.buffers[i] % 64 == 0 for i in range(array.n_buffers))
    return got


def columns(schema, array):
    assert (schema.format, array.n_children, array.n_buffers, array.null_count) == (b"+s", schema.n_children, 1, 0)
    return {schema.children[i].contents.name.decode(): values(schema.children[i].contents, array.children[i].contents)
            for i in range(schema.n_children)}


class Arrow(oracle.Case):
    def tables(self):
        for path, name, params in ((RESNET, "operators", {}), (GPU, "kernels", {}), (GPU, "operators", {}), (RESNET, "modules", {"columns": "module"}),
                                   (GPU, "operators", {"filter": "nothing has this"})):
            yield opscope.load(path).report(name, **params)

    def test_array(self):
        for table in self.tables():
            schema_capsule, array_capsule = table.__arrow_c_array__()
            schema, array = struct_in(schema_capsule, b"arrow_schema", Schema), struct_in(array_capsule, b"arrow_array", Array)
            self.assertEqual(columns(schema, array), table.to_dict())
            self.assertEqual(array.length, len(table))
            for i, c in enumerate(table.columns):
                field = schema.children[i].contents
                self.assertEqual((field.flags, field.n_children), (2, 0))
                self.assertEqual(metadata(field), {k: v for k, v in (("title", c.title), ("unit", c.unit), ("help", c.help)) if v})
            facts = metadata(schema)
            self.assertEqual((facts["report"], facts.get("notes", "").split("\n")), (table.name, "\n".join(table.notes).split("\n")))
            release(array)
            release(schema)
            self.assertFalse(array.release or schema.release)

    def test_schema_alone(self):
        table = next(self.tables())
        schema = struct_in(table.__arrow_c_schema__(), b"arrow_schema", Schema)
        self.assertEqual(schema.n_children, len(table.columns))

    def test_lives_longer_than_the_table(self):
        """The trace and the table are gone, and so is all but one column, moved out as the specification allows."""
        table = next(self.tables())
        want, number = table["name"], [c.id for c in table.columns].index("name")
        capsules = table.__arrow_c_array__(None)
        del table
        gc.collect()
        schema, array = (struct_in(c, n, k) for c, n, k in zip(capsules, (b"arrow_schema", b"arrow_array"), (Schema, Array)))
        moved = Schema.from_buffer_copy(schema.children[number].contents), Array.from_buffer_copy(array.children[number].contents)
        for parent in (schema, array):
            child = parent.children[number].contents
            ctypes.memset(ctypes.addressof(child) + type(child).release.offset, 0, ctypes.sizeof(ctypes.c_void_p))
            release(parent)
        del capsules, schema, array, parent, child
        gc.collect()
        self.assertEqual(values(*moved), want)
        for part in moved:
            release(part)

    def test_released_by_the_capsule(self):
        """A capsule that nobody took frees what is in it; one that was taken does not free it again."""
        table = next(self.tables())
        for _ in range(100):
            table.__arrow_c_array__()
            table.__arrow_c_stream__()
            table.__arrow_c_schema__()

    def test_renamed_by_its_consumer(self):
        """Such as those that mark what they have used: it is freed by whatever name it has."""
        table = opscope.load(GPU).report("operators")
        used = ctypes.create_string_buffer(b"used")
        for capsule in (table.__arrow_c_schema__(), *table.__arrow_c_array__(), table.__arrow_c_stream__()):
            self.assertEqual(set_name(capsule, ctypes.addressof(used)), 0)
            del capsule
        gc.collect()

    def test_stream(self):
        for table in self.tables():
            capsule = table.__arrow_c_stream__(requested_schema=None)
            stream = struct_in(capsule, b"arrow_array_stream", Stream)
            for _ in range(2):
                schema, array = Schema(), Array()
                self.assertEqual(stream.get_schema(ctypes.byref(stream), ctypes.byref(schema)), 0)
                release(schema)
            stream.get_schema(ctypes.byref(stream), ctypes.byref(schema))
            self.assertEqual(stream.get_next(ctypes.byref(stream), ctypes.byref(array)), 0)
            end = Array()
            self.assertEqual(stream.get_next(ctypes.byref(stream), ctypes.byref(end)), 0)
            self.assertFalse(end.release)
            self.assertIsNone(stream.get_last_error(ctypes.byref(stream)))
            release(stream)
            del capsule
            self.assertEqual(columns(schema, array), table.to_dict())
            release(array)
            release(schema)

    def test_text_that_is_not_utf8(self):
        with tempfile.NamedTemporaryFile("wb", suffix=".json") as f:
            f.write(b'{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a\xe2\x82b\xff", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}')
            f.flush()
            table = opscope.load(f.name).report("operators")
        capsules = table.__arrow_c_array__()
        schema, array = struct_in(capsules[0], b"arrow_schema", Schema), struct_in(capsules[1], b"arrow_array", Array)
        self.assertEqual(columns(schema, array)["name"], ["a\ufffd\ufffdb\ufffd"])

    def test_structs_are_those_of_c(self):
        self.assertEqual((ctypes.sizeof(Schema), ctypes.sizeof(Array), ctypes.sizeof(Stream)), (72, 80, 40))
        self.assertEqual(struct.calcsize("P"), 8)

    def test_pyarrow(self):
        try:
            import pyarrow
        except ImportError:
            self.skipTest("pyarrow is not installed")
        for table in self.tables():
            self.assertEqual(pyarrow.record_batch(table).to_pydict(), table.to_dict())
            self.assertEqual(pyarrow.table(table).to_pydict(), table.to_dict())

    def test_polars(self):
        try:
            import polars
        except ImportError:
            self.skipTest("polars is not installed")
        for table in self.tables():
            self.assertEqual(polars.DataFrame(table).to_dict(as_series=False), table.to_dict())

    def test_pandas(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("pandas is not installed")
        if not hasattr(pandas.DataFrame, "from_arrow"):
            self.skipTest(f"pandas {pandas.__version__} does not take Arrow capsules (3.0 does)")
        for table in self.tables():
            self.assertEqual(list(pandas.DataFrame.from_arrow(table).columns), [c.id for c in table.columns])


if __name__ == "__main__":
    oracle.main()
