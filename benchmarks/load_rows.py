"""What came of requests under load -> rows with targets and verdicts, and their table in Markdown."""

from collections.abc import Iterator, Sequence

from benchmarks.harness import Row, Target, seconds
from benchmarks.load_clients import Taken
from benchmarks.load_service import TENANTS

CALM_RATE = 20.0  # requests a second of the tenant who is not to notice the other's flood
TWICE = Target(2, "×", at_least=False)
FLAT = Target(10, "MiB more", at_least=False)


def steady_row(kind: str, taken: Taken, length: float, connections: int, *, share: float) -> Row:
    """Throughput and latency while every connection asks again as soon as it is answered."""
    each = share * length / max(1, len(taken.accepted))
    return Row(
        f"{kind} model, {connections} connections for {length:g} s: requests of one text",
        f"{len(taken.accepted) / length:,.0f}/s, {_spread(taken.accepted)}",
        sound=taken.sound and not taken.refused,
        note=f"{TENANTS} tenants; answers by status {_counts(taken)}; the service had {share:.2f} processors, "
        f"{seconds(each)} of one for each request",
    )


def overload_rows(kind: str, steady: Taken, over: Taken, health: Taken) -> Iterator[Row]:
    """Latency of the accepted and of the refused under three times as many requests, and of /health beside them."""
    ratio = _at(0.99, over.accepted) / _at(0.99, steady.accepted)
    yield Row(
        f"{kind} model, three times as many: p99 of the accepted, over the p99 before",
        f"{ratio:.2f} × ({_spread(over.accepted)})", target=TWICE, value=ratio, sound=over.sound,
        note=f"answers by status {_counts(over)}; every refusal says when to come back",
    )  # fmt: skip
    slower = _at(0.99, over.refused) / _at(0.99, steady.accepted)
    yield Row(
        f"{kind} model, three times as many: p99 of the refused, over the same",
        f"{slower:.2f} × ({_spread(over.refused)})", target=Target(1, "×", at_least=False), value=slower,
    )  # fmt: skip
    yield Row(
        f"{kind} model, three times as many: /health", _spread(health.accepted), sound=set(health.statuses) == {200},
        note=f"ten times a second; answers by status {_counts(health)}",
    )  # fmt: skip


def memory_row(kind: str, seen: Sequence[tuple[int, float]]) -> Row:
    """How much more memory the service holds after many distinct texts."""
    early = max(memory for _, memory in seen[: max(1, len(seen) // 4)])
    return Row(
        f"{kind} model, memory of the service over {seen[-1][0]:,} distinct texts",
        f"{early:.0f} and {seen[-1][1]:.0f} MiB", target=FLAT, value=seen[-1][1] - early,
        note="the most within the first quarter, and at the end; requests of 50 texts; MiB on the way: "
        + ", ".join(f"{memory:.0f}" for _, memory in seen),
    )  # fmt: skip


def flood_row(kind: str, alone: Taken, beside: Taken, flood: Taken) -> Row:
    """How much longer a calm tenant waits beside one who floods."""
    ratio = _at(0.99, beside.accepted) / _at(0.99, alone.accepted)
    return Row(
        f"{kind} model, p99 of a calm tenant beside one who floods, over its p99 alone",
        f"{ratio:.2f} × ({_spread(alone.accepted)}; {_spread(beside.accepted)})", target=TWICE, value=ratio,
        sound=beside.sound and not beside.refused,
        note=f"{CALM_RATE:g} requests a second; the flood's answers by status {_counts(flood)}",
    )  # fmt: skip


def table(rows: Sequence[Row]) -> str:
    """The rows in Markdown, notes below."""
    lines = ["| what | ours | target | verdict |", "| --- | --- | --- | --- |"]
    notes: list[str] = []
    for row in rows:
        notes += [row.note] if row.note else []
        mark = f" [{len(notes)}]" if row.note else ""
        lines.append(f"| {row.what}{mark} | {row.ours} | {row.target or ''} | {row.verdict} |")
    return "\n".join([*lines, "", *(f"[{number}] {note}.  " for number, note in enumerate(notes, start=1))])


def _at(share: float, times: Sequence[float]) -> float:
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def _spread(times: Sequence[float]) -> str:
    return f"p50 {seconds(_at(0.5, times))}, p99 {seconds(_at(0.99, times))}"


def _counts(taken: Taken) -> str:
    return ", ".join(f"{status or 'none'}: {count:,}" for status, count in sorted(taken.statuses.items()))
