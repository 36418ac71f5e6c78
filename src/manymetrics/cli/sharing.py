"""Tasks that the clients of a service share, for `learn --from-service`."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import manymetrics as mm
from manymetrics.cli.output import say

KEY = "MANYMETRICS_KEY"
FEWEST_CLIENTS = 3  # of a metric that is published


@dataclass(frozen=True)
class Shared:
    """The shared tasks of a service; none where no service was named."""

    tasks: tuple[dict[str, Any], ...] = ()
    clients: dict[str, str] = field(default_factory=dict)  # of each task

    @classmethod
    def of(cls, url: str | None) -> Shared:
        """Fetch the tasks from the service at this address."""
        if url is None:
            return cls()
        from manymetrics.service.sharing import clients_of, require_clients

        key = os.environ.get(KEY)
        if not key:
            raise mm.InputError(f"The environment variable {KEY} is not set. Give it a key with the scope operate.")
        with mm.Client(url, key) as client:
            tasks = tuple(client.pages("/v1/shared-tasks"))
        clients = clients_of(tasks)
        require_clients(clients, FEWEST_CLIENTS)
        return cls(tasks, clients)

    def with_bank(self, folder: Path | None, read: Callable[[Path], mm.TaskBank]) -> mm.TaskBank:
        """The shared tasks and those of a folder, if there is one."""
        if not self.tasks:
            if folder is None:
                raise mm.InputError("There is nothing to learn from. Give a folder of tasks, or --from-service URL.")
            return read(folder)
        from manymetrics.service.sharing import bank_of

        return bank_of(self.tasks, () if folder is None else read(folder))

    def published(self, model: mm.MetricModel) -> mm.MetricModel:
        """The model without what was learned from too few clients."""
        if not self.tasks:
            return model
        from manymetrics.service.sharing import published

        found, gone = published(model, self.clients, fewest=FEWEST_CLIENTS)
        if gone:
            say(f"Left out, as fewer than {FEWEST_CLIENTS} clients are behind each: {', '.join(gone)}.")
        return found
