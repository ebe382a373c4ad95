"""A web server on 127.0.0.1 that misbehaves on purpose: a script says, answer by answer, what it
does; it writes down what it was asked.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Handler(BaseHTTPRequestHandler):
    """One connection; the server's script has the next answer."""

    protocol_version = "HTTP/1.1"
    server: "Server"

    def do_GET(self) -> None:
        with self.server.lock:
            self.server.asked.append(Request(self.path, dict(self.headers.items())))
            script = self.server.script
            answer = script.pop(0) if len(script) > 1 else script[0]
        self.close_connection = True
        with suppress(BrokenPipeError, ConnectionResetError):  # whoever asked has gone
            answer(self)

    def log_message(self, *_: Any) -> None:
        pass

    def head(self, status: int, **headers: object) -> None:
        """A status and headers; `Content_Length` is written Content-Length."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.send_header("Connection", "close")
        self.end_headers()


@dataclass(frozen=True)
class Request:
    """What was asked."""

    path: str
    headers: dict[str, str]


class Server(ThreadingHTTPServer):
    """Answers with the script, one entry a request, the last for ever."""

    daemon_threads = True

    def __init__(self, script: "list[Answer]") -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script, self.asked, self.lock = script, list[Request](), threading.Lock()

    def address(self, name: str = "file.zip") -> str:
        return f"http://127.0.0.1:{self.server_port}/{name}"

    def handle_error(self, *_: Any) -> None:
        pass


Answer = Callable[[Handler], None]


@contextmanager
def serving(*script: Answer) -> Iterator[Server]:
    """A server at work."""
    server = Server(list(script))
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass(frozen=True)
class File:
    """Sends `body` as a good server does, ranges and marks included; the rest says how it does
    not.
    """

    body: bytes
    etag: str | None = '"one"'
    modified: str | None = None
    ranges: bool = True
    heeds_if_range: bool = True
    cut_after: int | None = None  # bytes of each answer, then the connection ends
    drip_seconds: float = 0.0  # after every byte
    stall_after: int | None = None  # bytes, then nothing
    announced: int | None = None  # as Content-Length, in place of the truth
    length: bool = True
    chunked: bool = False
    content_type: str = "application/zip"
    shift: int = 0  # added to where a range begins
    more: dict[str, str] = field(default_factory=dict)

    def __call__(self, handler: Handler) -> None:
        start, wanted = 0, handler.headers.get("Range")
        mark = self.etag or self.modified
        if (
            wanted
            and self.ranges
            and (not self.heeds_if_range or handler.headers.get("If-Range") in (None, mark))
        ):
            start = int(wanted.removeprefix("bytes=").split("-")[0]) + self.shift
        body = self.body[start:]
        headers: dict[str, object] = {"Content-Type": self.content_type, **self.more}
        if self.chunked:
            headers["Transfer-Encoding"] = "chunked"
        elif self.length:
            headers["Content-Length"] = len(body) if self.announced is None else self.announced
        if self.etag:
            headers["ETag"] = self.etag
        if self.modified:
            headers["Last-Modified"] = self.modified
        if start and start >= len(self.body):
            handler.head(416, Content_Range=f"bytes */{len(self.body)}", Content_Length=0)
            return
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(self.body) - 1}/{len(self.body)}"
        handler.head(206 if start else 200, **headers)
        self.send(handler, body)

    def send(self, handler: Handler, body: bytes) -> None:
        body = body if self.cut_after is None else body[: self.cut_after]
        if self.chunked:
            handler.wfile.write(b"%x\r\n%b\r\n" % (len(body), body))
            if self.cut_after is None:
                handler.wfile.write(b"0\r\n\r\n")
        elif self.drip_seconds:
            for byte in body:
                handler.wfile.write(bytes([byte]))
                time.sleep(self.drip_seconds)
        elif self.stall_after is not None:
            handler.wfile.write(body[: self.stall_after])
            handler.wfile.flush()
            time.sleep(2)
        else:
            handler.wfile.write(body)


def status(code: int, **headers: object) -> Answer:
    """An answer without a file."""
    return lambda handler: handler.head(code, **{"Content_Length": 0, **headers})


def redirect(to: Callable[[Handler], str], code: int = 302) -> Answer:
    """An answer that sends elsewhere."""
    return lambda handler: handler.head(code, Location=to(handler), Content_Length=0)


def page(handler: Handler) -> None:
    """A page in place of the file, as where one has to log in, under the file's own type."""
    body = b"\n<!DOCTYPE html><html><title>Please log in \x1b]0;owned\x07</title></html>"
    handler.head(200, Content_Type="application/zip", Content_Length=len(body))
    handler.wfile.write(body)


def hang_up(handler: Handler) -> None:
    """Not even an answer."""
    handler.connection.close()
