"""Valid small files made bad: flipped, cut, spliced bytes, and by what a file is: its lines, JSON,
members of a zip.
"""

import io
import json
import struct
import zipfile
from random import Random
from typing import Any

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
)
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
        "npz": _zip,
        "zip": _zip,
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
    if chance.random() < 0.2 and data:
        flipped = bytearray(data)
        for _ in range(chance.choice((1, 2, 8, 64))):
            flipped[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        return bytes(flipped)
    between = (
        b"",
        middle * chance.choice((2, 4, 50)),
        chance.randbytes(len(middle))[:500],
        chance.choice(BYTES) + middle,
        chance.choice(BYTES),
        chance.choice(others or [data])[-len(middle) :],
    )
    return start + chance.choice(between) + chance.choice((end, end, b""))


def _text(chance: Random, data: bytes) -> bytes:
    lines = data.decode("utf-8", "replace").split("\n")
    place, new, mark = chance.randrange(len(lines)), word(chance), chance.choice('\t, :"')
    line, parts = lines[place], lines[place].split(mark)
    parts[chance.randrange(len(parts))] = new
    lines[place] = chance.choice(
        (mark.join(parts), new, line + new, new + line, line * 20, "", line.replace(" ", "\t"))
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


def _json(chance: Random, data: bytes) -> bytes:
    text = json.dumps(changed(chance, json.loads(data)))
    return text.replace(json.dumps(DEEP), "[" * 100_000).encode()


def _json_lines(chance: Random, data: bytes) -> bytes:
    lines = data.splitlines()
    place = chance.randrange(len(lines))
    lines[place] = _json(chance, lines[place])
    return b"\n".join([*lines, b""])


def _safetensors(chance: Random, data: bytes) -> bytes:
    """Another header of JSON, after its length."""
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    about = header.get("__metadata__", {})
    if chance.random() < 0.4 and "description" in about:
        about["description"] = _json(chance, about["description"].encode()).decode()
        text = json.dumps(header).encode()
    else:
        text = _json(chance, data[8 : 8 + length])
    wrong = chance.choice((0, 1, len(text) - 1, len(text) + 8, 2**40, 2**63))
    said = len(text) if chance.random() < 0.9 else wrong
    return struct.pack("<Q", said) + text + data[8 + length :]


def _zip(chance: Random, data: bytes) -> bytes:
    """A member damaged or under another name, a further one, or an entry that says otherwise."""
    with zipfile.ZipFile(io.BytesIO(data)) as old:
        members = [(name, old.read(name)) for name in old.namelist()]
    place = chance.randrange(len(members))
    name, content = members[place]
    if chance.random() < 0.5:
        members[place] = name, _bytes(chance, content, [])
    else:
        names = (name, name.upper(), f"{name}/x", word(chance)[:9999] or "x")
        members.append((chance.choice(names), chance.choice((b"x", content, bytes(3_000_000)))))
    packed = io.BytesIO()
    methods = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    with zipfile.ZipFile(packed, "w", chance.choice(methods)) as new:
        for name, content in members:
            about = zipfile.ZipInfo(name)
            about.external_attr = chance.choice((*[0o644] * 48, 0o120777, 0o010644)) << 16
            new.writestr(about, content, new.compression)
    whole = bytearray(packed.getvalue())
    if chance.random() < 0.3:  # the last entry of the directory says something else
        entry = whole.rfind(b"PK\x01\x02") + chance.choice((8, 10, 16, 20, 24, 28, 30, 42))
        struct.pack_into("<H", whole, entry, chance.choice((0, 1, 99, 0xFFFF)))
    return bytes(whole)
