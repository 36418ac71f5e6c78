"""Run commands of `manymetrics` in this process."""

import json

from click.testing import CliRunner

from manymetrics.cli import main


def run(*words, **options):
    """The result of a command."""
    return CliRunner(env={"FORCE_COLOR": None}).invoke(main, [str(word) for word in words], **options)


def done(*words, **options):
    """The result of a command that must succeed."""
    result = run(*words, **options)
    assert result.exit_code == 0, result.output
    return result


def printed_json(*words, **options):
    """What a command prints with --json."""
    return json.loads(done(*words, "--json", **options).stdout)


def printed_rows(*words, **options):
    """The cells of the TSV that a command prints."""
    return [line.split("\t") for line in done(*words, **options).stdout.splitlines()]


def write_shots(path, shots):
    """Write examples as TSV."""
    pairs = zip(shots.texts, shots.labels, strict=True)
    path.write_text("".join(f"{text}\t{label}\n" for text, label in pairs))
