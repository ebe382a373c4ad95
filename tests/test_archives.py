"""Archives: official ones are unpacked, harmful and broken ones are refused in one line and leave
nothing behind.
"""

import io
import stat
import tarfile
import zipfile

import pytest

from gpt1.base.errors import UserError
from gpt1.sources.archives import is_archive, unpack

LIMIT = 10_000


def tar_with(path, *members):
    with tarfile.open(path, "w:gz") as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                tar.addfile(info, io.BytesIO(member[1]))
    return path


def zip_with(path, *members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zip_:
        for name, content in members:
            zip_.writestr(name, content)
    return path


def special(name, kind, link=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def zip_link(name):
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


def test_both_kinds_are_unpacked_with_their_folders(tmp_path):
    folder = special("RACE/", tarfile.DIRTYPE)
    for archive in (
        tar_with(tmp_path / "a.tar.gz", folder, ("RACE/dev/1.txt", b"one"), ("./2.txt", b"")),
        zip_with(
            tmp_path / "a.zip",
            ("RACE/", b""),
            ("RACE/dev/1.txt", b"one"),
            ("2.txt", b""),
            ("RACE/Icon\r", b"x"),
        ),
    ):
        assert is_archive(archive)
        target = tmp_path / f"out-{archive.name}"
        unpack(archive, target, LIMIT)
        assert (target / "RACE/dev/1.txt").read_bytes() == b"one"
        assert (target / "2.txt").read_bytes() == b""
    assert not is_archive(tmp_path / "absent.zip")
    assert not is_archive(tmp_path)


PLAIN = "expected plain files inside it, each once: get the official archive again"
OUTSIDE = f"which would leave the folder; {PLAIN}"


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (
            lambda path: tar_with(path / "a.tar.gz", ("../x", b"1")),
            f"a.tar.gz holds '../x', {OUTSIDE}",
        ),
        (
            lambda path: tar_with(path / "a.tar.gz", ("/tmp/x", b"1")),
            f"a.tar.gz holds '/tmp/x', {OUTSIDE}",
        ),
        (
            lambda path: tar_with(path / "a.tar.gz", special("x", tarfile.SYMTYPE, "/etc/passwd")),
            f"a.tar.gz holds 'x', which is a link or a device; {PLAIN}",
        ),
        (
            lambda path: tar_with(path / "a.tar.gz", special("x", tarfile.CHRTYPE)),
            f"a.tar.gz holds 'x', which is a link or a device; {PLAIN}",
        ),
        (lambda path: zip_with(path / "a.zip", ("../x", b"1")), f"a.zip holds '../x', {OUTSIDE}"),
        (lambda path: zip_with(path / "a.zip", ("a\\..\\..\\x", b"1")), OUTSIDE),
        (
            lambda path: zip_with(path / "a.zip", (zip_link("x"), b"/etc/passwd")),
            f"a.zip holds 'x', which is a link or a device; {PLAIN}",
        ),
        (
            lambda path: tar_with(path / "a.tar.gz", ("x", b"0" * 6000), ("y", b"0" * 6000)),
            "a.tar.gz unpacks to more than 10000 bytes",
        ),
        (
            lambda path: zip_with(path / "a.zip", ("x", b"0" * 20000)),
            "a.zip unpacks to more than 10000 bytes",
        ),
    ],
)
def test_a_harmful_archive_is_refused(tmp_path, make, line):
    archive = make(tmp_path)
    with pytest.raises(UserError) as error:
        unpack(archive, tmp_path / "deep" / "out", LIMIT)
    assert line in str(error.value)
    assert sorted(path.name for path in tmp_path.rglob("*")) == [
        archive.name,
        "deep",
    ], "nothing of it may be left, inside or outside"


@pytest.mark.parametrize("name", ["a.zip"])
@pytest.mark.parametrize("part", [0.0, 0.3, 0.98])
def test_a_truncated_archive_is_refused(tmp_path, name, part):
    content = bytes(range(256)) * 30
    archive = tmp_path / name
    (zip_with if name.endswith("zip") else tar_with)(archive, ("x", content), ("y", content[::-1]))
    whole = archive.read_bytes()
    archive.write_bytes(whole[: int(len(whole) * part)])
    with pytest.raises(
        UserError,
        match=(r"a\.(tar\.gz|zip) cannot be unpacked \(.+\): it is cut short or damaged"),
    ):
        unpack(archive, tmp_path / "out", 100_000)
    assert not (tmp_path / "out").exists()


def test_a_name_may_come_once(tmp_path):
    with pytest.warns(UserWarning, match="Duplicate name"):
        twice = zip_with(tmp_path / "a.zip", ("x", b"1"), ("x", b"2"))
    for archive in (twice, tar_with(tmp_path / "a.tar.gz", ("a/x", b"1"), ("A/X", b"2"))):
        with pytest.raises(UserError, match=r"twice, or more than .* each once"):
            unpack(archive, tmp_path / "out", LIMIT)
