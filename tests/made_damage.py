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

# terminals, names that leave, numbers, what other formats take for syntax, a word a line
SYNTAX = """\x1b[2J\x1b]0;owned\x07
\x9b31m
../../../escaped
/tmp/escaped
..\\..\\escaped
a\0b
\u202eevil
\ufeff
NaN
-Infinity
1e999
-1
0
1e-400
99999999999999999999
-9223372036854775809
&#x110000;
&lt;script&gt;
${oc.env:HOME}
{{7*7}}
!!python/object/apply:os.system ['id']
*a
&a [*a]
- - - -
~
true
2001-99-99
%s%n
<unk>
a </w>
_start_
con
.."""
WORDS = (*SYNTAX.splitlines(), "", "\r\x1b[A")
RUNS = (*"9'\"a<&\t\n😀[中", "e\u0301", "{a: ", "â€œ", "a.b", "1,")
BYTES = (
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\x00" * 64,
    b"\xff" * 64,
    b"\xed\xa0\x80",
    b"PK\x03\x04",
    b"\x1f\x8b\x08",
    b"PAR1",
    b"\x93NUMPY\x03\x00",
    b"\x28\xb5\x2f\xfd",
    b"\n" * 1000,
    struct.pack("<Q", 2**63),
    struct.pack("<I", 2**31),
)
TYPES = ("|O", "<f8", "<u1", "|S3", "<U2", "|b1", "<c16", "<M8[s]", "V4", "x")
DEEP = "@@deep@@"  # stands in JSON for a list in a list in a list …
VALUES = json.loads(
    '[null, true, false, -1, 0, 1, 1000000, 2147483648, 9223372036854775808, 1e30, -0.5, 1e308, "", " ",'
    ' "0", "\\ud800", [], {}, [[]], {"a": 1}, [null], [1, 2, 3], ["a"], {"": null}]'
)
VALUES += [10**400, float("nan"), float("inf"), DEEP]


def word(chance: Random) -> str:
    """One of the words, or a long run of something."""
    if chance.random() < 0.6:
        return chance.choice(WORDS)
    return chance.choice(RUNS) * chance.choice((300, 1500, 5000, 100_000))


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
    special, drawn = readers.get(suffix), chance.random()
    try:
        if special and drawn < 0.6:
            return special(chance, data)
        if drawn < 0.8 and suffix in ("json", "jsonl", "txt", "yaml", "csv", "tsv"):
            return _text(chance, data)
    except Exception:  # what it would be taken apart as it no longer is
        pass
    return _bytes(chance, data, others)


def _bytes(chance: Random, data: bytes, others: list[bytes]) -> bytes:
    one, other = sorted(chance.randint(0, len(data)) for _ in range(2))
    start, middle, end = data[:one], data[one:other], data[other:]
    flipped = bytearray(data)
    for _ in range(chance.choice((1, 2, 8, 64)) if data else 0):
        flipped[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return chance.choice(
        (
            bytes(flipped),
            start,
            start + end,
            start + middle * chance.choice((2, 4, 50)) + end,
            start + chance.randbytes(len(middle))[:500] + end,
            start + chance.choice(BYTES) + middle + end,
            start + chance.choice(BYTES) + end,
            start + chance.choice(others or [data])[-len(middle) :] + end,
        )
    )


def _text(chance: Random, data: bytes) -> bytes:
    lines = data.decode("utf-8", "replace").split("\n")
    place, new, mark = chance.randrange(len(lines)), word(chance), chance.choice('\t, :"')
    line, parts = lines[place], lines[place].split(mark)
    parts[chance.randrange(len(parts))] = new
    other = lines[chance.randrange(len(lines))]
    lines[place] = chance.choice(
        (
            mark.join(parts),
            new,
            line + new,
            new + line,
            line * 20,
            "",
            f"{line}\n{other}",
            line.replace(" ", "\t"),
        )
    )
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def changed(chance: Random, value: Any) -> Any:
    """A JSON value with something in it put in another's place, taken away, or doubled."""
    if isinstance(value, dict | list) and value and chance.random() < 0.85:
        key = chance.choice(list(value) if isinstance(value, dict) else range(len(value)))
        new: Any = value.copy()
        kind = chance.random()
        if kind < 0.15:
            del new[key]
        elif kind < 0.25 and isinstance(new, dict):
            new[word(chance)] = new.pop(key)
        elif kind < 0.3 and isinstance(new, list):
            new += new[key:] * 3
        else:
            new[key] = changed(chance, value[key])
        return new
    if type(value) is int and chance.random() < 0.4:
        return chance.choice((-value, value + 1, value - 1, value * 1000, value + 0.5, str(value)))
    return chance.choice(VALUES) if chance.random() < 0.6 else word(chance)


def _dumped(value: Any) -> str:
    return json.dumps(value).replace(json.dumps(DEEP), "[" * 100_000)


def _json(chance: Random, data: bytes) -> bytes:
    return _dumped(changed(chance, json.loads(data))).encode()


def _json_lines(chance: Random, data: bytes) -> bytes:
    lines = data.splitlines()
    place = chance.randrange(len(lines))
    lines[place] = _json(chance, lines[place])
    return b"\n".join([*lines, b""])


def _safetensors(chance: Random, data: bytes) -> bytes:
    length = struct.unpack("<Q", data[:8])[0]
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    metadata = header.get("__metadata__", {})
    if chance.random() < 0.4 and "description" in metadata:
        metadata["description"] = _dumped(changed(chance, json.loads(metadata["description"])))
    else:
        header = changed(chance, header)
    text = _dumped(header).encode()
    wrong = chance.choice((0, 1, len(text) - 1, len(text) + 8, 2**40, 2**63))
    return struct.pack("<Q", len(text) if chance.random() < 0.9 else wrong) + text + body


def _npy(chance: Random, data: bytes) -> bytes:
    stream = io.BytesIO(data)
    np.lib.format.read_magic(stream)
    shape, order, dtype = np.lib.format.read_array_header_1_0(stream)
    shapes = ((), (0,), (10**12,), (2**40, 2**40), (-1,), (2**63,), (*shape, 1), "x", None)
    types = (*TYPES, [("a", "<i4")], ("<i4", (2,)), None)
    header = {"descr": dtype.str, "fortran_order": order, "shape": shape}
    header |= chance.choice(
        (
            {"shape": chance.choice(shapes)},
            {"fortran_order": chance.choice((not order, "x"))},
            {"descr": chance.choice(types)},
        )
    )
    text = repr(header)
    if chance.random() < 0.3:
        code = "__import__('os').system('true')"
        text = chance.choice((text.replace("{", "{" * 500), code, "9" * 9000))
    version = b"\x93NUMPY" + chance.choice((b"\x01\x00", b"\x02\x00"))
    return version + struct.pack("<H", len(text) + 1) + text.encode() + b"\n" + stream.read()


def _npz(chance: Random, data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as old:
        members = {name: old.read(name) for name in old.namelist()}
    victim, other = (chance.choice(sorted(members)) for _ in range(2))
    kind = chance.randrange(5)
    if kind == 0:
        members[other] = members[victim]
    elif kind == 1:
        members[word(chance)] = members.pop(victim)
    else:
        change = _npy(chance, members[victim]) if kind > 2 else _bytes(chance, members[victim], [])
        members[victim] = change
    packed = io.BytesIO()
    methods = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA)
    with zipfile.ZipFile(packed, "w", chance.choice(methods)) as new:
        for name, content in members.items():
            new.writestr(name.replace("\0", "")[:9999] or "x", content)
    return packed.getvalue()


def _zip(chance: Random, data: bytes) -> bytes:
    packed = io.BytesIO(data)
    methods = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    with zipfile.ZipFile(packed, "a", chance.choice(methods)) as archive:
        name = archive.namelist()[0]
        names = (name, name.upper(), f"{name}/x", word(chance)[:9999] or "x")
        member = zipfile.ZipInfo(chance.choice(names))
        member.external_attr = chance.choice((0, 0o644, 0o120777, 0o010644, 0o4755)) << 16
        member.compress_type = archive.compression
        archive.writestr(member, chance.choice((b"", b"x", b"\0" * 3_000_000)))
    whole = bytearray(packed.getvalue())
    end = whole.rfind(b"PK\x01\x02")
    if chance.random() < 0.5 and end >= 0:  # the last entry of the directory says something else
        place = chance.choice((8, 10, 16, 20, 24, 28, 30, 42))
        struct.pack_into("<H", whole, end + place, chance.choice((0, 1, 99, 0xFFFF)))
    return bytes(whole)


def _tar(chance: Random, data: bytes) -> bytes:
    packed = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(data)) as old,
        tarfile.open(fileobj=packed, mode="w:gz", format=chance.choice((0, 1, 2))) as new,
    ):
        for member in old:
            new.addfile(member, old.extractfile(member))
        name = chance.choice((member.name, f"{member.name}/x", word(chance)[:9999]))
        member = tarfile.TarInfo(name.replace("\0", "") or "x")
        member.type = chance.choice((b"0", *(bytes([kind]) for kind in b"0123567S9")))
        member.linkname = chance.choice(("", "/etc/passwd", "../x", "x" * 200))
        sparse = {"GNU.sparse.realsize": "9" * 12, "GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
        wrong = {"size": "9" * 30}, {"path": "../x"}, {"path": "a\0b"}, sparse, {"mtime": "nan"}
        member.pax_headers = chance.choice(({}, *wrong))
        content = chance.choice((b"", b"x", b"\0" * 3_000_000))
        member.size = len(content)
        new.addfile(member, io.BytesIO(content))
    return packed.getvalue()
