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


def assert_refused(result, message, *, code=2):
    """The last line on stderr has the message, warnings may precede it, and stdout is empty."""
    assert not isinstance(result.exception, Exception), result.exception
    assert (result.exit_code, result.stdout) == (code, ""), result.output
    *before, last = result.stderr.splitlines()
    assert all(line.startswith("manymetrics: warning: ") for line in before)
    assert last.startswith("manymetrics: ")
    assert message in last


def assert_usage_error(result, message):
    """Click refuses the command."""
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


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
