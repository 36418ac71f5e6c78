"""What `learn` prints about jobs that fail."""

import json
import sys
import time

import pytest

import manymetrics as mm
from command_line import run
from manymetrics.measure import transfer
from manymetrics.measure.transfer import fit_single_task


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


def misbehave(job, bank):
    """Training that fails for three tasks; at module level, because workers import it."""
    if job.name == "colour-0":
        raise ValueError("nothing to say")
    if job.name == "colour-1":
        import torch

        return bytes(torch.zeros(2**29, dtype=torch.uint8).numpy())
    if job.name == "animal-2":
        time.sleep(600)
    return fit_single_task(job, bank)


@pytest.fixture
def bank_with_three_failures(bank_with_a_failure, monkeypatch):
    """A bank in which one task is broken, one needs too much memory and one never ends."""
    monkeypatch.setattr(transfer, "fit_single_task", misbehave)
    return [*bank_with_a_failure, "--workers", 2, "--job-timeout", 6, "--job-memory", 200]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts what a process may write to")
def test_jobs_that_fail_or_exceed_a_limit_are_skipped_and_the_others_make_a_model(bank_with_three_failures, tmp_path):
    result = run(*bank_with_three_failures, "--json")
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert {failure["job"]: failure["error"].partition(" (")[0] for failure in summary["failures"]} == {
        "colour-0": "ValueError: nothing to say",
        "colour-1": "it needs more than the 200 MiB that a job may take",
        "animal-2": "it took longer than the 6 s that a job may take",
    }
    assert "3 jobs failed and were skipped: " in result.stderr
    model = mm.load_model(tmp_path / "model")
    assert sorted(model.clusters.names) == ["animal-0", "animal-1", "colour-2"]
    assert {name for metric in model.metrics for name in metric.tasks} <= set(model.clusters.names)
    assert [metric.kind for metric in model.metrics].count("learned") == len(model.clusters)
