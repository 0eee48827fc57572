"""Small Nsight Systems databases, made for tests and for fuzzing: the tables of a 2026.2 export, with as many of their columns as
matter. make(path, {table: [row as dict, ...]}) writes them; columns that a row leaves out are NULL."""
import sqlite3
import struct

PID_BITS = 24
GPU_WORK = "start end deviceId contextId greenContextId streamId correlationId globalPid"
TABLES = {
    "StringIds": "id value",
    "META_DATA_EXPORT": "name value",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs utcTime localTime",
    "TARGET_INFO_GPU": "vmId id name totalMemory smCount threadsPerWarp maxWarpsPerSm computeMajor computeMinor",
    "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId pid",
    "TARGET_INFO_SYSTEM_ENV": "globalVid devStateName name nameEnum value",
    "PROCESSES": "globalPid pid name",
    "ThreadNames": "nameId priority globalTid",
    "DIAGNOSTIC_EVENT": "timestamp timestampType source severity text globalPid",
    "CUPTI_ACTIVITY_KIND_KERNEL": GPU_WORK + " demangledName shortName mangledName registersPerThread gridX gridY gridZ blockX blockY"
                                  " blockZ staticSharedMemory dynamicSharedMemory graphNodeId graphId",
    "CUPTI_ACTIVITY_KIND_MEMCPY": GPU_WORK + " bytes copyKind srcKind dstKind graphNodeId",
    "CUPTI_ACTIVITY_KIND_MEMSET": GPU_WORK + " value bytes memKind",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": GPU_WORK + " graphId graphExecId",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": GPU_WORK + " syncType eventId",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start end eventClass globalTid correlationId nameId returnValue callchainId",
    "NVTX_EVENTS": "start end eventType rangeId category color text globalTid endGlobalTid textId domainId uint64Value int64Value"
                   " doubleValue uint32Value int32Value floatValue jsonTextId jsonText binaryData",
    "NVTX_PAYLOAD_SCHEMA_ENTRIES": "domainId schemaId idx flags type name description arrayOrUnionDetail offset",
    "OSRT_API": "start end eventClass globalTid nameId returnValue nestingLevel callchainId",
    "PROFILER_OVERHEAD": "start end globalTid nameId returnValue",
    "SCHED_EVENTS": "start cpu isSchedIn globalTid",
    "TARGET_INFO_GPU_METRICS": "typeId sourceId typeName metricId metricName",
    "GPU_METRICS": "rawTimestamp timestamp typeId metricId value",
}
PUSH_POP, START_END, MARK, THREAD, CATEGORY, DOMAIN = 59, 60, 34, 39, 33, 75


def pid(p):
    return 1 << 48 | p << PID_BITS


def tid(p, t):
    return pid(p) | t


def kernel(start, end, corr, process, name=1, device=0, stream=7, **more):
    return {"start": start, "end": end, "deviceId": device, "contextId": 1, "streamId": stream, "correlationId": corr,
            "globalPid": pid(process), "demangledName": name, "shortName": name, "registersPerThread": 32, "gridX": 10, "gridY": 1,
            "gridZ": 1, "blockX": 128, "blockY": 1, "blockZ": 1, "staticSharedMemory": 16, "dynamicSharedMemory": 32, **more}


def call(start, end, corr, process, thread, name=2, **more):
    return {"start": start, "end": end, "eventClass": 0, "globalTid": tid(process, thread), "correlationId": corr, "nameId": name,
            "returnValue": 0, **more}


def nvtx(start, end, text, process, thread, kind=PUSH_POP, **more):
    return {"start": start, "end": end, "eventType": kind, "text": text, "globalTid": tid(process, thread), **more}


def payload(domain, schema, *fields):
    """32 bytes about it, then the fields."""
    body = struct.pack("<" + "".join(f for f, _ in fields), *[v for _, v in fields])
    return struct.pack("<IIIIQQ", domain, 0, schema, 0, len(body), 32 + len(body)) + body


def make(path, rows, page_size=4096, journal=None, encoding=None, extra=()):
    """`extra`: statements to run at the end. Returns the open connection when a journal mode is asked for, so that the
    caller decides when the journal goes away."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(f"PRAGMA page_size={page_size}")
    if encoding:
        db.execute(f"PRAGMA encoding='{encoding}'")
    if journal:
        db.execute(f"PRAGMA journal_mode={journal}")
        db.execute("PRAGMA wal_autocheckpoint=0")
    db.execute("BEGIN")
    for table, content in rows.items():
        columns = TABLES[table.split("_V2")[0].split("_V3")[0]].split()
        declared = ", ".join(f'"{c}" ' + ("INTEGER PRIMARY KEY" if (table, c) == ("StringIds", "id") else "") for c in columns)
        db.execute(f'CREATE TABLE "{table}" ({declared})')
        marks = ", ".join("?" * len(columns))
        db.executemany(f'INSERT INTO "{table}" VALUES ({marks})', ([r.get(c) for c in columns] for r in content))
    for sql in extra:
        db.execute(sql)
    db.execute("COMMIT")
    if journal:
        return db
    db.close()
    return None


def strings(*texts):
    return [{"id": i + 1, "value": t} for i, t in enumerate(texts)]


def sample():
    """A bit of everything."""
    nccl = 16777223
    return {
        "StringIds": strings("void k<float>(float*)", "cudaLaunchKernel_v7000", "read", "python", "registered"),
        "META_DATA_EXPORT": [{"name": "EXPORT_SCHEMA_VERSION", "value": "3.25.0"}],
        "TARGET_INFO_GPU": [{"vmId": 1, "id": 0, "name": "NVIDIA A100-SXM4-80GB", "totalMemory": 85899345920, "smCount": 108,
                             "threadsPerWarp": 32, "maxWarpsPerSm": 64, "computeMajor": 8, "computeMinor": 0}],
        "PROCESSES": [{"globalPid": pid(10), "pid": 10, "name": "train.py"}],
        "ThreadNames": [{"nameId": 4, "globalTid": tid(10, 11)}],
        "DIAGNOSTIC_EVENT": [{"timestamp": 5, "severity": 2, "text": "some events were lost", "globalPid": pid(10)}],
        "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(150, 190, 1, 10), kernel(200, 260, 2, 10, graphNodeId=77)],
        "CUPTI_ACTIVITY_KIND_MEMCPY": [{**kernel(300, 320, 3, 10), "bytes": 4096, "copyKind": 1, "srcKind": 0, "dstKind": 2}],
        "CUPTI_ACTIVITY_KIND_MEMSET": [{**kernel(330, 331, 4, 10), "bytes": 64, "memKind": 2}],
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": [{**kernel(340, 390, 5, 10), "graphId": 3, "graphExecId": 4}],
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": [{**kernel(400, 410, 6, 10, stream=4294967295), "syncType": 4, "eventId": 4294967295}],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [call(110 + 10 * i, 115 + 10 * i, 1 + i, 10, 11) for i in range(5)] +
                                       [call(395, 412, 6, 10, 11)],
        "NVTX_EVENTS": [
            nvtx(90, None, "NCCL", 10, 11, DOMAIN, domainId=5),
            nvtx(91, None, "io", 10, 11, CATEGORY, category=9),
            nvtx(92, None, "main", 10, 11, THREAD),
            nvtx(100, 200, "aten::mm, seq = 7, op_id = 1, sizes = [[2, 3], [3, 4]]", 10, 11),
            nvtx(105, 130, None, 10, 11, textId=5, category=9, uint64Value=42),
            nvtx(131, 139, None, 10, 11, textId=5, jsonText='{"a": 1}'),
            nvtx(140, 149, "ncclAllReduce", 10, 11, domainId=5,
                 binaryData=payload(5, nccl, ("Q", 99), ("Q", 1 << 20), ("i", -1))),
            nvtx(120, 500, "load", 10, 11, START_END, endGlobalTid=tid(10, 12)),
            nvtx(160, None, "still open", 10, 11),
            nvtx(170, None, "here", 10, 11, MARK),
        ],
        "NVTX_PAYLOAD_SCHEMA_ENTRIES": [
            {"domainId": 5, "schemaId": nccl, "idx": i, "type": t, "name": n, "offset": o}
            for i, (t, n, o) in enumerate([(18, "NCCL communicator ID", None), (22, "Message size [bytes]", 8), (5, "Peer rank", 16)])],
        "OSRT_API": [{"start": 101, "end": 103, "eventClass": 27, "globalTid": tid(10, 11), "nameId": 3, "returnValue": 0}],
        "PROFILER_OVERHEAD": [{"start": 50, "end": 60, "globalTid": tid(10, 11), "nameId": 3}],
        "SCHED_EVENTS": [{"start": 1, "cpu": 0, "isSchedIn": 1, "globalTid": tid(10, 11)}] * 3,
    }
