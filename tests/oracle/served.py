"""A server for tests: `opscope serve -p 0` started and asked over plain sockets or urllib."""
import gzip
import http.client
import json
import os
import signal
import subprocess
import threading
import urllib.parse

import oracle


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.raw = status, headers, body
        self.body = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body

    def json(self):
        return json.loads(self.body)


class Server:
    """Ends with the test that started it; its exit status must be 0 and nothing may stand on stderr."""

    def __init__(self, case, *args, program=None, quiet=True):
        self.case, self.quiet = case, quiet
        command = [program or oracle.OPSCOPE] + ([] if program else ["serve"]) + ["-p", "0", *map(str, args)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.url = self.process.stdout.readline().decode().strip()
        if not self.url:
            raise AssertionError(f"{command}: {self.process.stderr.read().decode()}")
        self.address = urllib.parse.urlsplit(self.url)
        self.port = self.address.port
        self.errors = []
        self.reader = threading.Thread(target=lambda: self.errors.append(self.process.stderr.read()))
        self.reader.start()
        case.addCleanup(self.stop)

    def stop(self, how=signal.SIGINT, timeout=60):
        if self.process.stdout.closed:
            return
        self.process.send_signal(how)
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError("the server does not end") from None
        finally:
            self.reader.join()
            self.process.stdout.close()
            self.process.stderr.close()
        errors = b"".join(self.errors).decode(errors="replace")
        if status or (self.quiet and errors):
            raise AssertionError(f"the server ended with {status}: {errors[-6000:]}")

    def ask(self, path, args=None, method="GET", headers=None, body=None, timeout=60):
        oracle.ask_wings(f"{path} --compat={(args or {}).get('compat')}")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            query = "?" + urllib.parse.urlencode(args) if args else ""
            connection.request(method, path + query, body=body, headers=headers or {})
            a = connection.getresponse()
            return Answer(a.status, {k.lower(): v for k, v in a.getheaders()}, a.read())
        finally:
            connection.close()

    def get(self, path, status=200, **args):
        a = self.ask(path, args)
        # Another thread may hold a lock of ASan's allocator while the server forks: gcc 12's does not see to that, and the child then stands still.
        if a.status == 422 and status == 200 and b"it took too long" in a.body and os.environ.get("OPSCOPE_SANITIZED"):
            a = self.ask(path, args)
        self.case.assertEqual(a.status, status, (path, args, a.body[:2000]))
        return a.json()

    def post(self, path, args=None, status=200, headers=None, body=b""):
        a = self.ask(path, args, "POST", {"X-Opscope": "1", **(headers or {})}, body)
        self.case.assertEqual(a.status, status, (path, args, a.body[:2000]))
        return a.json()

    def inputs(self):
        return {x["input"]: x for x in self.get("/api/state")["inputs"]}

    def memory_kb(self):
        with open(f"/proc/{self.process.pid}/status") as f:
            return int(next(line for line in f if line.startswith("VmRSS")).split()[1])
