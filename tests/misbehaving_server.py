"""A web server on 127.0.0.1 that misbehaves on purpose: a script says, answer by answer, what it
does; it writes down which ranges it was asked for.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Handler(BaseHTTPRequestHandler):
    """One connection; the server's script has the next answer."""

    protocol_version = "HTTP/1.1"
    server: "Server"

    def do_GET(self) -> None:
        with self.server.lock:
            self.server.ranges.append(self.headers.get("Range"))
            script = self.server.script
            answer = script.pop(0) if len(script) > 1 else script[0]
        self.close_connection = True
        with suppress(BrokenPipeError, ConnectionResetError):  # whoever asked has gone
            answer(self)

    def log_message(self, *_: Any) -> None:
        pass

    def head(self, status: int, length: int = 0) -> None:
        """A status, and how many bytes are to come."""
        self.send_response(status)
        self.send_header("Connection", "close")
        self.send_header("Content-Length", str(length))
        self.end_headers()


class Server(ThreadingHTTPServer):
    """Answers with the script, one entry a request, the last for ever."""

    daemon_threads = True

    def __init__(self, script: "list[Answer]") -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script, self.ranges, self.lock = script, list[str | None](), threading.Lock()

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
    """Sends `body` as a good server does, ranges included; the rest says how it does not."""

    body: bytes
    ranges: bool = True
    cut_after: int | None = None  # bytes of each answer, then the connection ends
    stalls: bool = False  # before that end

    def __call__(self, handler: Handler) -> None:
        wanted, start = handler.headers.get("Range"), 0
        if wanted and self.ranges:
            start = int(wanted.removeprefix("bytes=").split("-")[0])
        body = self.body[start:]
        handler.head(206 if start else 200, len(body))
        handler.wfile.write(body[: self.cut_after])
        if self.stalls:
            handler.wfile.flush()
            time.sleep(2)


def status(code: int) -> Answer:
    """An answer without a file."""
    return lambda handler: handler.head(code)


def hang_up(handler: Handler) -> None:
    """Not even an answer."""
    handler.connection.close()
