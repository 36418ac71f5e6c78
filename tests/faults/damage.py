"""Ways to damage the content of a file so that it may still be read: all of them are drawn from a seeded generator."""

import importlib.util
import json
from pathlib import Path

import numpy as np
from safetensors.numpy import load, save

_path = Path(__file__).parents[1] / "model" / "test_hostile_files.py"
_spec = importlib.util.spec_from_file_location("hostile_files", _path)
hostile = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(hostile)

ODD_TEXTS = (
    "\x00", "\ufeff", "\t", '"', "'", ",", ";", "{", "}", "[", "]", "\\", "\r", "\n", "\u2028", "\ud800", "\x1b[31m",
    "- ", "## ", "&a *a ", "!!python/object ", "<!--", "|", ">", "#", "1e400", "NaN", "null", "-1",
    "é" * 9, "0" * 400, "[" * 5_000, "{a: " * 2_000, "x" * 1_000_000,
)  # fmt: skip


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


def json_of(raw: bytes, rng: np.random.Generator) -> bytes:
    """One value of a JSON document replaced by one of another type or size, or taken away."""
    if rng.random() < 0.1:
        return hostile.DEEP.encode() if rng.random() < 0.3 else str(rng.choice(hostile.OTHERS)).encode()
    return hostile.mutate(json.loads(raw), rng).encode()


def json_lines(raw: bytes, rng: np.random.Generator) -> bytes:
    """The same in one line of many."""
    rows = raw.splitlines()
    at = int(rng.integers(len(rows)))
    rows[at] = json_of(rows[at], rng)
    return b"\n".join(rows)


def tensors(raw: bytes, rng: np.random.Generator) -> bytes:
    """One tensor of another shape, type or range, taken away or called otherwise; or a header that says so."""
    found = load(raw)
    name = str(rng.choice(sorted(found)))
    way, (length, about) = rng.random(), _header(raw)
    if way < 0.25:
        changed = hostile.mutate(about, rng).encode()
        return len(changed).to_bytes(8, "little") + changed + raw[8 + length :]
    if way < 0.35:
        return _save({key: one for key, one in found.items() if key != name}, about)
    if way < 0.4:
        return _save({**found, str(rng.choice(sorted(found))): found[name]}, about)
    tensor = found[name]
    if way < 0.6 and tensor.size:
        tensor = tensor.copy()
        odd = [np.nan, np.inf, -np.inf, -1, 0, 1e38, 2**31 - 1, -(2**31), 2**62, 1e-40]
        with np.errstate(all="ignore"):
            number = np.array(odd[int(rng.integers(10))]).astype(tensor.dtype)
            tensor.reshape(-1)[int(rng.integers(tensor.size))] = number
    else:
        every = list(hostile.odd_tensors(tensor))
        tensor = every[int(rng.integers(len(every)))]
    return _save({**found, name: np.ascontiguousarray(tensor)}, about)


def packed(raw: bytes, rng: np.random.Generator) -> bytes:
    """One value of the JSON in the metadata, or one tensor."""
    text, arrays = hostile.split(raw)
    if not arrays or rng.random() < 0.5:
        return save(arrays, {"value": json_of(text.encode(), rng).decode()})
    return tensors(raw, rng)


def job(raw: bytes, rng: np.random.Generator) -> bytes:
    """The payload of a job: a packed value, or tensors alone."""
    return (packed if "__metadata__" in _header(raw)[1] else tensors)(raw, rng)


def _header(raw: bytes) -> tuple[int, dict]:
    length = int.from_bytes(raw[:8], "little")
    return length, json.loads(raw[8 : 8 + length])


def _save(found: dict, about: dict) -> bytes:
    return save(found, metadata=about.get("__metadata__"))


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
        rows[at] = rows[at][:place] + ODD_TEXTS[int(rng.integers(len(ODD_TEXTS)))] + rows[at][place:]
    return "\n".join(rows).encode("utf-8", "surrogatepass")


def toml(raw: bytes, rng: np.random.Generator) -> bytes:
    """One setting set to something else."""
    rows = raw.decode().splitlines()
    at = int(rng.integers(len(rows)))
    name = rows[at].partition("=")[0].strip(" #") or "width"
    others = ("nan", "inf", "-inf", "true", '""', '"x"', "[]", "{}", "1979-05-27", "[" * 5000, '"""', "[[1]]")
    odd = (*hostile.NUMBERS, *others)
    rows[at] = f"{name} = {odd[int(rng.integers(len(odd)))]}"
    return "\n".join(rows).encode()


def either(way):
    """This way of damage most of the time, else some bytes."""
    return lambda raw, rng: some_bytes(raw, rng) if rng.random() < 0.3 else way(raw, rng)
