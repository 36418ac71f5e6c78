"""What baselines choose: on tasks that they did not learn from, once, and with a planted best value."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from experiments.bench import Bench
from experiments.published import Convex
from experiments.tuning import Tuning

from experiments import tuning
from manymetrics.store import Run
from manymetrics.values import SharedData, TaskBank


@pytest.fixture
def tuned(make_bank, vectors, network_recipe, tmp_path):
    tasks = tuple(replace(task, source=f"{task.name[-1]} source") for task in make_bank(5, size=12))
    bank = TaskBank(tasks)
    with Run.open(tmp_path / "run", "") as run:
        bench = Bench(bank, SharedData(bank.without_tests(), vectors), bank, None, run, "code", lambda progress: None)
        yield Tuning(bench, replace(network_recipe, held_out=0.4))


def test_a_problem_is_answered_by_models_of_other_sources(tuned, monkeypatch):
    bank = tuned.bench.shared_data.bank
    metrics = [SimpleNamespace(name=task.name) for task in bank]
    monkeypatch.setattr(tuning, "single_task_metrics", lambda *args: metrics)

    def said(others, problems):
        assert len(problems)
        for problem in problems:
            own = {task.name for task in bank if task.source == problem.source}
            assert {metric.name for metric in others(problem)} == set(bank.names) - own
        return "what they say"

    monkeypatch.setattr(tuning, "answers_of", said)
    monkeypatch.setattr(tuning, "choose_convex", lambda answers: ({"what they say": Convex(0.3, 5)}[answers], 1.0))
    assert tuned.choose(tuning.COMBINATION) == {"rate": 0.3, "steps": 5}


def test_pooled_texts_are_those_of_other_tasks(tuned, monkeypatch):
    learned = []

    def pooled(bank, *, C):
        learned.append(set(bank.names))
        return lambda task: [task.labels[0]] * len(task.test)

    monkeypatch.setattr(tuning, "count_words", lambda bank: bank)
    monkeypatch.setattr(tuning, "pooled_tfidf", pooled)
    assert tuned.choose(tuning.POOLED) == {"C": tuning.PENALTIES[0]}, "of equals the first"
    assert all(not names & set(tuned.held_out) for names in learned)
