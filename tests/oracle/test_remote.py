"""Inputs of object stores: the same answers as of the local file, from stores on loopback that check signatures, and no secret anywhere."""
import gzip
import json
import os
import shutil
import subprocess
import tempfile
import time
import unittest

import oracle
from nsys_db import call, kernel, make, strings
from object_store import ACCOUNT, ACCOUNT_KEY, KEY, OAUTH, SAS, SECRET, SECRETS, TOKEN, Store, certificate, sigv4
from oracle import Case, synthetic
from served import Server

BUILT = subprocess.run([oracle.OPSCOPE, "info", "s3://"], capture_output=True, check=False).stderr if os.path.exists(oracle.OPSCOPE) else b""
S3 = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}


def read(path):
    with open(path, "rb") as f:
        return f.read()


def large_trace(kernels=30000):
    """A trace of some megabytes that cannot be packed into one block."""
    events = [{"ph": "X", "cat": "kernel", "name": f"k{i % 7}_{i * 2654435761 % 2**32:08x}", "pid": 0, "tid": 7, "ts": 1000 + 10 * i, "dur": 5,
               "args": {"device": 0, "stream": 7, "correlation": i, "grid": [1, 1, 1], "block": [32, 1, 1]}} for i in range(kernels)]
    return json.dumps({"traceEvents": events}).encode()


@unittest.skipIf(b"without libcurl" in BUILT, "built without libcurl")
class Remote(Case):
    def setUp(self):
        super().setUp()
        self.home = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.home)
        self.said = b""

    def run_with(self, env, *args, code=0, timeout=60):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "S3_", "GS_", "GOOGLE_", "AZURE_", "CLOUDSDK_", "STORAGE_", "XDG_", "CURL_", "SSL_")) and not k.lower().endswith("_proxy")}
        clean.update({"HOME": self.home, "OPSCOPE_REMOTE_TIMEOUT": "2", **env})
        p = subprocess.run([oracle.OPSCOPE, *args], env=clean, capture_output=True, timeout=timeout, check=False)
        self.assertEqual(p.returncode, code, (args, p.stderr))
        for secret in SECRETS:
            self.assertNotIn(secret.encode(), p.stdout + p.stderr)
        if code:
            self.assertEqual(p.stderr.count(b"\n"), 1, p.stderr)
        return p.stdout if not code else p.stderr.decode()

    def cache(self):
        return sorted(os.path.join(d, f) for d, _, files in os.walk(os.path.join(self.home, ".cache")) for f in files)

    def local(self, name, body):
        path = os.path.join(self.home, name)
        with open(path, "wb") as f:
            f.write(body)
        return path

    def same_answer(self, env, address, path, report="kernels"):
        self.assertEqual(self.run_with(env, "report", report, address, "--format=csv"), self.run_with({}, "report", report, path, "--format=csv"))


class S3Store(Remote):
    def store(self, files, **kw):
        s = Store(self, "s3", files, **kw)
        return s, {**S3, "AWS_ENDPOINT_URL": s.url}

    def test_published_signature(self):
        """The checking server's own arithmetic: AWS's example of GET Object ("Signature Calculations for the Authorization Header")."""
        headers = {"host": "examplebucket.s3.amazonaws.com", "range": "bytes=0-9", "x-amz-date": "20130524T000000Z",
                   "x-amz-content-sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}
        headers["Authorization"] = ("AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
                                    "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,Signature=" + "0" * 64)
        self.assertEqual(sigv4("GET", "/test.txt", headers, "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
                         "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")

    def test_streams(self):
        """Plain and packed traces, keys of odd characters; nothing is kept on the disk."""
        body = large_trace()
        path = self.local("t.json", body)
        s, env = self.store({"bucket/runs/t.json": body, "bucket/a b/+&=;$@?#%41 ü/t.json.gz": gzip.compress(body)})
        self.same_answer(env, "s3://bucket/runs/t.json", path)
        self.same_answer(env, "s3://bucket/a b/+&=;$@?#%41 ü/t.json.gz", path)
        self.assertFalse(s.refused)
        self.assertFalse(self.cache())

    def test_session_and_profiles(self):
        """Whose keys count: the environment's, the named profile's, the default one's; also the region and the endpoint of the files."""
        body = read(synthetic("training_gpu"))
        path = self.local("t.json", body)
        s, env = self.store({"bucket/t.json": body}, region="eu-central-1")
        s.token = True
        self.same_answer({**env, "AWS_SESSION_TOKEN": TOKEN, "AWS_REGION": "eu-central-1"}, "s3://bucket/t.json", path)
        os.mkdir(os.path.join(self.home, ".aws"))
        self.local(".aws/credentials", f"[default]\naws_access_key_id=AKIANOBODY\naws_secret_access_key = x\n# [work]\n[work]\r\naws_access_key_id = {KEY}\r\n"
                   f"aws_secret_access_key={SECRET}\naws_session_token = {TOKEN}\n".encode())
        self.local(".aws/config", f"[default]\nregion = us-west-1\nendpoint_url = {s.url}\n[profile work]\nregion = eu-central-1\nendpoint_url = {s.url}\n".encode())
        self.same_answer({"AWS_PROFILE": "work"}, "s3://bucket/t.json", path)
        said = self.run_with({}, "info", "s3://bucket/t.json", code=1)
        self.assertIn("profile 'default' of", said)
        self.assertIn("(403", said)
        self.assertIn("no profile 'gone'", self.run_with({"AWS_PROFILE": "gone"}, "info", "s3://bucket/t.json", code=1))

    def test_region_is_learned(self):
        body = read(synthetic("training_gpu"))
        s, env = self.store({"bucket/t.json": body, "bucket/d/rank0.json": body, "bucket/d/rank1.json": body}, region="ap-south-1", page=1)
        self.same_answer(env, "s3://bucket/t.json", self.local("t.json", body))
        self.assertIn(b"rank1", self.run_with(env, "info", "s3://bucket/d"))
        self.assertTrue(s.refused)

    def test_refusals(self):
        """One line each: who asked, what is not there, what the server said; the body of an error holds secrets."""
        s, env = self.store({"bucket/t.json": b"{}"})
        self.assertIn("access is refused (403", self.run_with({**env, "AWS_SECRET_ACCESS_KEY": "wrong"}, "info", "s3://bucket/t.json", code=1))
        self.assertIn("AWS_ACCESS_KEY_ID of the environment", self.run_with({**env, "AWS_SECRET_ACCESS_KEY": "wrong"}, "info", "s3://bucket/d/", code=1))
        self.assertIn("SignatureDoesNotMatch", self.run_with({**env, "AWS_SECRET_ACCESS_KEY": "wrong"}, "info", "s3://bucket/d/", code=1))
        self.assertIn("no credentials", self.run_with({"AWS_ENDPOINT_URL": s.url}, "info", "s3://bucket/t.json", code=1))
        self.assertIn("no such file or folder", self.run_with(env, "info", "s3://bucket/gone", code=1))
        self.assertIn("no traces", self.run_with(env, "info", "s3://bucket/gone/", code=1))
        self.assertIn("name of a bucket", self.run_with(env, "info", "s3:///x", code=1))
        self.assertIn("control character", self.run_with({**env, "AWS_SECRET_ACCESS_KEY": "a\nX-Evil: 1"}, "info", "s3://bucket/t.json", code=1))
        self.assertIn("copy the file here", self.run_with(env, "aggregate", "s3://bucket/x.opscope", "--steps=1", code=1))
        s.server.server_close()
        self.assertTrue(self.run_with({**env, "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, "info", "s3://bucket/t.json", code=1))

    def test_anonymous(self):
        body = read(synthetic("training_gpu"))
        s = Store(self, "s3", {"open/t.json": body}, signed=False)
        self.same_answer({"S3_ENDPOINT": s.host, "S3_USE_HTTPS": "0"}, "s3://open/t.json", self.local("t.json", body))
        self.assertNotIn("authorization", s.requests[-1][2])

    def test_folders(self):
        """A prefix is a folder: runs, workers and spans as of a local one, in pages; hidden, empty and other files are as there."""
        one, two = read(synthetic("training_gpu")), read(synthetic("two_steps"))
        files = {"exp1/rank0.1.pt.trace.json": one, "exp1/rank0.2.pt.trace.json": two, "exp1/rank1.1.pt.trace.json.gz": gzip.compress(one), "exp2/deep/a & b.json": two,
                 "exp2/notes.json": b'{"a": 1}', "exp2/.hidden/t.json": one, "exp2/empty.json": b"", "exp2/": b"", "README.md": b"x"}
        s, env = self.store({f"bucket/top/{k}": v for k, v in files.items()}, page=2)
        for name, body in files.items():
            if not name.endswith("/"):
                os.makedirs(os.path.dirname(os.path.join(self.home, "top", name)), exist_ok=True)
                self.local(os.path.join("top", name), body)
        for address in "s3://bucket/top", "s3://bucket/top/":
            there = json.loads(self.run_with(env, "info", address, "--format=json"))
            here = json.loads(self.run_with({}, "info", os.path.join(self.home, "top"), "--format=json"))
            names = [c["id"] for c in here["columns"]]
            keep = [i for i, n in enumerate(names) if n not in ("path", "file", "input")]
            self.assertEqual([[r[i] for i in keep] for r in there["rows"]], [[r[i] for i in keep] for r in here["rows"]])
        self.same_answer(env, "s3://bucket/top/exp1/rank0.2.pt.trace.json", os.path.join(self.home, "top/exp1/rank0.2.pt.trace.json"))
        chosen = self.run_with(env, "report", "kernels", "s3://bucket/top", "--run=exp1", "--worker=rank1", "--format=csv")
        self.assertEqual(chosen, self.run_with({}, "report", "kernels", os.path.join(self.home, "top"), "--run=exp1", "--worker=rank1", "--format=csv"))
        self.assertFalse([r for r in s.refused if r[0] != 404])

    def test_commands(self):
        """diff, import, export, advise, jobs, and the program alone."""
        a, b = read(synthetic("training_gpu")), read(synthetic("two_steps"))
        s, env = self.store({"bucket/a.json": a, "bucket/b.json": b})
        here = [self.local("a.json", a), self.local("b.json", b)]
        there = ["s3://bucket/a.json", "s3://bucket/b.json"]
        for command in ["diff", *there, "--force"], ["report", "overview", there[0]], ["advise", there[0]], ["look", there[0]], ["info", there[0]]:
            local = [dict(zip(there, here)).get(w, w) for w in command]
            said = self.run_with({}, *local, "--format=json").decode()
            for one, other in zip(here, there):
                said = said.replace(one, other)
            self.assertEqual(json.loads(self.run_with(env, *command, "--format=json")), json.loads(said), command)
        self.assertEqual(self.run_with(env, "export", "chrome", there[0], "-o", "-"), self.run_with({}, "export", "chrome", here[0], "-o", "-"))
        self.assertTrue(self.run_with(env, there[0]))
        kept = os.path.join(self.home, "kept.opscope")
        self.run_with(env, "import", there[0], "-o", kept)
        self.assertEqual(os.stat(kept).st_mode & 0o077, 0)
        self.assertEqual(self.run_with({}, "report", "kernels", kept, "--format=csv"), self.run_with({}, "report", "kernels", here[0], "--format=csv"))

    def database(self, kernels=3):
        path = os.path.join(self.home, "t.sqlite")
        make(path, {"StringIds": strings("k", "cudaLaunchKernel_v7000"), "CUPTI_ACTIVITY_KIND_RUNTIME": [call(100 * i, 100 * i + 10, i, 10, 11) for i in range(1, kernels)],
                    "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(100 * i + 20, 100 * i + 70, i, 10) for i in range(1, kernels)]})
        return path

    def test_cache(self):
        """A database is copied once, and again where it has another version; the older copy goes."""
        path = self.database()
        s, env = self.store({"bucket/d/t.sqlite": read(path)})
        self.same_answer(env, "s3://bucket/d/t.sqlite", path)
        self.same_answer(env, "s3://bucket/d", path)
        first = self.cache()
        self.assertEqual([os.path.basename(p) for p in first], ["t.sqlite"])
        self.assertEqual(os.stat(first[0]).st_mode & 0o077, 0)
        os.utime(first[0], (1, 1))
        self.same_answer(env, "s3://bucket/d/t.sqlite", path)
        self.assertEqual(self.cache(), first)
        self.assertGreater(os.stat(first[0]).st_mtime, 1)
        os.unlink(path)
        path = self.database(5)
        s.files["bucket/d/t.sqlite"] = read(path)
        self.same_answer(env, "s3://bucket/d/t.sqlite", path)
        self.assertEqual(len(self.cache()), 1)
        self.assertNotEqual(self.cache(), first)
        with open(self.cache()[0], "r+b") as f:
            f.truncate(100)
        self.same_answer(env, "s3://bucket/d/t.sqlite", path)
        said = self.run_with({**env, "XDG_CACHE_HOME": "/proc"}, "info", "s3://bucket/d/t.sqlite", code=1)
        self.assertIn("its local copy", said)

    def test_kept_files(self):
        """Files of `opscope import`: reports, and SQL."""
        one = synthetic("training_gpu")
        kept = os.path.join(self.home, "k.opscope")
        self.run_with({}, "import", one, "-o", kept)
        s, env = self.store({"bucket/d/k.opscope": read(kept)})
        for address in "s3://bucket/d/k.opscope", "s3://bucket/d":
            self.same_answer(env, address, kept)
            self.assertEqual(self.run_with(env, "sql", address, "SELECT count(*) FROM gpu_op", "--format=csv"), self.run_with({}, "sql", kept, "SELECT count(*) FROM gpu_op", "--format=csv"))

    def test_dropped(self):
        """A connection that drops is taken up where it broke, if the file is the same."""
        body = large_trace()
        path = self.local("t.json", body)
        s, env = self.store({"bucket/t.json": body, "bucket/t.json.gz": gzip.compress(body)})
        for name in "t.json", "t.json.gz":
            s.drop_after = [10000, 30000, 7]
            s.requests.clear()
            self.same_answer(env, f"s3://bucket/{name}", path)
            self.assertEqual([r[2].get("range") for r in s.requests if r[0] == "GET"], [None, "bytes=10000-", "bytes=40000-", "bytes=40007-"])
        s.drop_after = [100000]
        s.no_version = True
        self.assertIn("names no version", self.run_with(env, "report", "kernels", "s3://bucket/t.json", code=1))
        s.no_version = False
        s.drop_after = [0] * 50
        self.assertIn("no answer: transfer closed", self.run_with(env, "report", "kernels", "s3://bucket/t.json", code=1))

    def test_replaced_while_read(self):
        body = large_trace()
        s, env = self.store({"bucket/t.json": body})
        real, tags = s.etag, iter(['"one"', '"one"', '"two"'])
        s.etag = lambda name: next(tags, None) or real(name)
        s.drop_after = [200000]
        self.assertIn("replaced while it was read", self.run_with(env, "report", "kernels", "s3://bucket/t.json", code=1))

    def test_busy(self):
        body = read(synthetic("training_gpu"))
        s, env = self.store({"bucket/t.json": body})
        s.fail = [503, 500, 429]
        self.same_answer(env, "s3://bucket/t.json", self.local("t.json", body))
        s.fail = [503] * 20
        self.assertIn("answers 503", self.run_with(env, "report", "kernels", "s3://bucket/t.json", code=1))

    def test_stalled(self):
        """A server from which nothing comes any more is given up after a while, also within a packed file."""
        body = large_trace()
        s, env = self.store({"bucket/t.json": body, "bucket/t.json.gz": gzip.compress(body)})
        for name in "t.json", "t.json.gz":
            s.stall = 800
            began = time.monotonic()
            self.assertIn("OPSCOPE_REMOTE_TIMEOUT", self.run_with({**env, "OPSCOPE_REMOTE_TIMEOUT": "1"}, "report", "kernels", f"s3://bucket/{name}", code=1))
            self.assertLess(time.monotonic() - began, 40)

    def test_odd_answers(self):
        """A list that is none; names that lead nowhere."""
        s, env = self.store({"bucket/d/x.json": b"{}"})
        s.list = lambda h, bucket, query: s.send(h, 200, b"<html>hello</html>")
        self.assertIn("no list of files", self.run_with(env, "info", "s3://bucket/d/", code=1))
        s.list = lambda h, bucket, query: s.send(h, 200, b"<ListBucketResult>" + b"<Contents><Key>d/../../../etc/x.json</Key><Size>-5</Size></Contents><Contents><Key>e/x.json</Key></Contents>"
                                                 b"<Contents><Key>d/&#x10ffff9;&unknown;&#0;" + b"<Contents>" * 50 + b"</ListBucketResult>")
        self.assertIn("no traces", self.run_with(env, "info", "s3://bucket/d/", code=1))
        s.list = lambda h, bucket, query: s.send(h, 200, b"<ListBucketResult>" + b"x" * (40 << 20))
        self.assertIn("is larger than", self.run_with(env, "info", "s3://bucket/d/", code=1))

    def test_capture(self):
        s, env = self.store({"bucket/run/1.seg": b"\0" * 100})
        self.assertIn("a capture of opscope record", self.run_with(env, "info", "s3://bucket/run/", code=1))

    def test_jobs(self):
        """Ranks of a job under a prefix: each is asked, and a report about all of them is that of the local folder."""
        with open(synthetic("training_gpu"), encoding="utf-8") as f:
            doc = json.load(f)
        doc = doc if isinstance(doc, dict) else {"traceEvents": doc}
        os.mkdir(os.path.join(self.home, "job"))
        files = {}
        for rank in range(3):
            body = json.dumps({"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 3}, **doc}).encode()
            self.local(f"job/rank{rank}.json", body)
            files[f"bucket/x/job/rank{rank}.json"] = body
        s, env = self.store(files)
        there, here = "s3://bucket/x/job", os.path.join(self.home, "job")
        for report in "ranks", "kernels":
            said = self.run_with({}, "report", report, here, "--format=csv").replace(here.encode(), there.encode())
            self.assertEqual(self.run_with(env, "report", report, there, "--format=csv"), said)
        kept = os.path.join(self.home, "job.opscope")
        self.run_with(env, "import", "s3://bucket/x/job", "-o", kept)
        self.assertEqual(os.stat(kept).st_mode & 0o077, 0)
        s.files["bucket/kept/job.opscope"] = read(kept)
        self.same_answer(env, "s3://bucket/kept/job.opscope", kept, "ranks")

    def test_serve(self):
        """The server lists and shows what lies there, and its pages hold no secret."""
        body = read(synthetic("training_gpu"))
        web, s = Store(self, "web", {"t.json": body}), Store(self, "s3", {"bucket/d/one.json": body, "bucket/d/two.json": body})
        clean = {**S3, "AWS_ENDPOINT_URL": s.url, "HOME": self.home}
        old = {k: os.environ.get(k) for k in clean}
        os.environ.update(clean)
        try:
            server = Server(self, "s3://bucket/d", f"{web.url}/t.json?token=passw0rd")
        finally:
            for k, v in old.items():
                os.environ.pop(k) if v is None else os.environ.update({k: v})
        inputs = server.inputs()
        self.assertEqual(sorted(key.split("/")[1] for key in inputs), ["one", "t", "two"])
        for key in inputs:
            answer = server.ask("/api/report/kernels", {"input": key})
            self.assertEqual(answer.status, 200, answer.body)
            self.assertNotIn(b"passw0rd", answer.body)
        self.assertNotIn(b"passw0rd", server.ask("/api/state").body)
        asked = s.count() + web.count()
        time.sleep(7)
        self.assertEqual(s.count() + web.count(), asked)

    def test_boto3(self):
        """What AWS's own library signs is accepted: the server checks what it should."""
        try:
            import boto3
            from botocore.config import Config
        except ImportError:
            self.skipTest("no boto3")
        s, _ = self.store({"bucket/a b/+x.json": b"{}"}, page=1)
        client = boto3.client("s3", endpoint_url=s.url, aws_access_key_id=KEY, aws_secret_access_key=SECRET, region_name="us-east-1", config=Config(s3={"addressing_style": "path"}, proxies={}))
        self.assertEqual(client.get_object(Bucket="bucket", Key="a b/+x.json", Range="bytes=1-")["Body"].read(), b"}")
        self.assertEqual(client.list_objects_v2(Bucket="bucket", Prefix="a b/")["Contents"][0]["Key"], "a b/+x.json")
        self.assertFalse(s.refused)


class OtherStores(Remote):
    def test_google(self):
        body = read(synthetic("training_gpu"))
        path = self.local("t.json", body)
        s = Store(self, "gs", {"bucket/runs/a b/t.json": body})
        for env in {"GS_ACCESS_KEY_ID": KEY, "GS_SECRET_ACCESS_KEY": SECRET}, {"GOOGLE_OAUTH_ACCESS_TOKEN": OAUTH}:
            env = {**env, "STORAGE_EMULATOR_HOST": s.host}
            self.same_answer(env, "gs://bucket/runs/a b/t.json", path)
            self.same_answer(env, "gs://bucket/runs", path)
        self.assertFalse([r for r in s.refused if r[0] != 404])
        said = self.run_with({"STORAGE_EMULATOR_HOST": s.host, "GOOGLE_OAUTH_ACCESS_TOKEN": "ya29.a-token-of-google.other"}, "info", "gs://bucket/runs", code=1)
        self.assertIn("GOOGLE_OAUTH_ACCESS_TOKEN", said)

    def connection(self, s, secret):
        return {"AZURE_STORAGE_CONNECTION_STRING": f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};{secret};BlobEndpoint={s.url}/{ACCOUNT};"}

    def test_azure(self):
        body = large_trace(8000)
        path = self.local("t.json", body)
        s = Store(self, "az", {"box/runs/a b/t.json": body, "box/runs/c/x&y?.json": body}, page=1)
        key = self.connection(s, f"AccountKey={ACCOUNT_KEY}")
        for env in key, self.connection(s, f"SharedAccessSignature={SAS}"), {**self.connection(s, "x=y"), "AZURE_STORAGE_SAS_TOKEN": "?" + SAS}:
            s.drop_after = [1000]
            self.same_answer(env, "az://box/runs/a b/t.json", path)
            self.same_answer(env, "az://box/runs/c/x&y?.json", path)
            self.assertIn(b"x&y?", self.run_with(env, "info", "az://box/runs"))
        self.assertFalse([r for r in s.refused if r[0] != 404])
        self.assertIn(f"the key of account {ACCOUNT}", self.run_with(self.connection(s, "AccountKey=AAAA"), "info", "az://box/runs", code=1))
        self.assertIn("no Base64", self.run_with(self.connection(s, "AccountKey=!!"), "info", "az://box/runs", code=1))
        self.assertIn("AZURE_STORAGE_ACCOUNT", self.run_with({}, "info", "az://box/runs", code=1))
        none = self.connection(s, "x=y")
        self.same_answer(none, f"az://box/runs/a b/t.json?{SAS}", path)
        self.assertIn(b"x&y?", self.run_with(none, "info", f"az://box/runs?{SAS}"))
        self.assertIn("the SAS token of the address", self.run_with(none, "info", "az://box/runs?sig=s1gnature", code=1))

    def test_web(self):
        """A query is a secret: of the recorded path, of files that are made, and of messages."""
        body = large_trace(8000)
        path = self.local("t.json", body)
        s = Store(self, "web", {"a/t.json": body, "moved.json": body})
        address = f"{s.url}/a/t.json?X-Amz-Signature=s1gnature&token=passw0rd"
        self.same_answer({}, address, path)
        self.assertEqual([r[1] for r in s.requests], ["/a/t.json?X-Amz-Signature=s1gnature&token=passw0rd"])
        s.drop_after = [50000]
        self.same_answer({}, address, path)
        kept = os.path.join(self.home, "k.opscope")
        self.run_with({}, "import", address, "-o", kept)
        for secret in b"s1gnature", b"passw0rd":
            self.assertNotIn(secret, read(kept))
        self.assertIn(f"{s.url}/a/t.json".encode(), self.run_with({}, "info", kept))
        self.same_answer({}, f"http://me:passw0rd@{s.host}/a/t.json", path)
        self.assertTrue(s.requests[-1][2]["authorization"].startswith("Basic "))
        self.assertIn("404", self.run_with({}, "info", f"{s.url}/gone.json?token=passw0rd", code=1))
        self.assertIn("the address itself", self.run_with_status(s, 403))
        self.assertIn("of a file was expected", self.run_with({}, "info", f"{s.url}/a/", code=1))
        two = [f"{s.url}/a/t.json?token=passw0rd", f"{s.url}/moved.json?token=passw0rd", f"{s.url}/moved.json?token=passw0rd2"]
        self.run_with({}, "diff", two[0], two[1])
        self.run_with({}, "diff", two[0], "--steps=all", two[0], "--steps=all")
        said = self.run_with({}, "report", "kernels", *two, code=2)
        self.assertIn("#2", said)

    def run_with_status(self, s, status):
        s.fail = [status]
        return self.run_with({}, "info", f"{s.url}/a/t.json?token=passw0rd", code=1)

    def test_redirects(self):
        body = read(synthetic("training_gpu"))
        path = self.local("t.json", body)
        s, other = Store(self, "web", {"t.json": body}), Store(self, "web", {"t.json": body})
        s.redirect = {"near": (302, "/t.json?token=passw0rd"), "far": (302, f"{other.url}/t.json?token=passw0rd"), "round": (301, "/round"), "file": (302, "file:///etc/passwd"), "none": (302, "")}
        self.same_answer({}, f"{s.url}/near", path)
        self.assertIn("an https:// address was expected", self.run_with({}, "info", f"{s.url}/far", code=1))
        self.assertIn("https://", self.run_with({}, "info", f"{s.url}/file", code=1))
        self.assertIn("redirects", self.run_with({}, "info", f"{s.url}/round", code=1))
        self.run_with({}, "info", f"{s.url}/none", code=1)
        self.assertFalse(other.requests)
        store = Store(self, "s3", {"bucket/t.json": body})
        store.redirect = {"bucket/t.json": (307, f"{other.url}/t.json")}
        self.assertIn("redirects (307)", self.run_with({**S3, "AWS_ENDPOINT_URL": store.url}, "info", "s3://bucket/t.json", code=1))
        self.assertFalse(other.requests)

    def test_https(self):
        if not shutil.which("openssl"):
            self.skipTest("no openssl")
        tls = certificate(self.home)
        body = read(synthetic("training_gpu"))
        path = self.local("t.json", body)
        s = Store(self, "web", {"t.json": body}, tls=tls)
        near = Store(self, "web", {})
        near.redirect = {"t": (302, f"{s.url}/t.json")}
        self.same_answer({"SSL_CERT_FILE": tls[0]}, f"{s.url}/t.json", path)
        self.same_answer({"SSL_CERT_FILE": tls[0]}, f"{near.url}/t", path)
        self.assertIn("certificate", self.run_with({}, "info", f"{s.url}/t.json", code=1))
        store = Store(self, "s3", {"bucket/t.json": body}, tls=tls)
        self.same_answer({**S3, "S3_ENDPOINT": store.host, "S3_VERIFY_SSL": "0"}, "s3://bucket/t.json", path)
        self.assertIn("certificate", self.run_with({**S3, "S3_ENDPOINT": store.host}, "info", "s3://bucket/t.json", code=1))

    def test_other_hosts_in_plain_text(self):
        for command in "info", "advise":
            self.assertIn("an https:// address was expected", self.run_with({}, command, "http://example.com/t.json?token=passw0rd", code=1))


if __name__ == "__main__":
    oracle.main()
