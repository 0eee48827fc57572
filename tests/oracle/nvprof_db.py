"""Small nvprof databases of versions 8 to 18, made for tests and for fuzzing: tables that matter, with the columns that each version
has. make(path, version, {table: [row as dict, ...]}) writes them; columns that a row leaves out are 0, as in nvprof's own."""
import sqlite3
import struct

GRAPH = " graphNodeId@16 graphId@16"
CHANNEL = " channelID@17 channelType@17"
KERNEL = ("cacheConfig sharedMemoryConfig registersPerThread partitionedGlobalCacheRequested partitionedGlobalCacheExecuted start end completed"
          " deviceId contextId streamId gridX gridY gridZ blockX blockY blockZ staticSharedMemory dynamicSharedMemory localMemoryPerThread"
          " localMemoryTotal correlationId gridId name queued@11 submitted@11 launchType@11 isSharedMemoryCarveoutRequested@11"
          " sharedMemoryCarveoutRequested@11 sharedMemoryExecuted@12" + GRAPH + " shmemLimitConfig@16 pAccessPolicyWindow@16" + CHANNEL +
          " clusterX@18 clusterY@18 clusterZ@18 clusterSchedulingPolicy@18 localMemoryTotal_v2@18")
CALL = "cbid start end processId threadId correlationId returnValue"
ACC = ("eventKind parentConstruct version implicit deviceType deviceNumber threadId async asyncMap lineNo endLineNo funcLineNo funcEndLineNo start"
       " end cuDeviceId cuContextId cuStreamId cuProcessId cuThreadId externalId srcFile funcName")
# "column@N": from version N on; "column-N": up to version N. A table's own first version stands behind its name.
TABLES = {
    "CONCURRENT_KERNEL": KERNEL, "KERNEL": KERNEL,
    "CDP_KERNEL": "cacheConfig sharedMemoryConfig registersPerThread start end deviceId contextId streamId gridX gridY gridZ blockX blockY blockZ"
                  " staticSharedMemory dynamicSharedMemory localMemoryPerThread localMemoryTotal correlationId gridId parentGridId queued submitted"
                  " completed parentBlockX parentBlockY parentBlockZ name",
    "MEMCPY": "copyKind srcKind dstKind flags bytes start end deviceId contextId streamId correlationId runtimeCorrelationId" + GRAPH + CHANNEL,
    "MEMCPY2": "copyKind srcKind dstKind flags bytes start end deviceId contextId streamId srcDeviceId srcContextId dstDeviceId dstContextId"
               " correlationId" + GRAPH + CHANNEL,
    "MEMSET": "value bytes start end deviceId contextId streamId correlationId runtimeCorrelationId-8 flags@9 memoryKind@9" + GRAPH + CHANNEL,
    "GRAPH_TRACE@17": "correlationId start end deviceId graphId contextId streamId",
    "RUNTIME": CALL, "DRIVER": CALL, "INTERNAL_LAUNCH_API@16": CALL,
    "MARKER": "flags timestamp id objectKind objectId name domain@9",
    "MARKER_DATA": "flags id payloadKind payload color category",
    "OVERHEAD": "overheadKind objectKind objectId start end",
    "SYNCHRONIZATION@9": "type start end correlationId contextId streamId cudaEventId",
    "CUDA_EVENT@9": "correlationId contextId streamId eventId",
    "CONTEXT": "contextId deviceId computeApiKind nullStreamId",
    "STREAM@9": "contextId streamId priority flag correlationId@11",
    "NAME": "objectKind objectId name",
    "DEVICE": "flags globalMemoryBandwidth globalMemorySize constantMemorySize l2CacheSize numThreadsPerWarp coreClockRate numMemcpyEngines"
              " numMultiprocessors maxIPC maxWarpsPerMultiprocessor maxBlocksPerMultiprocessor computeCapabilityMajor computeCapabilityMinor id"
              " eccEnabled uuid name isCudaVisible@16 isMigEnabled@17",
    "DEVICE_ATTRIBUTE": "flags deviceId attribute value",
    "OPENACC_DATA@9": ACC + " bytes hostPtr devicePtr varName",
    "OPENACC_LAUNCH@9": ACC + " numGangs numWorkers vectorLength kernelName",
    "OPENACC_OTHER@9": ACC,
    "OPENMP@12": "eventKind version threadId start end cuProcessId cuThreadId",
    "PCIE@11": "type id domain pcieGeneration linkRate linkWidth upstreamBus attr",
    "JIT@18": "jitEntryType jitOperationType deviceId start end correlationId",
}
VERSIONS = (8, 9, 11, 12, 16, 17, 18)
BLOBS = {"objectId", "cacheConfig", "uuid", "pAccessPolicyWindow", "payload", "attribute", "value", "id_blob", "attr"}
START, END, INSTANT = 2, 4, 1
PROCESS, THREAD, DEVICE, CONTEXT, STREAM = 1, 2, 3, 4, 5
T0 = 1_600_000_000_000_000_000  # ns since 1970, as all times


def thread(pid, tid):
    """The bytes that name a thread."""
    return struct.pack("<III", pid, tid & 0xFFFFFFFF, 0)


def stream(device, context, number):
    return struct.pack("<III", device, context, number)


def columns(table, version):
    """Those that the version has; None when it has not the table."""
    for name, text in TABLES.items():
        name, _, since = name.partition("@")
        if name != table:
            continue
        if since and version < int(since):
            return None
        out = []
        for c in text.split():
            c, _, first = c.partition("@")
            c, _, last = c.partition("-")
            if not (first and version < int(first)) and not (last and version > int(last)):
                out.append(c)
        return out
    raise KeyError(table)


def make(path, version, rows, strings, page_size=4096, extra=()):
    """`strings`: the texts of StringTable, from id 1 on."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(f"PRAGMA page_size={page_size}")
    db.execute("BEGIN")
    db.execute("CREATE TABLE Version (version INTEGER)")
    db.execute("INSERT INTO Version VALUES (?)", (version,))
    db.execute("CREATE TABLE StringTable (_id_ INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT NOT NULL)")
    db.executemany("INSERT INTO StringTable VALUES (?, ?)", enumerate(("-- null --", *strings)))
    for table in (t.partition("@")[0] for t in TABLES):
        have = columns(table, version)
        if have is None:
            assert table not in rows or version < 18, table
            continue
        declared = ", ".join(f'"{c}" {"BLOB" if c in BLOBS else "INT"} NOT NULL' for c in have)
        db.execute(f'CREATE TABLE CUPTI_ACTIVITY_KIND_{table} (_id_ INTEGER PRIMARY KEY AUTOINCREMENT, {declared})')
        marks = ", ".join("?" * len(have))
        names = ", ".join(f'"{c}"' for c in have)
        db.executemany(f"INSERT INTO CUPTI_ACTIVITY_KIND_{table} ({names}) VALUES ({marks})",
                       ([r.get(c, b"\0" if c in BLOBS else 0) for c in have] for r in rows.get(table, ())))
    for sql in extra:
        db.execute(sql)
    db.execute("COMMIT")
    db.close()


def kernel(start, end, corr, name=1, **more):
    return {"start": T0 + start, "end": T0 + end, "contextId": 1, "streamId": 7, "correlationId": corr, "name": name, "registersPerThread": 40,
            "gridX": 160, "gridY": 1, "gridZ": 1, "blockX": 128, "blockY": 2, "blockZ": 1, "staticSharedMemory": 100,
            "dynamicSharedMemory": 28, "graphNodeId": 5, "graphId": 6, **more}


def copy(start, end, corr, **more):
    return {"start": T0 + start, "end": T0 + end, "contextId": 1, "streamId": 7, "correlationId": corr, "copyKind": 1, "srcKind": 2,
            "dstKind": 3, "bytes": 4096, **more}


def call(start, end, corr, cbid, pid=10, tid=-704661760, **more):
    return {"start": T0 + start, "end": T0 + end, "cbid": cbid, "processId": pid, "threadId": tid, "correlationId": corr, **more}


def mark(at, number, flags, name=0, pid=10, tid=-704661760, **more):
    return {"timestamp": T0 + at, "id": number, "flags": flags, "objectKind": THREAD, "objectId": thread(pid, tid), "name": name, **more}


def directive(start, end, kind, **more):
    return {"start": T0 + start, "end": T0 + end, "eventKind": kind, "cuProcessId": 10, "cuThreadId": -704661760, **more}


STRINGS = ("_Z3addIfEvPT_i", "sgemm_128x64", "demo GPU", "python train.py", "aten::mm, seq = 7, op_id = 1, sizes = [[2, 3], [3, 4]]",
           "epoch", "NCCL", "ncclAllReduce", "here", "loop.c", "main", "x", "worker", "_Z", "copies")


def sample():
    """A bit of everything, for the newest version; older ones take what they have tables and columns for."""
    return {
        "CONCURRENT_KERNEL": [kernel(150, 190, 1), kernel(200, 260, 2, name=2), kernel(262, 270, 9, name=14)],
        "KERNEL": [kernel(280, 290, 10)],
        "CDP_KERNEL": [kernel(155, 160, 0)],
        "MEMCPY": [copy(300, 320, 3)],
        "MEMCPY2": [copy(321, 329, 4, copyKind=10, srcKind=3, dstDeviceId=1)],
        "MEMSET": [{**copy(330, 331, 5), "memoryKind": 3}],
        "GRAPH_TRACE": [{**kernel(340, 390, 6), "graphId": 3}],
        "SYNCHRONIZATION": [{"start": T0 + 400, "end": T0 + 410, "type": 3, "correlationId": 7, "contextId": 2, "streamId": 7, "cudaEventId": -1},
                            {"start": T0 + 411, "end": T0 + 412, "type": 4, "correlationId": 8, "contextId": 1, "streamId": -1}],
        "RUNTIME": [call(110, 115, 1, 211), call(120, 125, 2, 13), call(130, 135, 3, 41), call(140, 145, 4, 41), call(150, 155, 5, 51),
                    call(160, 165, 6, 311), call(395, 412, 7, 131), call(413, 414, 8, 100000, returnValue=600), call(415, 416, 10, 211)],
        "DRIVER": [call(121, 124, 20, 307), call(126, 127, 9, 307, tid=5)],
        "INTERNAL_LAUNCH_API": [call(128, 129, 30, 1)],
        "MARKER": [mark(100, 1, START, 5), mark(101, 2, START, 6), mark(140, 2, END), mark(200, 1, END), mark(105, 3, INSTANT, 9),
                   mark(141, 4, START, 8, domain=7), mark(149, 4, END), mark(170, 5, START, 6), mark(171, 77, END),
                   mark(190, 6, END), mark(180, 6, START, 15), mark(100, 7, START, 6, tid=5), mark(500, 7, END, tid=5)],
        "MARKER_DATA": [{"id": 1, "color": 255}],
        "OVERHEAD": [{"start": T0 + 50, "end": T0 + 60, "overheadKind": 2 << 16, "objectKind": PROCESS, "objectId": thread(10, 0)},
                     {"start": T0 + 61, "end": T0 + 62, "overheadKind": 1, "objectKind": THREAD, "objectId": thread(10, 5)},
                     {"start": T0 + 63, "end": T0 + 64, "overheadKind": 1 << 16, "objectKind": STREAM, "objectId": stream(0, 1, 7)}],
        "CUDA_EVENT": [{"correlationId": 9, "contextId": 1, "streamId": 7, "eventId": 1}],
        "CONTEXT": [{"contextId": 1, "deviceId": 0, "nullStreamId": 7}, {"contextId": 2, "deviceId": 1, "nullStreamId": 22}],
        "STREAM": [{"contextId": 1, "streamId": 7}],
        "NAME": [{"objectKind": PROCESS, "objectId": thread(10, 0), "name": 4}, {"objectKind": THREAD, "objectId": thread(10, 5), "name": 13},
                 {"objectKind": STREAM, "objectId": stream(0, 1, 7), "name": 15}],
        "DEVICE": [{"id": 0, "name": 3, "globalMemorySize": 16 << 30, "numMultiprocessors": 80, "numThreadsPerWarp": 32,
                    "maxWarpsPerMultiprocessor": 64, "computeCapabilityMajor": 7}],
        "DEVICE_ATTRIBUTE": [{"deviceId": 0}] * 2,
        "OPENACC_OTHER": [directive(420, 480, 9, srcFile=10, lineNo=12, funcName=11)],
        "OPENACC_DATA": [directive(421, 430, 5, srcFile=10, lineNo=12, funcName=11, bytes=64, varName=12)],
        "OPENACC_LAUNCH": [directive(431, 440, 4, kernelName=2)],
        "OPENMP": [directive(481, 490, 1)],
        "PCIE": [{"type": 0, "id": b"\0" * 4}],
        "JIT": [{"start": T0, "end": T0 + 5}],
    }
