"""One request for one file: from where an earlier one stopped, into a partial file, under limits of
time, speed and size.

What came is taken for whole by nobody here: gpt1/sources/download.py checks it. Server's own words
never reach the terminal.
"""

import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from gpt1.base.errors import UserError
from gpt1.sources.cache import Partial, opened

if TYPE_CHECKING:
    from requests import Response, Session

CHUNK_BYTES = 1 << 18
SNIFFED_BYTES = 512
MAY_PASS = {408, 425, 429, 500, 502, 503, 504}
MAGIC = {".zip": b"PK", ".gz": b"\x1f\x8b", ".tgz": b"\x1f\x8b", ".npy": b"\x93NUMPY"}
PAGE = re.compile(
    rb"\s*(<!--.*?-->\s*)*<(!doctype html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
HEADERS = {
    "User-Agent": "gpt1",
    "Accept": "*/*",
    "Accept-Encoding": "identity",
}  # bytes as they lie there, so that ranges fit


@dataclass(frozen=True)
class Patience:
    """How long to wait and how often to try. tries: without `gain_bytes` gained in between; a wait
    doubles from try to try.
    """

    tries: int = 5
    first_wait_seconds: float = 1.0
    longest_wait_seconds: float = 120.0  # also of what a server asks for
    connect_seconds: float = 20.0
    silence_seconds: float = 60.0  # between two bytes
    window_seconds: float = 60.0  # over which the speed is measured
    lowest_bytes_a_second: float = 1024.0
    redirects: int = 5
    gain_bytes: int = 1 << 20


PATIENCE = Patience()


@dataclass(frozen=True)
class Terms:
    """How to download: the cache, the most bytes of one file, whether the network may be asked, how
    long to wait, whom to tell lines.
    """

    cache: Path
    max_bytes: int
    offline: bool
    patience: Patience
    tell: Callable[[str], None]


class FaultError(Exception):
    """What went wrong with one request. passing: may go well a little later; wait_seconds: what the
    server asked for; anew: from 0.
    """

    def __init__(
        self, what: str, passing: bool, wait_seconds: float | None = None, anew: bool = False
    ) -> None:
        super().__init__(what)
        self.passing, self.wait_seconds, self.anew = passing, wait_seconds, anew


@contextmanager
def connected(patience: Patience) -> Iterator["Session"]:
    """A session that goes through the proxies that the environment names and follows some
    redirections.
    """
    from requests import Session

    with Session() as session:
        session.max_redirects = patience.redirects
        session.headers.update(HEADERS)
        yield session


def transfer(
    session: "Session",
    address: str,
    partial: Partial,
    bytes_: int | None,
    checked: bool,
    terms: Terms,
) -> None:
    """Bring a partial file to its end. bytes_: how many it must have, None where unknown; checked:
    whether a checksum will be looked at.

    Raises FaultError for what the network or the server did, UserError where the file cannot be
    written.
    """
    from requests import RequestException
    from urllib3.exceptions import HTTPError

    about = partial.remembered(address)
    mark = str(about.get("mark") or "")
    if not about or not (mark or checked):  # without a mark only a checksum tells versions apart
        partial.drop()
    start = partial.size
    asked = {"Range": f"bytes={start}-"} if start else {}
    if start and mark:
        asked["If-Range"] = mark
    try:
        with answered(session, address, asked, terms.patience) as response:
            start = accepted(response, start, about, partial)
            total = announced(response, start, bytes_, terms.max_bytes)
            if start == 0:
                partial.drop()
                partial.remember(address, mark_of(response), total)
            receive(response, partial, start, total, terms)
    except (RequestException, HTTPError) as error:
        raise broken(error, partial.size, terms.patience) from None


def broken(error: Exception, size: int, patience: Patience) -> FaultError:
    """What an error of requests or urllib3 means, `size` bytes being there."""
    import requests
    import urllib3

    if isinstance(error, requests.TooManyRedirects):
        return FaultError(f"more than {patience.redirects} redirections", passing=False)
    if isinstance(error, requests.exceptions.ProxyError):
        what = "the proxy that the environment names does not let it through"
    elif isinstance(error, requests.exceptions.SSLError):
        what = "the certificate of the server, or of a proxy before it, is not to be trusted"
        return FaultError(what, passing=False)
    elif isinstance(error, (requests.Timeout, urllib3.exceptions.ReadTimeoutError)):
        silence = f"nothing came for {patience.silence_seconds:g} s, at {size:,} bytes"
        what = silence if size else "no answer in time"
    else:
        what = f"the connection broke at {size:,} bytes" if size else "no connection"
    return FaultError(what, passing=True)


def answered(
    session: "Session", address: str, asked: dict[str, str], patience: Patience
) -> "Response":
    """The answer to a request, its body yet to come. Raises FaultError where it leads to what is no
    address, and what requests raises.
    """
    from requests.exceptions import InvalidProxyURL

    try:
        return session.get(
            address,
            headers=asked,
            stream=True,
            timeout=(patience.connect_seconds, patience.silence_seconds),
        )
    except InvalidProxyURL:
        raise FaultError(
            "what the environment names as a proxy is no address", passing=False
        ) from None
    except ValueError:  # also of urllib.parse, and of bytes that are no text
        raise FaultError("a redirection to no address of http or https", passing=False) from None


def accepted(response: "Response", start: int, about: dict[str, object], partial: Partial) -> int:
    """The byte at which what comes begins: `start`, or 0 where the server sends all. Raises
    FaultError for any other answer.
    """
    from urllib3.exceptions import InvalidHeader
    from urllib3.util.retry import Retry

    hops = [step.url for step in [*response.history, response]]
    if hops[0].startswith("https:") and not all(hop.startswith("https:") for hop in hops):
        raise FaultError("a redirection from https to http", passing=False)
    status = response.status_code
    if status == HTTPStatus.OK:
        return 0
    if status == HTTPStatus.PARTIAL_CONTENT and start:
        found = re.fullmatch(
            r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)",
            response.headers.get("Content-Range", "").strip(),
        )
        same_size = found and (found[3] == "*" or about.get("bytes") in (None, int(found[3])))
        if (
            found
            and int(found[1]) == start
            and same_size
            and mark_of(response) in ("", about.get("mark"))
        ):
            return start
        partial.drop()
        raise FaultError(
            f"the file there changed after {start:,} bytes had come", passing=True, anew=True
        )
    if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and start:
        partial.drop()
        raise FaultError(
            f"the file there ends before the {start:,} bytes that had come", passing=True, anew=True
        )
    named = (
        f"{status} {HTTPStatus(status).phrase}"
        if status in list(HTTPStatus)
        else f"status {status}"
    )
    wait = None
    if status in MAY_PASS and (given := response.headers.get("Retry-After")):
        try:
            wait = Retry(retry_after_max=10**9).parse_retry_after(given)
        except (InvalidHeader, ValueError, OverflowError):
            wait = None  # neither seconds nor a date
    raise FaultError(named, passing=status in MAY_PASS, wait_seconds=wait)


def mark_of(response: "Response") -> str:
    """What the server marks this version of the file with, strong enough to go on from; empty where
    nothing is.
    """
    etag = response.headers.get("ETag", "")
    return etag if etag and not etag.startswith("W/") else response.headers.get("Last-Modified", "")


def announced(response: "Response", start: int, bytes_: int | None, max_bytes: int) -> int | None:
    """Bytes that the whole file has, None where nobody says. Raises FaultError where the server
    announces another number, or too many.
    """
    length = response.headers.get("Content-Length", "")
    total = start + int(length) if re.fullmatch(r"\d{1,18}", length) else None
    if bytes_ is not None and total not in (None, bytes_):
        raise FaultError(
            f"expected {bytes_:,} bytes, the server announces {total:,}", passing=False
        )
    if total is not None and total > max_bytes:
        raise FaultError(
            f"the server announces {total:,} bytes, more than acquire.max_unpacked_bytes",
            passing=False,
        )
    return bytes_ if total is None else total


def refuse_other(block: bytes, name: str, content_type: str) -> None:
    """Raises FaultError where a file begins as a web page, or not as its name promises."""
    if PAGE.match(block) or content_type.partition(";")[0].strip().lower() == "text/html":
        raise FaultError("a web page came instead of the file", passing=False)
    magic = MAGIC.get(Path(name).suffix.lower())
    if magic and not block.startswith(magic):
        raise FaultError(
            f"what came does not begin as a {Path(name).suffix} file does", passing=False
        )


def receive(
    response: "Response",
    partial: Partial,
    start: int,
    total: int | None,
    terms: Terms,
) -> None:
    """Append what comes to the partial file, with a bar on a terminal. Raises FaultError,
    UserError.
    """
    from tqdm import tqdm

    patience = terms.patience
    name = partial.path.name.removeprefix(".").removesuffix(".partial")
    room = shutil.disk_usage(partial.path.parent).free
    if total is not None and total - start > room:
        raise UserError(
            f"{partial.path.parent} has room for {room:,} bytes, {name} needs {total - start:,}"
            " more; make room, or set GPT1_CACHE to a folder on a larger disk"
        )
    with (
        opened(partial, "ab" if start else "wb") as write,
        tqdm(
            total=total,
            initial=start,
            unit="B",
            unit_scale=True,
            desc=name,
            disable=None,
            leave=False,
        ) as bar,
    ):
        size = start
        began, at_beginning = time.monotonic(), start
        head = b"" if start == 0 else None
        while block := response.raw.read1(CHUNK_BYTES, decode_content=False):
            size += len(block)
            if size > (terms.max_bytes if total is None else total):
                limit = (
                    "acquire.max_unpacked_bytes"
                    if total is None
                    else f"the {total:,} bytes of the file"
                )
                raise FaultError(f"more came than {limit}", passing=False)
            if (lasted := time.monotonic() - began) >= patience.window_seconds:
                if size - at_beginning < patience.lowest_bytes_a_second * lasted:
                    raise FaultError(
                        f"slower than {patience.lowest_bytes_a_second:,.0f} bytes/s over"
                        f" {patience.window_seconds:g} s, at {size:,} bytes",
                        passing=True,
                    )
                if bar.disable:
                    terms.tell(progress(name, size, total, (size - at_beginning) / lasted))
                began, at_beginning = time.monotonic(), size
            if head is not None:  # nothing is written before it is clear that it is no page
                head += block
                if len(head) < SNIFFED_BYTES and size != total:
                    continue
                refuse_other(head, name, response.headers.get("Content-Type", ""))
                block, head = head, None
            write(block)
            bar.update(len(block))
        if head:
            refuse_other(head, name, response.headers.get("Content-Type", ""))
            write(head)
    if total is not None and size < total:
        raise FaultError(f"the connection ended after {size:,} of {total:,} bytes", passing=True)


def progress(name: str, size: int, total: int | None, bytes_a_second: float) -> str:
    """How far a download is, in a line."""
    if total is None:
        return f"{name}: {size / 1e6:,.1f} MB, {bytes_a_second / 1e6:.2f} MB/s"
    left = round((total - size) / bytes_a_second)
    return (
        f"{name}: {size / 1e6:,.1f} of {total / 1e6:,.1f} MB, {bytes_a_second / 1e6:.2f} MB/s,"
        f" {left // 60}:{left % 60:02} left"
    )
