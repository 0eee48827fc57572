"""Object stores on loopback, for tests: S3, Google's (by both of its keys), Azure's, and a web server. They hold files in memory, and check each request's signature by
themselves, as the documents of AWS ("Signature Version 4") and Microsoft ("Authorize with Shared Key") have it. Faults can be planted."""
import base64
import hashlib
import hmac
import http.server
import os
import re
import socket
import ssl
import subprocess
import threading
import urllib.parse
from xml.sax.saxutils import escape

KEY, SECRET, TOKEN = "AKIAOPSCOPETEST", "s3cret/that+nobody=may+see", "session/t0ken+which=is/secret"
ACCOUNT, ACCOUNT_KEY = "devaccount", base64.b64encode(b"the key of an account, 0123456789").decode()
SAS = "sv=2021-08-06&sr=c&sp=rl&sig=s1gnature%2Bof%2Fthe%2Fcontainer%3D"
OAUTH = "ya29.a-token-of-google"
SECRETS = (SECRET, TOKEN, ACCOUNT_KEY, "s1gnature", OAUTH, "passw0rd", "Signature=")


def quoted(text, safe="-._~"):
    return urllib.parse.quote(text, safe=safe)


def sigv4(method, raw_path, headers, key=SECRET):
    """The signature that a request should have: the parts of Authorization name what was signed."""
    scope, signed = re.match(r"AWS4-HMAC-SHA256 Credential=[^/]+/([^,]+), ?SignedHeaders=([^,]+), ?Signature=[0-9a-f]{64}$", headers["Authorization"]).groups()
    path, _, query = raw_path.partition("?")
    pairs = sorted((quoted(k), quoted(v)) for k, v in urllib.parse.parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    lines = [method, path, "&".join(f"{k}={v}" for k, v in pairs)]
    lines += [f"{name}:{' '.join(headers[name].split())}" for name in signed.split(";")] + ["", signed, headers["x-amz-content-sha256"]]
    text = "\n".join(("AWS4-HMAC-SHA256", headers["x-amz-date"], scope, hashlib.sha256("\n".join(lines).encode()).hexdigest()))
    mac = b"AWS4" + key.encode()
    for part in scope.split("/"):
        mac = hmac.new(mac, part.encode(), hashlib.sha256).digest()
    return hmac.new(mac, text.encode(), hashlib.sha256).hexdigest()


def shared_key(method, raw_path, headers):
    path, _, query = raw_path.partition("?")
    own = "\n".join(f"{k.lower()}:{v}" for k, v in sorted(headers.items(), key=lambda x: x[0].lower()) if k.lower().startswith("x-ms-"))
    names = ("Content-Encoding", "Content-Language", "Content-Length", "Content-MD5", "Content-Type", "Date", "If-Modified-Since", "If-Match", "If-None-Match", "If-Unmodified-Since", "Range")
    resource = f"/{ACCOUNT}{path}" + "".join(f"\n{k.lower()}:{v}" for k, v in sorted(urllib.parse.parse_qsl(query, keep_blank_values=True)))
    text = "\n".join([method, *(headers.get(n, "") for n in names), own, resource])
    return base64.b64encode(hmac.new(base64.b64decode(ACCOUNT_KEY), text.encode(), hashlib.sha256).digest()).decode()


class Store:
    """kind: "s3", "gs", "az" or "web". files: {"bucket/key": bytes}; of the web {"path": bytes}. `signed`: who is not is refused."""

    def __init__(self, case, kind, files, signed=True, tls=None, region="us-east-1", page=1000):
        self.kind, self.files, self.signed, self.region, self.page = kind, dict(files), signed, region, page
        self.requests, self.refused = [], []
        self.drop_after = []      # bytes of a body, per answer, after which the connection is closed
        self.stall = None         # bytes of a body after which nothing comes any more
        self.versions = {}        # another ETag than that of the bytes
        self.no_version = False
        self.redirect = {}        # path: (status, address)
        self.fail = []            # statuses of the next answers
        self.token = False        # whether requests must carry TOKEN
        self.over = threading.Event()
        store = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                store.answer(self)

            do_HEAD = do_GET

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.host = f"127.0.0.1:{self.port}"
        self.url = f"{'https' if tls else 'http'}://{self.host}"
        thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()

        def stop():
            self.over.set()
            self.server.shutdown()
            self.server.server_close()
            thread.join()
        case.addCleanup(stop)

    def etag(self, name):
        return self.versions.get(name) or '"' + hashlib.md5(self.files[name]).hexdigest() + '"'

    def wrong(self, h):
        """Why a request is refused; None where it is not."""
        authorization = h.headers.get("Authorization", "")
        if self.kind == "web" or not self.signed:
            return None
        if self.kind == "gs" and authorization == f"Bearer {OAUTH}":
            return None
        if self.kind == "az":
            query = h.path.partition("?")[2]
            if SAS in query:
                return None
            return None if authorization == f"SharedKey {ACCOUNT}:{shared_key(h.command, h.path, h.headers)}" else "AuthenticationFailed"
        if not authorization:
            return "AccessDenied"
        if f"Credential={KEY}/" not in authorization:
            return "InvalidAccessKeyId"
        if self.token and (h.headers.get("x-amz-security-token") != TOKEN or "x-amz-security-token" not in authorization):
            return "InvalidToken"
        if not authorization.endswith(sigv4(h.command, h.path, h.headers)):
            return "SignatureDoesNotMatch"
        return None

    def send(self, h, status, body=b"", headers=(), length=None):
        h.send_response(status)
        for name, value in headers:
            h.send_header(name, value)
        h.send_header("Content-Length", str(len(body) if length is None else length))
        h.end_headers()
        if h.command != "HEAD":
            h.wfile.write(body)

    def error(self, h, status, code):
        self.refused.append((status, code, h.path))
        headers = [("x-amz-bucket-region", self.region)] if self.kind == "s3" else []
        self.send(h, status, f"<?xml version='1.0'?><Error><Code>{code}</Code><StringToSign>Signature={SECRET}</StringToSign></Error>".encode(), headers)

    def answer(self, h):
        self.requests.append((h.command, h.path, {k.lower(): v for k, v in h.headers.items()}))
        parts = urllib.parse.urlsplit(h.path)
        name, query = urllib.parse.unquote(parts.path[1:]), dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
        wrong = self.wrong(h)
        if self.fail:
            self.error(h, self.fail.pop(0), "SlowDown")
        elif wrong:
            self.error(h, 403, wrong)
        elif self.kind == "s3" and self.signed and f"/{self.region}/s3/" not in h.headers["Authorization"]:
            self.error(h, 400, "AuthorizationHeaderMalformed")
        elif name in self.redirect:
            self.send(h, self.redirect[name][0], headers=[("Location", self.redirect[name][1])])
        elif "list-type" in query or query.get("comp") == "list":
            self.list(h, name, query)
        else:
            self.get(h, name)

    def list(self, h, bucket, query):
        azure = self.kind == "az"
        bucket = bucket.removeprefix(ACCOUNT + "/") if azure else bucket
        keys = sorted(n[len(bucket) + 1:] for n in self.files if n.startswith(bucket + "/") and n[len(bucket) + 1:].startswith(query["prefix"]))
        after = query.get("marker" if azure else "continuation-token", "")
        keys = [k for k in keys if not after or "page+" + k > after]
        page = keys[:min(self.page, int(query.get("maxresults" if azure else "max-keys", 1000)))]
        more = f"page+{page[-1]}" if len(page) < len(keys) else ""
        tag = lambda k: escape(self.etag(f"{bucket}/{k}"), {'"': "&quot;"})
        if azure:
            body = "".join(f"<Blob><Name>{escape(k)}</Name><Properties><Etag>{tag(k)}</Etag><Content-Length>{len(self.files[f'{bucket}/{k}'])}</Content-Length></Properties></Blob>" for k in page)
            body = f"<?xml version='1.0'?><EnumerationResults><Blobs>{body}</Blobs><NextMarker>{escape(more)}</NextMarker></EnumerationResults>"
        else:
            body = "".join(f"<Contents><Key>{escape(k)}</Key><ETag>{tag(k)}</ETag><Size>{len(self.files[f'{bucket}/{k}'])}</Size></Contents>" for k in page)
            more = f"<NextContinuationToken>{escape(more)}</NextContinuationToken>" if more else ""
            body = f"<?xml version='1.0'?><ListBucketResult><Name>{bucket}</Name>{more}{body}</ListBucketResult>"
        self.send(h, 200, body.encode())

    def get(self, h, name):
        name = name.removeprefix(ACCOUNT + "/") if self.kind == "az" else name
        if name not in self.files:
            self.error(h, 404, "NoSuchKey")
            return
        body, start = self.files[name], 0
        headers = [] if self.no_version else [("ETag", self.etag(name))]
        asked = re.match(r"bytes=(\d+)-$", h.headers.get("Range", ""))
        if asked and self.kind != "web":
            start = int(asked.group(1))
            headers.append(("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}"))
        rest = body[start:]
        status = 206 if start else 200
        if h.command == "HEAD":
            self.send(h, status, rest, headers)
        elif self.stall is not None:
            self.send(h, status, rest[:self.stall], headers, len(rest))
            self.over.wait(60)
        elif self.drop_after:
            self.send(h, status, rest[:self.drop_after.pop(0)], headers, len(rest))
            h.wfile.flush()
            h.connection.shutdown(socket.SHUT_RDWR)
            h.close_connection = True
        else:
            self.send(h, status, rest, headers)

    def count(self, method=None):
        return sum(1 for m, *_ in self.requests if method in (None, m))


def certificate(folder):
    """(certificate, key) of 127.0.0.1, which signs itself."""
    cert, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
                   check=True, capture_output=True)
    return cert, key
