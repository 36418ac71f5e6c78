"""Ways to damage the content of a file so that it may still be read: all of them are drawn from a seeded generator."""

import json

import numpy as np
from safetensors.numpy import load, save

DEEP = "[" * 100_000 + "]" * 100_000
NUMBERS = ["-1", "0", "1", "3", "2.5", "-1e308", "1e308", "1e400", "NaN", "-Infinity", "1" + "0" * 25, "1" + "0" * 400]
OTHERS = ["null", "true", "[]", "{}", '""', '"x"', '"1"', "[[]]", "[null]", '["x", "x"]', '{"x": {"x": []}}', DEEP]
TOML = ["nan", "inf", "-inf", "true", '""', '"x"', "[]", "{}", "1979-05-27", "[" * 5000, '"""', "[[1]]"]
ODD_TEXTS = (
    "\x00", "\ufeff", "\t", '"', "'", ",", ";", "{", "}", "[", "]", "\\", "\r", "\n", "\u2028", "\ud800", "\x1b[31m",
    "- ", "## ", "&a *a ", "!!python/object ", "<!--", "|", ">", "#", "1e400", "NaN", "null", "-1",
    "é" * 9, "0" * 400, "[" * 5_000, "{a: " * 2_000, "x" * 1_000_000,
)  # fmt: skip


def one_of(options, rng):
    return options[int(rng.integers(len(options)))]


def some_bytes(raw: bytes, rng: np.random.Generator) -> bytes:
    """Bytes flipped, cut off, taken out, put in, or said twice."""
    data, way = bytearray(raw), int(rng.integers(6))
    at = int(rng.integers(len(data) + 1))
    end = min(len(data), at + int(rng.integers(1, 64)))
    if way == 0 and data:
        for _ in range(int(rng.integers(1, 9))):
            data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    elif way == 1:
        del data[at:]
    elif way == 2:
        del data[at:end]
    elif way == 3:
        data[at:at] = rng.bytes(int(rng.integers(1, 64)))
    elif way == 4:
        data[at:at] = data[at:end] * int(rng.integers(1, 200))
    else:
        data[at:end] = b"\xff" * (end - at)
    return bytes(data)


def paths(node, at=()):
    """The paths of the values of a JSON document."""
    yield at
    for key, child in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from paths(child, (*at, key))


def changed(text: str | bytes, path, odd: str | None) -> bytes:
    """A JSON document with the JSON `odd` at a path; without that value if it is None."""
    tree = node = json.loads(text)
    *parents, last = path
    for step in parents:
        node = node[step]
    if odd is None:
        del node[last]
    else:
        node[last] = "ODD VALUE"
    return json.dumps(tree).replace('"ODD VALUE"', odd or "").encode()


def json_of(raw: bytes, rng: np.random.Generator) -> bytes:
    """One value of a JSON document replaced by one of another type or size, or taken away."""
    if rng.random() < 0.1:
        return one_of(OTHERS, rng).encode()
    path = one_of([path for path in paths(json.loads(raw)) if path], rng)
    return changed(raw, path, None if rng.random() < 0.15 else one_of(NUMBERS + OTHERS, rng))


def json_lines(raw: bytes, rng: np.random.Generator) -> bytes:
    """The same in one line of many."""
    rows = raw.splitlines()
    at = int(rng.integers(len(rows)))
    rows[at] = json_of(rows[at], rng)
    return b"\n".join(rows)


def odd_tensors(tensor):
    """The same tensor in wrong shapes and types, and with values that no calculation can use."""
    yield tensor.reshape(-1)[:-1]
    yield tensor[None]
    yield tensor.reshape(-1)
    yield tensor[:0]
    yield np.moveaxis(tensor, -1, 0)
    yield np.zeros(tensor.shape, np.int8)
    yield tensor.astype(np.float64)
    for value in (np.nan, np.inf, -1.0, 1e9, 1e38, 1e300, 2**62):
        for kind in ("f2", "f4", "f8", "i8", "u8"):
            with np.errstate(all="ignore"):
                odd = np.full(tensor.shape, value).astype(kind)
            yield odd


def split(payload: bytes) -> tuple[dict, dict]:
    """The header and the arrays of a file of safetensors."""
    return json.loads(payload[8 : 8 + int.from_bytes(payload[:8], "little")]), load(payload)


def tensors(raw: bytes, rng: np.random.Generator) -> bytes:
    """One tensor of another shape, type or range, or without its name; one number of it; or the header."""
    header, found = split(raw)
    name, way = one_of(sorted(found), rng), rng.random()
    if way < 0.25:
        odd = json_of(json.dumps(header).encode(), rng)
        return len(odd).to_bytes(8, "little") + odd + raw[8 + int.from_bytes(raw[:8], "little") :]
    if way < 0.35:
        del found[name]
    elif way < 0.4:
        found[one_of(sorted(found), rng)] = found[name]
    elif way < 0.6 and found[name].size:
        number = one_of([np.nan, np.inf, -np.inf, -1, 0, 1e38, 2**31 - 1, -(2**31), 2**62, 1e-40], rng)
        with np.errstate(all="ignore"):
            found[name] = found[name].copy()
            found[name].flat[int(rng.integers(found[name].size))] = np.array(number).astype(found[name].dtype)
    else:
        found[name] = np.ascontiguousarray(one_of(list(odd_tensors(found[name])), rng))
    return save(found, metadata=header.get("__metadata__"))


def packed(raw: bytes, rng: np.random.Generator) -> bytes:
    """One value of the JSON in the metadata, or one tensor."""
    header, arrays = split(raw)
    text = header.get("__metadata__", {}).get("value")
    if text is not None and (not arrays or rng.random() < 0.5):
        return save(arrays, {"value": json_of(text.encode(), rng).decode()})
    return tensors(raw, rng)


def text_of(raw: bytes, rng: np.random.Generator) -> bytes:
    """A line moved, doubled or taken away, or something odd put into one."""
    rows = raw.decode("utf-8", "surrogateescape").split("\n")
    at, way = int(rng.integers(len(rows))), rng.random()
    if way < 0.1:
        del rows[at]
    elif way < 0.2:
        rows[at:at] = [rows[at]] * int(rng.integers(1, 300))
    elif way < 0.3:
        rows[at] = " " * int(rng.integers(1, 9)) + rows[at].strip()
    elif way < 0.4:
        other = int(rng.integers(len(rows)))
        rows[at], rows[other] = rows[other], rows[at]
    else:
        place = int(rng.integers(len(rows[at]) + 1))
        rows[at] = rows[at][:place] + one_of(ODD_TEXTS, rng) + rows[at][place:]
    return "\n".join(rows).encode("utf-8", "surrogatepass")


def toml(raw: bytes, rng: np.random.Generator) -> bytes:
    """One setting set to something else."""
    rows = raw.decode().splitlines()
    at = int(rng.integers(len(rows)))
    rows[at] = f"{rows[at].partition('=')[0].strip(' #') or 'width'} = {one_of(NUMBERS + TOML, rng)}"
    return "\n".join(rows).encode()


def either(way):
    """This way of damage most of the time, else some bytes."""
    return lambda raw, rng: some_bytes(raw, rng) if rng.random() < 0.3 else way(raw, rng)
