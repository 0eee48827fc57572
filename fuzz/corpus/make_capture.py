#!/usr/bin/env python3
"""Makes the seeds of fuzz_capture: small segments with a record of each type. usage: fuzz/corpus/make_capture.py"""
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "oracle"))
import segment  # noqa: E402
from segment import BASE, NONE32, Segment, record  # noqa: E402


def small(**kw):
    return Segment(block=576, grain=64, **kw)


def ranges():
    s = small()
    s.keep(segment.DOMAIN, 0, 1, "II", s.text("library"), 0)
    s.keep(segment.CATEGORY, 0, 5, "II", 1, s.text("five"))
    s.keep(segment.THREAD_NAME, 0, s.text("main"), "II", 7, 0)
    s.keep(segment.THREAD_NAME, 1, s.text("system"), "II", 7, 0)
    s.push(7, "outer", BASE + 10, domain=1, category=5, colour=0xFF112233, payload=(3, struct.pack("<d", 1.5)))
    s.push(7, "aten::mm", BASE + 20, seq=4, op=9, sizes="[[2, 3], [3, 4]]", rest=", input_op_ids = [(0,0)]")
    s.event(7, segment.ARG, 1, s.text("Input Dims"), "QII", s.text("[[2, 2]]"), 0, 0)
    s.event(7, segment.ARG, 2, s.text("n"), "QII", 3, 0, 0)
    s.pop(7, BASE + 30)
    s.push(7, None, BASE + 31, kind=segment.MARK, rest="mark")
    s.push(7, None, BASE + 32, kind=segment.START, number=6, rest="range")
    s.event(8, segment.END, 0, 0, "qQ", BASE + 40, 6)
    s.pop(7, BASE + 50, domain=1)
    s.push(8, "open", BASE + 41)
    return s


def numbers():
    s = small(rank=1, world=4, lost={0: 3, 2: 100}, calls=5, cost=600, helper=70, state=1)
    s.meta("argv", b"/usr/bin/python3\0train.py\0")
    s.meta("memory.source", "program")
    s.keep(segment.NOTE, 0, s.text("kind"), "qII", BASE, s.text("a note"), 1)
    s.keep(segment.RESOURCE, 0, s.text("thing"), "IIQ", 0, 1, 0x77)
    s.keep(segment.ANCHOR, 0, 0, "qq", BASE + 10_000_000, 5)
    s.keep(segment.SWITCH, 0, 2, "q", BASE + 60)
    s.event(1, segment.COUNTER, 3, s.text("loss"), "qdII", BASE + 5, 0.5, 0, s.text("nats"))
    s.event(1, segment.STEP, 0, s.text("ProfilerStep"), "qq", BASE + 10, 3)
    s.event(1, segment.STEP, 0, s.text("ProfilerStep"), "qq", BASE + 20, 4)
    s.event(1, segment.MEMORY, 0, 0, "qqqqqhhI", BASE + 11, 4096, 512, 2048, 4096, 1, 0, 0)
    s.event(1, segment.SWITCH, 0, 2, "q", BASE + 60)
    s.keep(segment.MAPPING, 0, s.text("/lib/x.so"), "QQQ", 0x1000, 0x2000, 0)
    s.event(1, segment.CPU_SAMPLE, 0, 1, "qII2Q", BASE + 30, 2, 1000, segment.FRAME_TEXT | s.text("f"), 0x1010)
    return s


def device():
    s = small()
    s.keep(segment.DEVICE, 0, s.text("GPU"), "IIQQIIIIII16s", 0, 0, 1 << 30, 1 << 40, 9, 0, 132, 1000, 64, 32, b"u" * 16)
    s.keep(segment.CONTEXT, 0, 1, "II", 0, 7)
    s.keep(segment.STREAM, 0, 7, "IIiI", 1, 0, 0, 0)
    s.push(5, "aten::mm", BASE + 1, seq=1)
    s.event(5, segment.GRAPH_NODE, 0, 1, "qQQ", BASE + 2, 900, 0)
    s.event(5, segment.GRAPH_NODE, 0, 2, "qQQ", BASE + 3, 901, 900)
    s.event(5, segment.API, 0, 211, "qqIIII", BASE + 5, BASE + 6, 77, 5, 1, s.text("cudaLaunchKernel"))
    s.pop(5, BASE + 9)
    s.event(6, segment.KERNEL, 0, s.text("_Z3addIfEvPT_"), "qqIIII3I3IIIII3IIQ", BASE + 10, BASE + 20, 77, 0, 1, 7, 4, 1, 1, 128, 1, 1, 32, 0, 0, 0, 0, 0, 0, 2, 901)
    s.event(6, segment.COPY, 10, 0, "qqQIIIIBBBBIQII", BASE + 21, BASE + 22, 64, 78, 0, 1, 7, 3, 3, 1, 1, 0, 0, 0, 1)
    s.event(6, segment.SET, 3, 0, "qqQIIIIIIQ", BASE + 23, BASE + 24, 256, 79, 0, 1, 7, 0, 0, 0)
    s.event(6, segment.SYNC, 3, NONE32, "qqIIII", BASE + 25, BASE + 26, 80, 1, 7, 0)
    s.event(6, segment.OVERHEAD, 0, s.text("Instrumentation"), "qqII", BASE + 27, BASE + 28, 5, 0)
    s.event(6, segment.GRAPH, 0, 4, "qqIIII", BASE + 29, BASE + 30, 81, 0, 1, 7)
    s.event(6, segment.DEVICE_MEMORY, 3, 0, "qQqIIIIII", BASE + 31, 0xA000, 1 << 20, 0, 1, 7, 82, 5, 0)
    s.event(6, segment.GPU_SAMPLE, 0, 0xFF, "qIIIIIIIIQQ", BASE + 32, 0, 87, 10, 1000, 900, 300000, 60, 0, 5 << 30, 4)
    s.threads[6].append(record(200, 0, 0, b"later"))
    return s


def main():
    folder = os.path.join(HERE, "capture")
    os.makedirs(folder, exist_ok=True)
    for make in (ranges, numbers, device):
        make().write(folder, make.__name__)
    with open(os.path.join(folder, "cut"), "wb") as f:
        f.write(device().bytes()[:1500])


main()
