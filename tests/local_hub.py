"""A web server on 127.0.0.1: data sets as huggingface_hub asks for them, from folders, and plain
files. It can break off.
"""

import hashlib
import json
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def entry(path, root):
    row = {"path": path.relative_to(root).as_posix(), "oid": "1" * 40, "size": 0}
    if path.is_dir():
        return row | {"type": "directory"}
    size = path.stat().st_size
    return row | {
        "type": "file",
        "size": size,
        "lfs": {"oid": sha256(path), "size": size, "pointerSize": 130},
    }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        if self.command == "HEAD":
            return
        cut = self.server.cut
        if cut is not None and len(body) > cut:
            body, self.close_connection = body[:cut], True
        with suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body)

    def refuse(self, code):
        self.answer(404, b'{"error": "not there"}', X_Error_Code=code)

    def do_GET(self):
        path = unquote(urlsplit(self.path).path)
        match path.strip("/").split("/"):
            case ["api", "datasets", owner, name, *rest]:
                self.about(self.server.root / owner / name, rest)
            case ["datasets", owner, name, "resolve", commit, *parts]:
                self.send(self.server.root.joinpath(owner, name, *parts), commit)
            case parts:
                self.send(self.server.root.joinpath("files", *parts), COMMIT)

    do_HEAD = do_GET  # noqa: N815

    def about(self, root, rest):
        commit = rest[1] if rest[1:] else COMMIT
        if not root.is_dir():
            self.refuse("RepoNotFound")
        elif commit not in ("main", *self.server.commits):
            self.refuse("RevisionNotFound")
        elif rest[:1] == ["tree"]:
            self.answer(200, json.dumps([entry(path, root) for path in root.rglob("*")]).encode())
        else:
            self.answer(200, json.dumps({"id": "a/b", "sha": COMMIT}).encode())

    def send(self, path, commit):
        if not path.is_file():
            return self.refuse("EntryNotFound")
        body, start = path.read_bytes(), 0
        about = {"ETag": f'"{sha256(path)}"', "X_Repo_Commit": commit, "Accept_Ranges": "bytes"}
        if wanted := self.headers.get("Range"):
            start = int(wanted.removeprefix("bytes=").split("-")[0])
            about["Content_Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
        return self.answer(206 if wanted else 200, body[start:], **about)


class Hub(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, root, commits=()):
        super().__init__(("127.0.0.1", 0), Handler)
        self.root, self.commits = Path(root), {COMMIT, *commits}
        self.cut = None

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *_):
        pass


@contextmanager
def serving(root, commits=()):
    hub = Hub(root, commits)
    thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        hub.server_close()
        thread.join()
