"""Downloads from a server that misbehaves on purpose: nothing half-written is taken for whole, one
line says what was the matter.
"""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from misbehaving_server import File, hang_up, serving, status

from gpt1.base.errors import TemporaryError, UserError
from gpt1.sources import download
from gpt1.sources.addresses import Remote

BODY = bytes(range(256)) * 40
GOOD = File(BODY)
CUT = replace(GOOD, cut_after=5000)
PAGE = File(b"<!DOCTYPE html><title>Please log in</title>")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GPT1_CACHE", str(tmp_path))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("GPT1_OFFLINE", raising=False)
    monkeypatch.setattr(download, "CHUNK_BYTES", 100)
    monkeypatch.setattr(download, "FIRST_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(download, "TIMEOUT_SECONDS", (2, 0.5))
    return tmp_path / "downloads/snli"


CHECKSUMS = {
    "sha256": hashlib.sha256(BODY),
    "md5": hashlib.md5(BODY),
    "git": hashlib.sha1(b"blob %d\0" % len(BODY) + BODY),
}


def fetch(server, kind="sha256", bytes_=None, most=10**6):
    checksum = CHECKSUMS[kind].hexdigest()
    remote = Remote(server.address(), kind, checksum, "a page of theirs", bytes_)
    return download.fetch("snli", remote, most)


@pytest.mark.parametrize(
    ("script", "ranges"),
    [
        ([GOOD], [None]),
        ([CUT, GOOD], [None, "bytes=5000-"]),
        ([replace(CUT, ranges=False), replace(GOOD, ranges=False)], [None, "bytes=5000-"]),
        ([replace(GOOD, cut_after=100, stalls=True), GOOD], [None, "bytes=100-"]),
        ([status(503), status(429), GOOD], [None] * 3),
    ],
)
def test_a_file_comes_whole(cache, script, ranges):
    with serving(*script) as server:
        place = fetch(server)
        assert place == cache / "file.zip"
        assert place.read_bytes() == BODY
        assert server.ranges == ranges
        assert fetch(server) == place
        assert server.ranges == ranges, "the second time from the cache"


@pytest.mark.parametrize("kind", ["sha256", "md5", "git"])
def test_every_kind_of_checksum_is_looked_at(cache, kind):
    with serving(GOOD) as server:
        assert fetch(server, kind).read_bytes() == BODY
    (cache / "file.zip").unlink()
    with (
        serving(File(BODY[::-1])) as server,
        pytest.raises(UserError, match=rf"expected {kind} \w+, .* a page of theirs, found"),
    ):
        fetch(server, kind)


def test_what_is_not_the_file_is_put_aside_and_the_next_try_begins_anew(cache):
    with serving(PAGE, GOOD) as server:
        with pytest.raises(UserError, match=r"file\.zip\.other: .*a web page"):
            fetch(server)
        assert (cache / "file.zip.other").read_bytes() == PAGE.body
        assert fetch(server).read_bytes() == BODY
        assert server.ranges == [None, None]


def test_a_file_placed_by_hand_is_checked_and_never_lost(cache):
    cache.mkdir(parents=True)
    (cache / "file.zip").write_bytes(b"mine")
    with serving(GOOD) as server:
        with pytest.raises(UserError, match="expected sha256"):
            fetch(server)
        assert (cache / "file.zip.other").read_bytes() == b"mine"
        (cache / "file.zip").write_bytes(BODY)
        fetch(server)
        assert not server.ranges


@pytest.mark.parametrize(
    ("answer", "kind", "line"),
    [
        (status(404), UserError, r"status 404, 0 bytes came\); put it there"),
        (status(503), TemporaryError, r"status 503, 0 bytes came\); try again later, or put"),
        (hang_up, TemporaryError, r"ConnectionError, 0 bytes came\); try again later, or put"),
    ],
)
def test_a_download_in_vain_is_one_line(answer, kind, line):
    with serving(answer) as server, pytest.raises(UserError, match=line) as error:
        fetch(server)
    assert type(error.value) is kind


def test_no_more_comes_than_the_file_has(cache):
    with serving(File(BODY * 100)) as server:
        for bytes_, most in ((len(BODY), 10**6), (None, len(BODY))):
            with pytest.raises(UserError, match="expected sha256"):
                fetch(server, bytes_=bytes_, most=most)
            assert (cache / "file.zip.other").stat().st_size < len(BODY) + download.CHUNK_BYTES + 1


def test_offline_asks_nobody(monkeypatch):
    monkeypatch.setenv("GPT1_OFFLINE", "1")
    with (
        serving(GOOD) as server,
        pytest.raises(UserError, match=r"GPT1_OFFLINE forbids .* file\.zip"),
    ):
        fetch(server)
    assert not server.ranges


def test_two_at_once_share_one_download():
    with serving(GOOD) as server, ThreadPoolExecutor(2) as pool:
        assert len(set(pool.map(fetch, [server, server]))) == 1
        assert server.ranges == [None]
