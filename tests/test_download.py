"""Downloads from a server that misbehaves on purpose: nothing half-written is taken for whole, one
line says what was the matter.
"""

import hashlib
import threading
import time
from collections import Counter
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path

import pytest
from misbehaving_server import Answer, File, Server, hang_up, page, redirect, serving, status

from gpt1.base.errors import TemporaryError, UserError
from gpt1.sources.addresses import Checksum, Remote
from gpt1.sources.cache import LEDGER, read_ledger
from gpt1.sources.download import fetch
from gpt1.sources.transfer import Patience, Terms, progress

BODY = b"PK\x03\x04" + bytes(range(256)) * 40
OTHER = b"PK\x03\x04" + bytes(reversed(range(256))) * 40
HALF = 5000
QUICK = Patience(
    tries=3,
    first_wait_seconds=0.01,
    longest_wait_seconds=0.5,
    connect_seconds=2.0,
    silence_seconds=0.3,
    window_seconds=0.2,
    lowest_bytes_a_second=1000.0,
    redirects=3,
    gain_bytes=1000,
)


def published(body: bytes, kind: str = "sha256") -> Checksum:
    return Checksum(kind, hashlib.new(kind, body).hexdigest(), "a page of theirs")  # type: ignore[arg-type]


OURS = published(BODY)


class Client:
    """A cache of its own, and what was told."""

    def __init__(self, tmp_path: Path) -> None:
        self.lines: list[str] = []
        self.cache = tmp_path / "cache"
        self.terms = Terms(self.cache, 10**6, False, QUICK, self.lines.append)

    def fetch(
        self, *servers: Server, bytes_: int | None = len(BODY), checksum: Checksum | None = OURS
    ) -> bytes:
        remote = Remote("file.zip", tuple(server.address() for server in servers), bytes_, checksum)
        return fetch("snli", remote, self.terms).read_bytes()

    @property
    def left(self) -> dict[str, int]:
        """What lies in the cache under its name, or as a part of it: bytes by name."""
        return {
            path.name: path.stat().st_size
            for path in (self.cache / "snli").iterdir()
            if path.suffix not in (".lock", ".json")
        }


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def client(tmp_path: Path) -> Client:
    return Client(tmp_path)


GOOD = File(BODY)
DATE = formatdate(0, usegmt=True)
CUT = replace(GOOD, cut_after=HALF)
ONCE: dict[
    str, tuple[list[Answer], list[str | None], str]
] = {  # the matter: what the server does, Range of each request, the line told
    "whole": (
        [GOOD],
        [None],
        "file.zip: 10,244 bytes, sha256 as published by a page of theirs, from http://",
    ),
    "cut in the middle": (
        [CUT, GOOD],
        [None, "bytes=5000-"],
        "the connection broke at 5,000 bytes; again in 0.01 s",
    ),
    "cut twice": (
        [CUT, replace(GOOD, cut_after=3000), GOOD],
        [None, "bytes=5000-", "bytes=8000-"],
        "the connection broke at 8,000 bytes",
    ),
    "by its date": (
        [replace(CUT, etag=None, modified=DATE), replace(GOOD, etag=None, modified=DATE)],
        [None, "bytes=5000-"],
        "on from",
    ),
    "no mark, a checksum": (
        [replace(CUT, etag=None), replace(GOOD, etag=None)],
        [None, "bytes=5000-"],
        "on from byte 5,000",
    ),
    "no range support": (
        [replace(CUT, ranges=False), replace(GOOD, ranges=False)],
        [None, "bytes=5000-"],
        "the connection broke at 5,000",
    ),
    "changed between two ranges": (
        [replace(CUT, body=OTHER, etag='"old"'), GOOD],
        [None, "bytes=5000-"],
        "the connection broke at 5,000",
    ),
    "changed, unheeded": (
        [replace(CUT, body=OTHER, etag='"old"'), replace(GOOD, heeds_if_range=False), GOOD],
        [None, "bytes=5000-", None],
        "the file there changed after 5,000 bytes had come; again in 0.02 s",
    ),
    "changed without a mark": (
        [replace(CUT, body=OTHER, etag=None), replace(GOOD, etag=None), GOOD],
        [None, "bytes=5000-", None],
        "expected sha256 ",
    ),
    "a range from elsewhere": (
        [CUT, replace(GOOD, shift=7), GOOD],
        [None, "bytes=5000-", None],
        "the file there changed after 5,000",
    ),
    "shorter than what came": (
        [replace(CUT, body=BODY), status(416), GOOD],
        [None, "bytes=5000-", None],
        "ends before the 5,000 bytes",
    ),
    "503 twice": (
        [status(503), status(503), GOOD],
        [None, None, None],
        "503 Service Unavailable; again in 0.02 s",
    ),
    "429 with Retry-After": (
        [status(429, Retry_After="0"), GOOD],
        [None, None],
        "429 Too Many Requests; again in 0.01 s",
    ),
    "Retry-After that is nonsense": (
        [status(503, Retry_After="\x01soon"), GOOD],
        [None, None],
        "503 Service Unavailable; again in 0.01 s",
    ),
    "hangs up": ([hang_up, GOOD], [None, None], "no connection; again in 0.01 s"),
    "silent": (
        [replace(GOOD, stall_after=HALF), GOOD],
        [None, "bytes=5000-"],
        "nothing came for 0.3 s, at 5,000 bytes; again in",
    ),
    "slow drip": (
        [replace(GOOD, drip_seconds=0.002), GOOD],
        [None, "?"],
        "slower than 1,000 bytes/s over 0.2 s, at ",
    ),
    "chunked, cut": (
        [replace(CUT, chunked=True), replace(GOOD, chunked=True)],
        [None, "bytes=5000-"],
        "the connection broke",
    ),
    "no length": ([replace(GOOD, length=False)], [None], "10,244 bytes, sha256"),
    "no length, cut": (
        [replace(CUT, length=False), GOOD],
        [None, "bytes=5000-"],
        "the connection ended after 5,000 of 10,244 bytes",
    ),
    "moved": (
        [
            redirect(lambda handler: "/there", 301),
            redirect(lambda handler: f"http://{handler.headers['Host']}/file.zip"),
            GOOD,
        ],
        [None, None, None],
        "10,244 bytes",
    ),
}


@pytest.mark.parametrize("matter", ONCE)
def test_what_goes_wrong_once_is_mended(client: Client, matter: str) -> None:
    script, ranges, line = ONCE[matter]
    with serving(*script) as server:
        assert client.fetch(server) == BODY
    asked = [request.headers.get("Range") for request in server.asked]
    assert all(wanted in (found, "?") for found, wanted in zip(asked, ranges, strict=True)), asked
    assert any(line in told for told in client.lines), client.lines
    assert client.left == {"file.zip": len(BODY)}, "no part is left beside the whole"
    assert all(
        "If-Range" in request.headers
        for request in server.asked
        if "Range" in request.headers and "mark" not in matter
    )


FOR_GOOD: dict[
    str, tuple[Answer, type[UserError], str, int]
] = {  # the server's only answer; the error, its line, how often it was asked
    "404": (status(404), UserError, "404 Not Found): nothing of it was kept", 1),
    "403": (status(403), UserError, "403 Forbidden)", 1),
    "no status of HTTP": (status(799), UserError, "status 799)", 1),
    "a part unasked": (
        status(206, Content_Range="bytes 0-9/10"),
        UserError,
        "206 Partial Content)",
        1,
    ),
    "503 for ever": (
        status(503),
        TemporaryError,
        "503 Service Unavailable, after 3 tries): try again later, what came is kept",
        3,
    ),
    "429 for an hour": (
        status(429, Retry_After="3600"),
        TemporaryError,
        "429 Too Many Requests, and asks to wait 3,600 s)",
        1,
    ),
    "429 until a date": (
        lambda handler: handler.head(
            429, Retry_After=formatdate(time.time() + 9999, usegmt=True), Content_Length=0
        ),
        TemporaryError,
        "429 Too Many Requests, and asks to wait 9,99",
        1,
    ),
    "hangs up for ever": (hang_up, TemporaryError, "no connection, after 3 tries)", 3),
    "round in circles": (
        redirect(lambda handler: handler.path),
        UserError,
        "more than 3 redirections)",
        4,
    ),
    "to a file here": (
        redirect(lambda handler: "file:///etc/passwd"),
        UserError,
        "a redirection to no address of http or https)",
        1,
    ),
    "to half an address": (
        redirect(lambda handler: "http://[::1"),
        UserError,
        "a redirection to no address of http or https)",
        1,
    ),
    "to no text": (
        redirect(lambda handler: "\xff\xfe"),
        UserError,
        "a redirection to no address of http or https)",
        1,
    ),
    "wrong size announced": (
        File(BODY + b"more"),
        UserError,
        "expected 10,244 bytes, the server announces 10,248)",
        1,
    ),
    "more than announced": (
        File(BODY + b"more", length=False),
        UserError,
        "more came than the 10,244 bytes of the file)",
        1,
    ),
    "wrong checksum": (
        File(OTHER),
        UserError,
        (
            f"expected sha256 {published(BODY).value}, published by a page of theirs, found "
            f"{published(OTHER).value})"
        ),
        1,
    ),
    "a page": (page, UserError, "a web page came instead of the file)", 1),
    "a page by its type": (
        File(BODY, content_type="text/html; charset=utf-8"),
        UserError,
        "a web page came instead of the file)",
        1,
    ),
    "no zip": (
        File(b"Rar!" + BODY[4:]),
        UserError,
        "what came does not begin as a .zip file does)",
        1,
    ),
    "drips for ever": (
        File(BODY, drip_seconds=0.01, ranges=False),
        TemporaryError,
        "slower than 1,000 bytes/s over 0.2 s, at ",
        3,
    ),
}


@pytest.mark.parametrize("matter", FOR_GOOD)
def test_what_stays_wrong_is_one_line_and_leaves_no_file(client: Client, matter: str) -> None:
    answer, kind, line, times = FOR_GOOD[matter]
    bytes_ = None if matter in ("a page", "no zip") else len(BODY)
    with serving(answer) as server, pytest.raises(UserError) as error:
        client.fetch(server, bytes_=bytes_)
    assert type(error.value) is kind
    assert line in str(error.value), str(error.value)
    assert "file.zip of snli could not be downloaded (" in str(error.value)
    assert "put it there by hand as " in str(error.value)
    assert str(error.value).isprintable(), "no control characters of a server reach the terminal"
    assert len(server.asked) == times
    assert "file.zip" not in client.left
    assert not client.left or kind is TemporaryError, (
        "parts are kept only where they may be gone on with"
    )


def test_the_next_address_helps_out(client: Client) -> None:
    with serving(status(404)) as gone, serving(File(OTHER)) as wrong, serving(GOOD) as good:
        assert client.fetch(gone, wrong, good) == BODY
    assert [told for told in client.lines if "trying the next address" in told] == [
        f"{gone.address()}: 404 Not Found; trying the next address",
        (
            f"{wrong.address()}: expected sha256 {published(BODY).value}, published by a page of"
            f" theirs, found {published(OTHER).value}; trying the next address"
        ),
    ]


def test_a_part_of_one_address_is_not_gone_on_with_from_another(client: Client) -> None:
    with serving(replace(CUT, body=OTHER)) as first, serving(GOOD) as second:
        first.script[:] = [replace(CUT, body=OTHER), status(404)]
        assert client.fetch(first, second) == BODY
    assert "Range" not in second.asked[0].headers


def test_a_long_file_is_gone_on_with_as_long_as_something_comes(client: Client) -> None:
    """Every answer brings 1,100 bytes: ten of them, with three tries without a gain."""
    with serving(replace(GOOD, cut_after=1100)) as server:
        assert client.fetch(server) == BODY
    assert len(server.asked) == 10


def test_what_came_before_an_end_is_gone_on_with_in_another_run(
    client: Client, tmp_path: Path
) -> None:
    with serving(CUT, status(503)) as server, pytest.raises(TemporaryError):
        client.fetch(server)
    assert client.left == {".file.zip.partial": HALF}
    server.script[:] = [GOOD]
    with serving(GOOD) as again:
        again_address = again.address()
        about = next((client.cache / "snli").glob("*.json"))
        about.write_text(
            about.read_text().replace(server.address(), again_address)
        )  # the same server, on its port of today
        assert Client(tmp_path).fetch(again) == BODY
    assert again.asked[0].headers["Range"] == "bytes=5000-"


def test_without_a_mark_or_a_checksum_nothing_is_gone_on_with(client: Client) -> None:
    with serving(replace(CUT, etag='W/"weak"'), replace(GOOD, etag='W/"weak"')) as server:
        assert client.fetch(server, checksum=None) == BODY
    assert [request.headers.get("Range") for request in server.asked] == [None, None]


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[1]", b'{"address": 3}', b"\xff\xfe", b"[" * 100_000]
)
def test_a_damaged_note_of_a_part_is_no_part(client: Client, damage: bytes) -> None:
    with serving(CUT, status(503)) as server, pytest.raises(TemporaryError):
        client.fetch(server)
    next((client.cache / "snli").glob("*.json")).write_bytes(damage)
    with serving(GOOD) as again:
        assert client.fetch(again) == BODY
    assert "Range" not in again.asked[0].headers


def test_the_cache_serves_without_a_request_and_is_checked(client: Client) -> None:
    with serving(GOOD) as server:
        client.fetch(server)
        assert client.fetch(server) == BODY
        assert len(server.asked) == 1
        (client.cache / "snli" / "file.zip").write_bytes(OTHER)
        assert client.fetch(server) == BODY
    (aside,) = (client.cache / "snli").glob("file.zip.aside-*")
    assert aside.read_bytes() == OTHER, "what somebody put there is lost"
    assert len(server.asked) == 2
    assert any("found " in told and told.endswith("downloading it anew") for told in client.lines)


def test_offline_nothing_is_asked(client: Client) -> None:
    client.terms = replace(client.terms, offline=True)
    with serving(GOOD) as server:
        with pytest.raises(
            UserError,
            match=r"file\.zip of snli is not in the cache, and GPT1_OFFLINE forbids to download it",
        ):
            client.fetch(server)
        (client.cache / "snli" / "file.zip").write_bytes(BODY)
        assert client.fetch(server) == BODY
        (client.cache / "snli" / "file.zip").write_bytes(OTHER)
        with pytest.raises(
            UserError, match="GPT1_OFFLINE forbids to download it anew: put the right file there"
        ):
            client.fetch(server)
    assert server.asked == []
    assert (client.cache / "snli" / "file.zip").read_bytes() == OTHER, (
        "a file put there by hand is not taken away"
    )


@pytest.mark.parametrize("checksum", [None, published(BODY, "md5")])
def test_what_nobody_published_is_recorded_at_first_use(
    client: Client, checksum: Checksum | None
) -> None:
    with serving(GOOD) as server:
        client.fetch(server, bytes_=None, checksum=checksum)
    row = read_ledger(client.cache)["snli/file.zip"]
    assert row == {"sha256": published(BODY).value, "bytes": len(BODY), "address": server.address()}
    (client.cache / "snli" / "file.zip").unlink()
    with (
        serving(File(OTHER)) as server,
        pytest.raises(
            UserError,
            match=(
                "recorded at the first download into this cache"
                if checksum is None
                else "expected md5 "
            ),
        ),
    ):
        client.fetch(server, bytes_=None, checksum=checksum)
    assert read_ledger(client.cache)["snli/file.zip"] == row
    (client.cache / LEDGER).write_text('{"snli/file.zip": 3}')
    with (
        serving(GOOD) as server,
        pytest.raises(UserError, match="take the file away, and they are recorded anew"),
    ):
        client.fetch(server, bytes_=None, checksum=checksum)


def test_two_runs_share_one_download(client: Client) -> None:
    found: list[bytes] = []
    with serving(replace(GOOD, stall_after=0, ranges=False), GOOD) as server:
        client.terms = replace(client.terms, patience=replace(QUICK, silence_seconds=0.4))
        threads = [
            threading.Thread(target=lambda: found.append(client.fetch(server))) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (found, len(server.asked)) == ([BODY] * 3, 2)
    assert Counter(told.split("; ")[-1] for told in client.lines)["waiting"] == 2


def test_how_far_it_is_is_told_where_there_is_no_terminal(client: Client) -> None:
    assert (
        progress("a.zip", 25_000_000, 100_000_000, 500_000)
        == "a.zip: 25.0 of 100.0 MB, 0.50 MB/s, 2:30 left"
    )
    assert progress("a.zip", 25_000_000, None, 500_000) == "a.zip: 25.0 MB, 0.50 MB/s"
    client.terms = replace(
        client.terms, patience=replace(QUICK, window_seconds=0.1, lowest_bytes_a_second=1.0)
    )
    with serving(replace(GOOD, body=BODY[:1000], drip_seconds=0.0005)) as server:
        client.fetch(server, bytes_=1000, checksum=None)
    assert [told for told in client.lines if " of 0.0 MB, " in told and told.endswith(" left")], (
        client.lines
    )


def test_a_proxy_is_asked_where_the_environment_names_one(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(GOOD) as proxy:
        monkeypatch.setenv("http_proxy", proxy.address(""))
        monkeypatch.setenv("no_proxy", "")
        remote = Remote("file.zip", ("http://data.invalid/file.zip",), len(BODY), published(BODY))
        assert fetch("snli", remote, client.terms).read_bytes() == BODY
    assert proxy.asked[0].path == "http://data.invalid/file.zip"


def test_more_than_there_is_room_for_is_refused_before_the_first_byte(client: Client) -> None:
    huge = 10**17
    client.terms = replace(client.terms, max_bytes=10**18)
    with (
        serving(replace(GOOD, announced=huge)) as server,
        pytest.raises(UserError, match=r"has room for .*, file\.zip needs 100,000,"),
    ):
        client.fetch(server, bytes_=None, checksum=None)
    client.terms = replace(client.terms, max_bytes=10**6)
    with (
        serving(replace(GOOD, announced=huge)) as server,
        pytest.raises(UserError, match=r"announces .* more than acquire\.max_un"),
    ):
        client.fetch(server, bytes_=None, checksum=None)
    client.terms = replace(client.terms, max_bytes=9_000)
    with (
        serving(replace(GOOD, length=False)) as server,
        pytest.raises(UserError, match=r"more came than acquire\.max_unpacked_bytes"),
    ):
        client.fetch(server, bytes_=None, checksum=None)
    assert client.left == {}
