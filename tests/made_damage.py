"""Valid small files made bad in many ways: flipped, cut, spliced bytes, and by what a file is: its
JSON, header, cells, members.
"""

import io
import json
import struct
import tarfile
import zipfile
from random import Random
from typing import Any

import numpy as np

WORDS = (  # terminals, names that leave, numbers, long runs, what other formats take for syntax
    "\x1b[2J\x1b]0;owned\x07",
    "\x9b31m",
    "\r\x1b[A",
    "../../../escaped",
    "/tmp/escaped",
    "..\\..\\escaped",
    "a\0b",
    "\u202eevil",
    "\ufeff",
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "-1",
    "0",
    "9" * 5000,
    "0x" + "f" * 5000,
    "1e-400",
    "9" * 20,
    "-9223372036854775809",
    "'" * 1500,
    '"' * 1500,
    "a" * 100_000,
    "<" * 2000,
    "&" * 3000,
    "&#x110000;",
    "&lt;script&gt;",
    "\t" * 50,
    "\n" * 50,
    "\r",
    "😀" * 100,
    "e" + "\u0301" * 2000,
    "${oc.env:HOME}",
    "{{7*7}}",
    "!!python/object/apply:os.system ['id']",
    "*a",
    "&a [*a]",
    "? ",
    "- - - -",
    "~",
    "true",
    "[" * 5000,
    "{" * 3000,
    "{a: " * 2000,
    "2001-99-99",
    ".inf",
    "%s%n",
    "<unk>",
    "</w>",
    "a </w>",
    "_start_",
    "â€œ" * 200,
    "\ud7ff",
    "a.b" * 1000,
    "http://" * 300,
    "-" * 1000,
    "1," * 3000,
    "'s" * 700,
    "中" * 1000,
    "",
    " ",
    "con",
    ".",
    "..",
    "x" * 300,
)
BYTES = (
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\x00" * 64,
    b"\xff" * 64,
    b"\x80abc",
    b"\xed\xa0\x80",
    b"PK\x03\x04",
    b"\x1f\x8b\x08",
    b"PAR1",
    b"\x93NUMPY\x03\x00",
    b"\x28\xb5\x2f\xfd",
    b"\r\n\r\n",
    b"\n" * 1000,
    b"\x7f" * 3,
    b"\x1b[31m",
    struct.pack("<Q", 2**63),
    struct.pack("<I", 2**31),
)
DEEP = "@@deep@@"  # stands in JSON for a list in a list in a list …
VALUES = (
    None,
    True,
    False,
    -1,
    0,
    1,
    10**6,
    2**31,
    2**63,
    2**64,
    10**30,
    10**400,
    -0.5,
    1e308,
    float("nan"),
    float("inf"),
    "",
    " ",
    "0",
    "-1",
    "\ud800",
    "\udfff\ud800",
    [],
    {},
    [[]],
    {"a": 1},
    [None],
    [1, 2, 3],
    ["a"],
    {"": None},
    DEEP,
)


def damaged(chance: Random, name: str, data: bytes, others: list[bytes]) -> bytes:
    """The bytes of a file made bad once; `others` are files to splice from."""
    suffix = name.rpartition(".")[2] if "." in name else "txt"
    readers = {
        "json": _json,
        "jsonl": _json_lines,
        "safetensors": _safetensors,
        "npy": _npy,
        "npz": _npz,
        "zip": _zip,
        "gz": _tar,
    }
    special = readers.get(suffix)
    drawn = chance.random()
    try:
        if special and drawn < 0.6:
            return special(chance, data)
        if drawn < 0.8 and suffix not in ("safetensors", "npy", "npz", "zip", "gz", "bin"):
            return _text(chance, data)
    except Exception:  # what it would be taken apart as it no longer is
        pass
    return _bytes(chance, data, others)


def _bytes(chance: Random, data: bytes, others: list[bytes]) -> bytes:
    one, other = sorted((chance.randint(0, len(data)), chance.randint(0, len(data))))
    kind = chance.randrange(9)
    if kind == 0:
        flipped = bytearray(data)
        for _ in range(chance.choice((1, 2, 8, 64)) if data else 0):
            flipped[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        return bytes(flipped)
    start, middle, end = data[:one], data[one:other], data[other:]
    if kind == 1:
        return start
    if kind == 2:
        return start + end
    if kind == 3:
        return start + middle * chance.choice((2, 4, 50)) + end
    if kind == 4:
        return chance.randbytes(chance.choice((0, 1, 9, 300)))
    if kind == 5:
        return start + chance.randbytes(len(middle))[:500] + end
    word = chance.choice(BYTES)
    return (
        start
        + (
            word + middle
            if kind == 6
            else word
            if kind == 7
            else chance.choice(others or [data])[-len(middle) :]
        )
        + end
    )


def _text(chance: Random, data: bytes) -> bytes:
    lines = data.decode("utf-8", "replace").split("\n")
    place, word = chance.randrange(len(lines)), chance.choice(WORDS)
    parts = lines[place].split(mark := chance.choice(("\t", ",", " ", ": ", '"')))
    parts[chance.randrange(len(parts))] = word
    line, other = lines[place], lines[chance.randrange(len(lines))]
    new = chance.choice(
        (
            mark.join(parts),
            word,
            line + word,
            word + line,
            line * 20,
            "",
            None,
            line.replace(":", ""),
            line.replace("\t", " "),
            line.replace(" ", "\t"),
            f"{line}\n{other}",
        )
    )
    lines[place : place + 1] = [] if new is None else [new]
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def changed(chance: Random, value: Any) -> Any:
    """A JSON value with something in it put in another's place, taken away, or doubled."""
    if isinstance(value, dict | list) and value and chance.random() < 0.85:
        key = chance.choice(list(value) if isinstance(value, dict) else range(len(value)))
        new: Any = dict(value) if isinstance(value, dict) else list(value)
        kind = chance.random()
        if kind < 0.15:
            del new[key]
        elif kind < 0.25 and isinstance(new, dict):
            new[chance.choice((*WORDS, "x" * 30))] = new.pop(key)
        elif kind < 0.3 and isinstance(new, list):
            new += new[key:] * 3
        else:
            new[key] = changed(chance, value[key])
        return new
    if type(value) is int and chance.random() < 0.4:
        return chance.choice(
            (
                -value,
                value + 1,
                value - 1,
                value * 1000,
                value + 0.5,
                float(value),
                str(value),
                2 * value,
            )
        )
    return chance.choice(VALUES) if chance.random() < 0.6 else chance.choice(WORDS)


def _dumped(value: Any) -> str:
    return json.dumps(value).replace(json.dumps(DEEP), "[" * 100_000)


def _json(chance: Random, data: bytes) -> bytes:
    return _dumped(changed(chance, json.loads(data))).encode()


def _json_lines(chance: Random, data: bytes) -> bytes:
    lines = data.decode().splitlines()
    place = chance.randrange(len(lines))
    lines[place] = _dumped(changed(chance, json.loads(lines[place])))
    return ("\n".join(lines) + "\n").encode()


def _safetensors(chance: Random, data: bytes) -> bytes:
    length = struct.unpack("<Q", data[:8])[0]
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    if chance.random() < 0.4 and "description" in header.get("__metadata__", {}):
        header["__metadata__"]["description"] = _dumped(
            changed(chance, json.loads(header["__metadata__"]["description"]))
        )
    else:
        header = changed(chance, header)
    text = _dumped(header).encode()
    said = (
        len(text)
        if chance.random() < 0.9
        else chance.choice((0, 1, len(text) - 1, len(text) + 8, 2**40, 2**63))
    )
    return struct.pack("<Q", said) + text + body


def _npy(chance: Random, data: bytes) -> bytes:
    stream = io.BytesIO(data)
    np.lib.format.read_magic(stream)
    shape, order, dtype = np.lib.format.read_array_header_1_0(stream)
    shapes = (
        (),
        (0,),
        (10**12,),
        (2**40, 2**40),
        (-1,),
        (1,),
        (2**63,),
        (*reversed(shape), 1),
        (*shape, 1),
        "x",
        None,
    )
    header = {"descr": dtype.str, "fortran_order": order, "shape": shape}
    types = (
        "|O",
        "<f8",
        "<u1",
        "<i8",
        "<f4",
        "|S3",
        "<U2",
        "|b1",
        "<c16",
        "<M8[s]",
        "V4",
        "x",
        [("a", "<i4")],
        ("<i4", (2,)),
        None,
        "<f" + "9" * 400,
    )
    header |= chance.choice(
        (
            {"shape": chance.choice(shapes)},
            {"fortran_order": chance.choice((not order, "x", 1))},
            {"descr": chance.choice(types)},
            {"more": 1},
        )
    )
    text = repr(header)
    if chance.random() < 0.3:
        text = chance.choice(
            (
                text.replace("{", "{" * 500),
                "__import__('os').system('true')",
                "9" * 9000,
                f"{text}+1",
            )
        )
    version = chance.choice((b"\x01\x00", b"\x01\x00", b"\x02\x00"))
    return (
        b"\x93NUMPY"
        + version
        + struct.pack("<H", len(text) + 1)
        + text.encode()
        + b"\n"
        + stream.read()
    )


def _npz(chance: Random, data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as old:
        members = {name: old.read(name) for name in old.namelist()}
    victim = chance.choice(sorted(members))
    kind = chance.randrange(5)
    if kind == 0:
        members[chance.choice(sorted(members))] = members[victim]
    elif kind == 1:
        members[chance.choice(WORDS) or "x"] = members.pop(victim)
    elif kind == 2:
        members[victim] = _bytes(chance, members[victim], [])
    else:
        members[victim] = _npy(chance, members[victim])
    packed = io.BytesIO()
    methods = (*(zipfile.ZIP_STORED,) * 4, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA)
    with zipfile.ZipFile(packed, "w", chance.choice(methods)) as new:
        for name, content in members.items():
            new.writestr(name.replace("\0", "") or "x", content)
    return packed.getvalue()


def _zip(chance: Random, data: bytes) -> bytes:
    packed = io.BytesIO(data)
    methods = (
        zipfile.ZIP_STORED,
        *(zipfile.ZIP_DEFLATED,) * 4,
        zipfile.ZIP_BZIP2,
        zipfile.ZIP_LZMA,
    )
    with zipfile.ZipFile(packed, "a", chance.choice(methods)) as archive:
        name = archive.namelist()[0]
        for _ in range(chance.choice((1, 2))):
            member = zipfile.ZipInfo(
                chance.choice((name, name.upper(), name + "/x", *WORDS)) or "x"
            )
            member.external_attr = (
                chance.choice((0, 0, 0o644, 0o120777, 0o010644, 0o060644, 0o4755)) << 16
            )
            member.compress_type = archive.compression
            archive.writestr(
                member, chance.choice((b"", b"x", b"\0" * 3_000_000, chance.randbytes(2000)))
            )
    changed_ = bytearray(packed.getvalue())
    end = changed_.rfind(b"PK\x01\x02")
    if chance.random() < 0.5 and end >= 0:  # the last entry of the directory says something else
        place, form = chance.choice(
            (
                (8, "<H"),
                (10, "<H"),
                (16, "<I"),
                (20, "<I"),
                (24, "<I"),
                (28, "<H"),
                (30, "<H"),
                (42, "<I"),
            )
        )
        struct.pack_into(
            form,
            changed_,
            end + place,
            chance.choice((0, 1, 9, 99, 0xFFFF, chance.randrange(2**16))),
        )
    return bytes(changed_)


def _tar(chance: Random, data: bytes) -> bytes:
    packed = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(data)) as old,
        tarfile.open(fileobj=packed, mode="w:gz", format=chance.choice((0, 1, 2))) as new,
    ):
        members = [
            (member, old.extractfile(member).read() if member.isfile() else b"") for member in old
        ]  # type: ignore[union-attr]
        member = tarfile.TarInfo(
            chance.choice((members[0][0].name, members[0][0].name + "/x", *WORDS)).replace("\0", "")
            or "x"
        )
        member.type = chance.choice(
            (
                *(tarfile.REGTYPE,) * 9,
                tarfile.SYMTYPE,
                tarfile.LNKTYPE,
                tarfile.CHRTYPE,
                tarfile.FIFOTYPE,
                tarfile.DIRTYPE,
                tarfile.CONTTYPE,
                tarfile.GNUTYPE_SPARSE,
                b"9",
            )
        )
        member.linkname = chance.choice(("", "/etc/passwd", "../x", "x" * 200))
        sparse = {"GNU.sparse.realsize": "9" * 12, "GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
        member.pax_headers = chance.choice(
            (
                {},
                {},
                {"size": "9" * 30},
                {"path": "../x"},
                {"path": "a\0b"},
                sparse,
                {"mtime": "nan"},
            )
        )
        content = chance.choice((b"", b"x", b"\0" * 3_000_000))
        member.size = len(content)
        members.insert(chance.randrange(len(members) + 1), (member, content))
        for member, content in members:
            new.addfile(member, io.BytesIO(content))
    return packed.getvalue()
