"""opscope.on_demand(): a program records when somebody asks. This is the program's side of include/opscope/ask.h; opscope.profile records.

A thread waits on a socket, and does nothing until somebody asks. It never touches the profiler: the thread that trains begins and ends it, in step().
"""
from __future__ import annotations

import atexit
import errno
import json
import os
import re
import select
import socket
import stat
import struct
import threading
import time
import warnings
import weakref
from contextlib import suppress
from importlib import import_module
from typing import Any, Dict, List, Optional

from . import _annotate
from ._own import _Step
from ._schedule import always
from .profiler import profile
from .trace import Path

GREETING = "opscope-ask 1 "
REQUEST = re.compile(r"record name=([A-Za-z0-9_-][A-Za-z0-9._-]{0,63}) start=(\d{1,19}) duration=(\d{1,18}) steps=(\d{1,18}) key=(.{0,511})\n")
LINE_MOST, CONNECTIONS, PATIENCE_S, AHEAD_NS = 1024, 8, 2.0, 3600 * 10 ** 9
IDLE_MS = 1000  # the program may close the descriptors that are waited on, which wakes nobody


def _is_private(path: str) -> bool:
    with suppress(OSError):
        st = os.lstat(path)
        return stat.S_ISDIR(st.st_mode) and st.st_uid == os.geteuid() and not st.st_mode & 0o077
    return False


def _folder() -> str:
    """The folder for sockets, in which `opscope record --ask` looks."""
    given, runtime = os.environ.get("OPSCOPE_ASK"), os.environ.get("XDG_RUNTIME_DIR", "")
    places = [given] if given else [*([os.path.join(runtime, "opscope")] if runtime.startswith("/") else []), f"/tmp/opscope-{os.geteuid()}"]
    for place in places:
        with suppress(OSError):
            os.mkdir(place, 0o700)
        if _is_private(place):
            return place
    raise PermissionError(errno.EACCES, "the folder for sockets must be yours and closed to others (mode 0700); OPSCOPE_ASK names another one", places[-1])


class _Request:
    """What somebody asked for."""

    def __init__(self, connection: _Connection, folder: str, start_ns: int, duration_ns: int, steps: int):
        self.connection, self.folder = connection, folder
        self.start_ns, self.duration_ns, self.steps = start_ns, duration_ns, steps
        self.cut = False            # the client has hung up, or said more: the recording ends
        self.began_ns = self.ended_ns = 0
        self.counted = 0            # steps that have ended
        self._free = threading.Lock()
        self.prof: Optional[profile] = None

    def take(self) -> bool:
        """Two threads call this, and the first one gets True: the thread that trains begins the recording, the one that listens gives the request up."""
        return self._free.acquire(blocking=False)

    def is_over(self, now: int) -> bool:
        return self.cut or bool(self.steps and self.counted >= self.steps) or bool(self.duration_ns and now - max(self.began_ns, self.start_ns) >= self.duration_ns)


def _identity(fd: int) -> Any:
    """What a descriptor stands for: the program may close ours, and get the number again for a file of its own."""
    try:
        st = os.fstat(fd)
    except OSError:
        return None
    return st.st_dev, st.st_ino


def _close(s: socket.socket, identity: Any) -> None:
    """Unless its descriptor stands for something else by now."""
    if identity is not None and s.fileno() >= 0 and _identity(s.fileno()) != identity:
        s.detach()
    with suppress(OSError):
        s.close()


class _Connection:
    def __init__(self, s: socket.socket):
        self.socket = s
        self.identity = _identity(s.fileno())
        self.since = time.monotonic()
        self.data = b""
        self.pid = struct.unpack("iII", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]

    def say(self, line: str) -> None:
        try:
            data = os.fsencode(line)  # the names in it may be of any bytes
        except UnicodeEncodeError:
            data = line.encode(errors="replace")
        with suppress(OSError):
            if self.is_ours():
                self.socket.send(data + b"\n")

    def is_ours(self) -> bool:
        return self.socket.fileno() >= 0 and _identity(self.socket.fileno()) == self.identity

    def end(self, line: Optional[str] = None) -> None:
        if line is not None:
            self.say(line)
        _close(self.socket, self.identity)


class _Server:
    """The thread, and its socket."""

    def __init__(self, owner: OnDemand):
        self.owner = weakref.ref(owner)
        self.dir, self.pid = owner.dir, os.getpid()
        self.request: Optional[_Request] = None
        self.done: List[_Request] = []   # their recordings have ended, and are to be written to files
        self.over = False
        self.connections: List[_Connection] = []
        self.identities: List[Any] = []
        self.wakes, self.wake_end = os.pipe()
        self.listening = socket.socket(socket.AF_UNIX)
        try:
            self.path = self._bind()
        except BaseException:
            self._drop()
            raise
        self.identities = [(fd, _identity(fd)) for fd in (self.wakes, self.wake_end, self.listening.fileno())]
        self.thread = threading.Thread(target=self._run, name="opscope-ask", daemon=True)
        self.thread.start()

    def _bind(self) -> str:
        """Goes by the folder's descriptor, since a socket's path has 107 bytes at most."""
        run = os.stat(self.dir)
        place, name = _folder(), f"{self.pid}-{time.time_ns()}-{run.st_dev:x}-{run.st_ino:x}.ask"
        folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            self.listening.bind(f"/proc/self/fd/{folder}/{name}")
            os.chmod(name, 0o600, dir_fd=folder)
        finally:
            os.close(folder)
        self.listening.listen(16)
        self.listening.setblocking(False)
        return os.path.join(place, name)

    def is_ours(self) -> bool:
        return all(_identity(fd) == is_ for fd, is_ in self.identities)

    def wake(self) -> None:
        with suppress(OSError):
            if self.is_ours():
                os.write(self.wake_end, b"x")

    def _run(self) -> None:
        try:
            while self._round():
                pass
        finally:
            r = self.request
            self._drop()
            if r is not None:
                r.cut = True  # step() ends it
                r.take()

    def _round(self) -> bool:
        """Waits for something to happen, and does what is to be done. False: that was the last time."""
        self._write_files()
        if self.over or not self.is_ours():
            return False
        connections = [c for c in self.connections if c.socket.fileno() >= 0 and not (self.request and self.request.connection is c and self.request.cut)]
        waiting = [self.wakes, *(c.socket.fileno() for c in connections)]
        if len(self.connections) < CONNECTIONS:
            waiting.append(self.listening.fileno())
        poll = select.poll()  # select() knows no descriptor above 1023
        for fd in waiting:
            poll.register(fd, select.POLLIN)
        busy = self.request is not None or self.connections
        readable = {fd for fd, _ in poll.poll(100 if busy else IDLE_MS)}
        if not self.is_ours():
            return False
        if self.wakes in readable:
            os.read(self.wakes, 4096)
        if self.listening.fileno() in readable:
            self._take_new()
        for c in list(self.connections):
            self._hear(c, c.socket.fileno() in readable)
        return True

    def _drop(self) -> None:
        """Closes the descriptors, and removes the socket."""
        for c in self.connections:
            c.end()
        self.connections = []
        identities = dict(self.identities)
        _close(self.listening, identities.get(self.listening.fileno()))
        for fd in (self.wakes, self.wake_end):
            with suppress(OSError):
                if fd not in identities or _identity(fd) == identities[fd]:
                    os.close(fd)
        with suppress(OSError, AttributeError):
            if os.getpid() == self.pid:
                os.unlink(self.path)

    def _take_new(self) -> None:
        try:
            s = self.listening.accept()[0]
        except OSError:
            return
        s.setblocking(False)
        uid = struct.unpack("iII", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]
        c = _Connection(s)
        if uid != os.geteuid():
            c.end("error only the user whose program this is may ask")
            return
        rank = os.environ.get("RANK", "")
        c.say(f"{GREETING}pid={self.pid} rank={rank if rank.isascii() and rank.isdigit() else -1} state={'recording' if self.request else 'idle'} dir={self.dir}")
        self.connections.append(c)
        time.sleep(0.002)  # so that a client that connects again and again does not keep a processor busy

    def _end(self, c: _Connection, line: Optional[str] = None) -> None:
        c.end(line)
        if c in self.connections:
            self.connections.remove(c)

    def _hear(self, c: _Connection, readable: bool) -> None:
        asking = self.request is not None and self.request.connection is c
        if not asking and time.monotonic() - c.since > PATIENCE_S:
            self._end(c, "error no request came")
            return
        if not readable:
            return
        try:
            data = c.socket.recv(LINE_MOST + 1) if c.is_ours() else b""
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if asking:
            assert self.request
            self.request.cut = True
            if self.request.take():
                self.answer(self.request, "error the recording was given up before it began")
            return
        c.data += data
        if not data:
            self._end(c)
        elif len(c.data) > LINE_MOST or b"\0" in c.data:
            self._end(c, "error the request is no line of text, or is too long")
        elif c.data.find(b"\n") not in (-1, len(c.data) - 1):
            self._end(c, "error one line was expected")
        elif c.data.endswith(b"\n"):
            self._accept(c)

    def _accept(self, c: _Connection) -> None:
        found = REQUEST.fullmatch(c.data.decode(errors="replace"))
        if not found:
            self._end(c, "error this version does not know the request: the same version of opscope was expected on both sides")
            return
        name, key = found[1], found[5]
        start, duration, steps = (int(v) for v in found.group(2, 3, 4))
        why = None
        if key:
            why = "--key-range has no meaning: the steps of this program are calls of step()"
        elif start > time.time_ns() + AHEAD_NS:
            why = "the start lies more than an hour ahead"
        elif self.request:
            why = f"already recording for process {self.request.connection.pid}"
        else:
            why = self._make(os.path.join(self.dir, name))
        if why:
            self._end(c, f"error {why}")
            return
        self.request = _Request(c, os.path.join(self.dir, name), start, duration, steps)
        owner = self.owner()
        if owner:
            owner._request = self.request

    @staticmethod
    def _make(folder: str) -> Optional[str]:
        """Makes the folder; says why that fails. A folder that is there already must be ours, and no link."""
        try:
            with suppress(FileExistsError):
                os.mkdir(folder, 0o700)
            st = os.lstat(folder)
        except OSError as e:
            return f"{folder}: {e.strerror}"
        return None if stat.S_ISDIR(st.st_mode) and st.st_uid == os.geteuid() else f"{folder}: a folder of the program's user was expected"

    def _write_files(self) -> None:
        while self.done:
            r = self.done.pop(0)
            assert r.prof
            recording = r.prof.recordings[-1]
            suffix = ".seg" if recording.path.endswith(".seg") else ".pt.trace.json.gz"
            path = os.path.join(r.folder, f"{os.uname().nodename.replace('/', '_')}-{self.pid}-{r.began_ns}{suffix}")
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
                recording.save(path)
                line = f"done steps={r.counted} ns={max(r.ended_ns - r.began_ns, 0)} file={path}"
            except Exception as e:
                with suppress(OSError):
                    os.unlink(path)
                line = f"error {path}: {e.strerror if isinstance(e, OSError) and e.strerror else e}".replace("\n", " ")
            r.prof = None  # removes the recording's own file, too
            self.answer(r, line)

    def answer(self, r: _Request, line: str) -> None:
        self._end(r.connection, line)
        self.request = None


def _launched_as() -> Dict[str, str]:
    """The rank that the launcher states; {} once the program has begun torch.distributed, which then tells the recording."""
    dist = import_module("torch.distributed")
    rank, world = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    if not (rank.isascii() and rank.isdigit() and world.isascii() and world.isdigit()) or (dist.is_available() and dist.is_initialized()):
        return {}
    return {"distributedInfo": json.dumps({"rank": int(rank), "world_size": int(world)})}


def _marks_steps() -> bool:
    """Whether opscope's own library records this process, now or on demand: then the library listens, and step() marks steps for it."""
    return _annotate.listener() == "opscope"


class OnDemand:
    """Made by opscope.on_demand(). A context manager; step() where a step begins."""

    def __init__(self, dir: Path, options: Dict[str, Any]):
        #: The run directory: each recording is a folder in it.
        self.dir = os.path.abspath(os.fsdecode(dir))
        self._options = options
        self._number = -1
        self._request: Optional[_Request] = None  # the next step() has to look at this request
        self._server: Optional[_Server] = None
        self._mark: Optional[_Step] = None
        self._marks = _marks_steps()
        if re.search(r"[\0-\x1f\x7f]", self.dir):
            raise ValueError(f"on_demand: {self.dir!r}: the run directory has a control character in its path: nobody could ask for a recording")
        profile(enabled=False, **options)         # wrong options are an error here, and not when somebody asks
        if self._marks:
            return
        os.makedirs(self.dir, mode=0o700, exist_ok=True)
        self._server = _Server(self)
        _listening.add(self)

    def step(self) -> None:
        """A step begins, and the step before has ended. While nobody asks, this only counts."""
        self._number += 1
        if self._request is not None:
            self._border(self._request)
        elif self._marks:
            self._mark_step()

    def _mark_step(self) -> None:
        if self._mark is not None:
            self._mark.__exit__()
        self._mark = _Step(self._number)
        self._mark.__enter__()

    def _border(self, r: _Request) -> None:
        now = time.time_ns()
        if r.prof is not None:
            r.counted += 1
            if r.is_over(now):
                self._finish(r)
            else:
                r.prof.step()
        elif now >= r.start_ns:
            if r.take():
                self._begin(r)
            else:  # the request was given up
                self._request = None

    def _begin(self, r: _Request) -> None:
        try:
            r.prof = profile(schedule=always, keep=1, **self._options)
            r.prof.step_num = self._number
            for key, value in _launched_as().items():
                r.prof.add_metadata_json(key, value)
            r.prof.start()
        except Exception as e:
            self._fail(r, f"the profiler could not begin: {type(e).__name__}: {e}")
            return
        r.began_ns = time.time_ns()
        r.connection.say("begun")

    def _finish(self, r: _Request) -> None:
        """Ends the recording. The thread that listens writes the file."""
        assert r.prof and self._server
        r.ended_ns = time.time_ns()
        try:
            r.prof._close_step()
            r.prof.stop()
            r.prof.recordings[-1]
        except Exception as e:
            self._fail(r, f"the profiler could not end: {type(e).__name__}: {e}")
            return
        self._request = None
        self._server.done.append(r)
        self._server.wake()
        if not self._server.thread.is_alive():
            self._server._write_files()

    def _fail(self, r: _Request, why: str) -> None:
        self._request = r.prof = None
        warnings.warn(f"opscope.on_demand: {why}", stacklevel=4)
        if self._server:
            self._server.answer(r, "error " + why.replace("\n", " "))

    def close(self) -> None:
        """Nobody can ask any more. A recording that still goes on ends; its last step is not counted."""
        server, self._server = self._server, None
        if self._mark is not None:
            self._mark.__exit__()
            self._mark = None
        if server is None or server.pid != os.getpid():
            return
        _listening.discard(self)
        r = self._request
        self._server = server
        if r is not None and r.prof is not None:
            self._finish(r)
        self._server = None
        server.over = True
        server.wake()
        server.thread.join()

    def __enter__(self) -> OnDemand:
        return self

    def __exit__(self, *unused: Any) -> None:
        self.close()


_listening: weakref.WeakSet[OnDemand] = weakref.WeakSet()


def _close_all() -> None:
    for one in list(_listening):
        with suppress(Exception):
            one.close()


def _after_fork() -> None:
    """The parent listens. Its child has no such thread, and must not keep the socket."""
    for one in list(_listening):
        server, one._server, one._request = one._server, None, None
        if server and server.is_ours():
            server._drop()
    _listening.clear()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_after_fork)


def on_demand(dir: Path, **options: Any) -> OnDemand:
    """Lets `opscope record --ask` record this program while it trains. Each recording is a Kineto trace in a folder of its own in `dir`.

    with opscope.on_demand("run", record_shapes=True) as demand:
        for batch in loader:
            demand.step()
            train(batch)

    options are those of opscope.profile(): activities, record_shapes, profile_memory, with_stack, with_modules, backend, ... The profiler begins and ends in step(), on
    the thread that calls it. Where the program was started under `opscope record`, opscope's own library records it, and step() only marks steps.
    """
    for name in ("schedule", "on_trace_ready", "enabled", "keep"):
        if name in options:
            raise TypeError(f"on_demand: {name}= has no meaning: recordings are asked for by `opscope record --ask`")
    return OnDemand(dir, options)
