"""What `learn` prints about jobs that fail."""

import json

import pytest

import manymetrics as mm
from command_line import run
from manymetrics.measure import transfer


@pytest.fixture
def bank_with_a_failure(tmp_path, make_bank, monkeypatch):
    """A bank in which one task cannot be trained."""
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    mm.write_bank(make_bank(3), tmp_path / "bank")
    (tmp_path / "tiny.toml").write_text(
        'encoder = "words"\nrepresentation = "convolution"\nvectors = "random"\n'
        "clusters = 2\npairs = 15\n[convolution]\ntask_steps = 10\nmetric_steps = 10\nwidth = 8\n"
    )
    train = transfer.fit_single_task

    def train_most(job, bank):
        if job.name == "colour-1":
            raise ValueError("nothing to say")
        return train(job, bank)

    monkeypatch.setattr(transfer, "fit_single_task", train_most)
    words = ["learn", tmp_path / "bank", "--out", tmp_path / "model", "--run", tmp_path / "run"]
    return [*words, "--recipe", tmp_path / "tiny.toml", "--workers", 1]


def test_learn_prints_failed_jobs_and_how_to_try_again(bank_with_a_failure, tmp_path):
    result = run(*bank_with_a_failure, "--json")
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert [failure["job"] for failure in summary["failures"]] == ["colour-1"]
    assert summary["pairs"] == 10
    assert "colour-1" not in [name for group in summary["clusters"] for name in group]
    assert "manymetrics: warning: measure-models of 'colour-1' failed: ValueError: nothing to say" in result.stderr
    assert "1 job failed and was skipped: measure-models of 'colour-1'. Try again with: manymetrics learn" in (
        result.stderr
    )
    (retry,) = [line for line in result.stderr.splitlines() if "Try again with: " in line]
    assert retry.endswith(" --replace")


def test_strict_accepts_no_failure(bank_with_a_failure, tmp_path):
    result = run(*bank_with_a_failure, "--strict")
    assert result.exit_code == 3
    assert "1 job failed. With --strict, no model is saved." in result.stderr
    assert not (tmp_path / "model").exists()
    again = run(*bank_with_a_failure, "--quiet")
    assert again.exit_code == 0, "the run resumes without --replace, because no model was saved"
    assert (tmp_path / "model").is_dir()


def test_the_options_limit_what_a_job_may_take(bank_with_a_failure, monkeypatch):
    given = []
    monkeypatch.setattr(mm, "learn_metrics", lambda *_, **options: given.append(options["limits"]), raising=False)
    run(*bank_with_a_failure, "--job-timeout", 6, "--job-memory", 200)
    assert given == [mm.Limits(seconds=6, memory=200 * 2**20)]
