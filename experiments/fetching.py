"""An address -> a file, whole or not at all: fetched beside its place, checked, and only then given its name.

What was cut short is fetched again from its beginning, so a file that is there is always one piece of one fetch.
"""

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from manymetrics.errors import EnvironmentProblem, InputError

PATIENCE = 30.0  # seconds without a byte
WAITS = (1.0, 4.0)  # seconds before the second and the third try
LARGEST = 2**28  # bytes of one file
LONGEST = 600.0  # seconds for one file
PORTION = 2**16  # bytes
UNFINISHED = ".part"


def fetch_file(address: str, path: Path, *, check: Callable[[Path], None]) -> None:
    """Fetch one file; `check` looks at it before it gets its name, and refuses by raising."""
    if not address.startswith(("http://", "https://")):
        raise InputError(f"{address!r} is not a web address. Give one that begins with https:// or http://.")
    payload = _download(address)
    beside = path.with_name(path.name + UNFINISHED)
    try:
        beside.write_bytes(payload)
        check(beside)
        beside.replace(path)
    except OSError as problem:
        raise EnvironmentProblem(
            f"Could not write {path}: {problem.strerror or problem}. Make room or choose another folder, and give the "
            "same command again; what was fetched before is kept."
        ) from problem
    finally:
        beside.unlink(missing_ok=True)


def _download(address: str) -> bytes:
    """The content behind an address; after a passing trouble it is tried twice more."""
    for wait in (*WAITS, None):
        try:
            return _read(address)
        except urllib.error.HTTPError as problem:
            if problem.code < 500 or wait is None:
                raise EnvironmentProblem(_refusal(address, problem.code)) from problem
        except (OSError, ValueError, http.client.HTTPException) as problem:  # ValueError: lengths, hosts, chunks
            if wait is None:
                raise EnvironmentProblem(
                    f"{address} could not be fetched ({_reason(problem)}). Check the network and give the same command "
                    "again; what was fetched before is kept."
                ) from problem
        time.sleep(wait)
    raise AssertionError("the last try returns or raises")


def _read(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=PATIENCE) as answer:  # noqa: S310 - only http and https come here
        payload = _read_in_time(answer, address)
        promised = int(answer.headers.get("Content-Length") or len(payload))
    if len(payload) > LARGEST:
        raise EnvironmentProblem(
            f"{address} is larger than {LARGEST:,} bytes, which no file wanted is. Check the address."
        )
    if len(payload) < promised:
        raise http.client.IncompleteRead(payload, promised - len(payload))
    return payload


def _read_in_time(answer: http.client.HTTPResponse, address: str) -> bytes:
    """What a server sends, at most `LARGEST` bytes and one more, and not drop by drop for ever."""
    started, parts, size = time.monotonic(), [], 0
    while size <= LARGEST and (part := answer.read1(min(PORTION, LARGEST + 1 - size))):
        parts.append(part)
        size += len(part)
        if time.monotonic() - started > LONGEST:
            raise EnvironmentProblem(f"{address} was not there whole after {LONGEST:.0f} seconds. Try another address.")
    return b"".join(parts)


def _refusal(address: str, code: int) -> str:
    if code == http.HTTPStatus.NOT_FOUND:
        return f"{address} is not there (404). Check the address; its owners may have moved the file."
    return f"{address} could not be fetched (the server answered {code}). Try again later, or from another address."


def _reason(problem: Exception) -> str:
    if isinstance(problem, http.client.IncompleteRead):
        return f"the connection ended after {len(problem.partial):,} bytes, {problem.expected:,} are missing"
    inner = getattr(problem, "reason", problem)
    return str(getattr(inner, "strerror", None) or inner) or type(inner).__name__
