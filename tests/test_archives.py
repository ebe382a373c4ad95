"""Archives: official ones are unpacked, harmful and broken ones are refused in one line and leave
nothing behind.
"""

import gzip
import io
import stat
import tarfile
import zipfile

import pytest

from gpt1.base.errors import UserError
from gpt1.sources import archives
from gpt1.sources.archives import is_archive, unpack

LIMIT = 10_000


def pack(path, *members):
    """An archive of (name, content), and of some the type of a tar's member or a zip's mode."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as zipped:
            for name, content, *mode in members:
                info = zipfile.ZipInfo(name)
                info.external_attr = (mode[0] if mode else 0o600) << 16
                zipped.writestr(info, content, zipfile.ZIP_DEFLATED)
    else:
        with tarfile.open(path, "w:gz") as tar:
            for name, content, *kind in members:
                info = tarfile.TarInfo(name)
                info.size, info.linkname = len(content), "/etc/passwd"
                info.type = kind[0] if kind else tarfile.REGTYPE
                tar.addfile(info, io.BytesIO(content))
    return path


@pytest.mark.parametrize("name", ["a.tar.gz", "a.zip"])
def test_both_kinds_are_unpacked_with_their_folders(tmp_path, monkeypatch, name):
    folder = stat.S_IFDIR | 0o775 if name == "a.zip" else tarfile.DIRTYPE
    archive = pack(
        tmp_path / name,
        ("RACE/", b"", folder),
        ("RACE/dev/1.txt", b"one"),
        ("./2.txt", b""),
        ("RACE/Icon\r", b"x"),
    )
    assert is_archive(archive)
    monkeypatch.setattr(archives, "MOST_FILES", 3)
    unpack(archive, tmp_path / "out", 4)
    assert (tmp_path / "out/RACE/dev/1.txt").read_bytes() == b"one"
    assert (tmp_path / "out/2.txt").read_bytes() == b""
    with pytest.raises(UserError, match="more than 3 bytes"):
        unpack(archive, tmp_path / "less", 3)
    monkeypatch.setattr(archives, "MOST_FILES", 2)
    with pytest.raises(UserError, match="more than 2 files"):
        unpack(archive, tmp_path / "fewer", 4)
    assert not is_archive(tmp_path / f"absent-{name}")
    assert not is_archive(tmp_path)


@pytest.mark.parametrize(
    ("name", "members", "line"),
    [
        ("a.tar.gz", [("../x", b"1")], "'../x', which would leave the folder"),
        ("a.tar.gz", [("/tmp/x", b"1")], "'/tmp/x', which would leave the folder"),
        ("a.tar.gz", [("x", b"", tarfile.SYMTYPE)], "'x', which is a link or a device"),
        ("a.tar.gz", [("x", b"", tarfile.CHRTYPE)], "'x', which is a link or a device"),
        ("a.tar.gz", [("x", b"0" * 6000), ("y", b"0" * 6000)], "to more than 10000 bytes"),
        ("a.tar.gz", [("a/x", b"1"), ("A/X", b"2")], "'A/X' twice"),
        ("a.zip", [("x", b"1"), ("X", b"2")], "'X' twice"),
        ("a.zip", [("../x", b"1")], "'../x', which would leave the folder"),
        ("a.zip", [("a\\..\\..\\x", b"1")], "which would leave the folder"),
        ("a.zip", [("x", b"/etc/passwd", stat.S_IFLNK | 0o777)], "'x', which is a link"),
        ("a.zip", [("x", b"0" * 20000)], "to more than 10000 bytes"),
    ],
)
def test_a_harmful_archive_is_refused(tmp_path, name, members, line):
    archive = pack(tmp_path / name, *members)
    with pytest.raises(UserError) as error:
        unpack(archive, tmp_path / "deep" / "out", LIMIT)
    assert str(archive) in str(error.value)
    assert line in str(error.value)
    assert sorted(path.name for path in tmp_path.rglob("*")) == [name, "deep"], (
        "nothing of it may be left, inside or outside"
    )


@pytest.mark.parametrize("name", ["a.tar.gz", "a.zip"])
@pytest.mark.parametrize("part", [0.0, 0.3, 0.98])
def test_a_truncated_archive_is_refused(tmp_path, name, part):
    content = bytes(range(256)) * 30
    archive = pack(tmp_path / name, ("x", content), ("y", content[::-1]))
    whole = archive.read_bytes()
    archive.write_bytes(whole[: int(len(whole) * part)])
    with pytest.raises(UserError, match=r"a\.(tar\.gz|zip) cannot be unpacked"):
        unpack(archive, tmp_path / "out", 100_000)
    assert not (tmp_path / "out").exists()


def test_what_other_systems_write_is_read_or_named(tmp_path):
    unpack(pack(tmp_path / "a.zip", ("RTE\\", b""), ("RTE\\dev.tsv", b"1")), tmp_path / "a", 9)
    assert (tmp_path / "a/RTE/dev.tsv").read_bytes() == b"1"
    gzipped = pack(tmp_path / "b.tar.gz", ("dev.tsv", b"1"))
    gzipped.write_bytes(gzip.decompress(gzipped.read_bytes()))  # as some browsers save it
    unpack(gzipped, tmp_path / "b", 9)
    assert (tmp_path / "b/dev.tsv").read_bytes() == b"1"
    packed = pack(tmp_path / "c.zip", ("dev.tsv", b"1")).read_bytes()
    for changed, line in (((8, 9), "compression method 9"), ((6, 1), "password required")):
        for start, shift in ((b"PK\3\4", 0), (b"PK\1\2", 2)):
            at = packed.index(start) + changed[0] + shift
            packed = packed[:at] + bytes([changed[1]]) + packed[at + 1 :]
        (tmp_path / "c.zip").write_bytes(packed)
        with pytest.raises(UserError, match=rf"\(.*{line}.*\): .* or unpack it by hand"):
            unpack(tmp_path / "c.zip", tmp_path / "c", 9)
