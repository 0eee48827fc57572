"""Writes segments of captures byte by byte, from the description of the format alone (include/opscope/wire.h): what a test plants."""
import os
import struct

BLOCK, GRAIN = 4096, 256  # small ones, so that files are small: a reader takes them from the header
EVENTS, KEEP = 1, 2
BASE = 1_700_000_000_000_000_000  # when the capture begins

STRING, META, NOTE, THREAD_NAME, DOMAIN, CATEGORY, RESOURCE, ANCHOR, SWITCH = range(1, 10)
PUSH, POP, START, END, MARK, COUNTER, STEP, MEMORY, ARG = range(16, 25)
(DEVICE, CONTEXT, STREAM, KERNEL, COPY, SET, API, SYNC, OVERHEAD, GRAPH, GRAPH_NODE, DEVICE_MEMORY, GPU_SAMPLE, CPU_SAMPLE, MAPPING, CUDA_EVENT) = range(32, 48)
HAS_OP, HAS_SIZES, HAS_ATTR, HAS_DOMAIN, HAS_PAYLOAD, HAS_RANGE, HAS_TEXT, CUT = (1 << i for i in range(8))
NONE32 = 0xFFFFFFFF
FRAME_TEXT = 1 << 63


def record(kind, flags=0, ident=0, body=b""):
    body += b"\0" * (-len(body) % 8)
    return struct.pack("<BBHI", kind, flags, 1 + len(body) // 8, ident) + body


class Segment:
    def __init__(self, pid=100, start=BASE, rank=-1, world=-1, state=2, host="node", calls=0, cost=0, helper=0, lost=None, ppid=1, last=None,
                 block=BLOCK, grain=GRAIN, boot="", steady=5_000_000):
        self.pid, self.start, self.rank, self.world, self.state, self.host = pid, start, rank, world, state, host
        self.calls, self.cost, self.helper, self.lost, self.ppid = calls, cost, helper, lost or {}, ppid
        self.last = start + 1_000_000 if last is None else last
        self.block, self.grain, self.boot, self.steady = block, grain, boot, steady
        self.kept, self.threads, self.texts = [], {}, {}
        self.chunks = None  # ready-made ones instead

    def text(self, s):
        b = s if isinstance(s, bytes) else s.encode()
        if b not in self.texts:
            self.texts[b] = len(self.texts) + 1
            self.kept.append(record(STRING, 0, self.texts[b], struct.pack("<II", len(b), 0) + b))
        return self.texts[b]

    def keep(self, kind, flags=0, ident=0, fmt="", *values):
        self.kept.append(record(kind, flags, ident, struct.pack("<" + fmt, *values)))

    def meta(self, key, value):
        key, value = self.text(key), self.text(value)
        self.keep(META, 0, key, "II", value, 0)

    def event(self, tid, kind, flags=0, ident=0, fmt="", *values):
        self.threads.setdefault(tid, []).append(record(kind, flags, ident, struct.pack("<" + fmt, *values)))

    def push(self, tid, text, at, domain=0, kind=PUSH, seq=None, op=None, sizes=None, category=0, colour=0, payload=None, number=None, rest=None):
        """`payload`: (kind, 8 bytes). `rest`: text inside the record."""
        flags, body = 0, struct.pack("<q", at)
        if seq is not None or op is not None:
            flags |= HAS_OP
            body += struct.pack("<II", NONE32 if seq is None else seq, NONE32 if op is None else op)
        if sizes is not None:
            flags |= HAS_SIZES
            body += struct.pack("<II", self.text(sizes), 0)
        if category or colour:
            flags |= HAS_ATTR
            body += struct.pack("<II", category, colour)
        if domain or payload:
            flags |= HAS_DOMAIN
            body += struct.pack("<II", domain, payload[0] if payload else 0)
        if payload:
            flags |= HAS_PAYLOAD
            body += payload[1]
        if number is not None:
            flags |= HAS_RANGE
            body += struct.pack("<Q", number)
        if rest is not None:
            flags |= HAS_TEXT
            b = rest.encode()
            body += struct.pack("<I", len(b)) + b
        self.threads.setdefault(tid, []).append(record(kind, flags, self.text(text) if text else 0, body))

    def pop(self, tid, at, domain=0):
        self.event(tid, POP, 0, domain, "q", at)

    def header(self, used):
        h = struct.pack("<8sIIIIqiiiiqqq40s72s32sqqIIqqQQQQQ", b"OPSCSEG1", 1, 0, self.block, self.grain, self.start, self.pid, self.ppid, 0, 0, 0,
                        self.rank, self.world, self.boot.encode(), self.host.encode(), b"test", self.start, self.steady, self.state, 2, self.last,
                        self.steady + self.last - self.start, used, 0, self.calls, self.cost, self.helper)
        h += struct.pack("<32Q", *(self.lost.get(i, 0) for i in range(32)))
        assert len(h) == 552, len(h)
        return h[:12] + struct.pack("<I", len(h)) + h[16:]

    def chunk(self, kind, records, offset, sequence, tid=0, number=0, ordinal=0, magic=0x4B43504F):
        size = -(-(40 + len(records)) // self.grain) * self.grain
        head = struct.pack("<IHHIIQQII", magic, kind, size // self.grain, tid, number, offset, sequence, len(records), ordinal)
        return (head + records).ljust(size, b"\0")

    def bytes(self):
        out, sequence = [b"\0" * self.block], 0
        at = self.block

        def add(kind, records, tid, number):
            nonlocal at, sequence
            ordinal = 0
            while records:
                part = b""
                while records and (not part or 40 + len(part) + len(records[0]) <= 60000):
                    part += records.pop(0)
                sequence += 1
                c = self.chunk(kind, part, at, sequence, tid, number, ordinal)
                ordinal += 1
                out.append(c)
                at += len(c)
        add(KEEP, list(self.kept), 0, 0)
        for number, (tid, records) in enumerate(self.threads.items(), 1):
            add(EVENTS, list(records), tid, number)
        for c in self.chunks or []:
            out.append(c)
            at += len(c)
        out[0] = self.header(at).ljust(self.block, b"\0")
        return b"".join(out)

    def write(self, folder, name=None):
        path = os.path.join(folder, name or f"{self.host}-{self.pid}-{self.start}.seg")
        with open(path, "wb") as f:
            f.write(self.bytes())
        return path
