"""A client of the service, with the verbs of the library: adapt, predict, add_examples, explain.

It needs nothing beyond the standard library. A request that fails on the way, or that the service refuses for now, is
sent again; one that changes something carries an idempotency key, so that it is done once all the same.
"""

import http.client
import json
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from manymetrics.errors import DataError, EnvironmentProblem, InputError, ServiceError

TEXTS_AT_ONCE = 500
AGAIN = (429, 502, 503, 504)  # answers after which the same request may do
LONGEST_WAIT = 30.0  # seconds


class Client:
    """A connection to the service at `url`, as the tenant whose `key` it is.

    `retries` is how often a request is sent again, `timeout` how many seconds an answer may take. One client may be
    used by several threads.
    """

    def __init__(self, url: str, key: str, *, timeout: float = 60.0, retries: int = 5,
                 wait: Callable[[float], object] = time.sleep) -> None:  # fmt: skip
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError("The address of the service cannot be used. Give one such as http://127.0.0.1:8000.")
        if not key.isascii() or not key.isprintable():
            raise InputError("The key holds characters that no key has. Give it as it was shown.")
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, parts.port
        self._prefix = parts.path.rstrip("/")
        self._key, self._timeout, self._retries, self._wait = key, timeout, retries, wait
        self._local = threading.local()

    def adapt(self, texts: Iterable[str], labels: Iterable[str], counter_examples: Iterable[str] = (), *,
              name: str = "classifier", reject: float = 0.0, margin: float = 0.0,
              shared: bool = False) -> "RemoteClassifier":  # fmt: skip
        """A classifier for a new task from a few examples of it; with `shared`, the next model may learn from them."""
        examples = [*_labelled(texts, labels), *({"text": text} for text in counter_examples)]
        body = {"name": name, "examples": examples, "reject": reject, "margin": margin, "shared": shared}
        return RemoteClassifier(self, self.request("POST", "/v1/classifiers", body))

    def classifier(self, id: str) -> "RemoteClassifier":
        """The classifier of this id."""
        return RemoteClassifier(self, self.request("GET", f"/v1/classifiers/{quote(id, safe='')}"))

    def classifiers(self) -> Iterator[dict[str, Any]]:
        """What the service says of each classifier of this tenant, oldest first."""
        return self.pages("/v1/classifiers")

    def model(self) -> dict[str, Any]:
        """The model that is live."""
        found: dict[str, Any] = self.request("GET", "/v1/model")
        return found

    def pages(self, path: str, **query: Any) -> Iterator[dict[str, Any]]:
        """The items of a list, page after page."""
        cursor = None
        while True:
            page = self.request("GET", path, query=query | ({"cursor": cursor} if cursor else {}))
            yield from page["items"]
            cursor = page["next"]
            if cursor is None:
                return

    def request(self, method: str, path: str, body: Any = None, *, query: Mapping[str, Any] | None = None) -> Any:
        """Send one request, again where that may help; gives what is answered."""
        headers = {"Authorization": f"Bearer {self._key}", "Accept": "application/json"}
        content = None
        if body is not None:
            headers["Content-Type"], content = "application/json", json.dumps(body, allow_nan=False).encode()
        if method in ("POST", "PATCH"):
            headers["Idempotency-Key"] = uuid.uuid4().hex
        target = self._prefix + path + (f"?{urlencode(query)}" if query else "")
        for attempt in range(self._retries + 1):
            last = attempt == self._retries
            try:
                status, answer, again = self._send(method, target, content, headers)
            except (OSError, http.client.HTTPException) as problem:
                self._close()
                if last:
                    raise EnvironmentProblem(
                        f"The service at {self._host} cannot be reached ({type(problem).__name__}). Check its address, "
                        "and that it runs."
                    ) from problem
                self._pause(attempt, None)
                continue
            if status < 300:
                return json.loads(answer) if answer else None
            if method == "DELETE" and status == 404 and attempt:
                return None  # an earlier attempt has done it, and its answer was lost
            if last or status not in AGAIN:
                raise _error(status, answer)
            self._pause(attempt, again)
        raise AssertionError("the last attempt returns or raises")

    def close(self) -> None:
        """Close the connection of this thread."""
        self._close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def __repr__(self) -> str:
        return f"<Client of {self._host}>"

    def _send(
        self, method: str, target: str, content: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes, str | None]:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
            connection = self._local.connection = kind(self._host, self._port, timeout=self._timeout)
        connection.request(method, target, content, dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.getheader("Retry-After")

    def _close(self) -> None:
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    def _pause(self, attempt: int, again: str | None) -> None:
        asked = float(again) if again and again.isdigit() else 0.1 * 2**attempt
        self._wait(min(asked, LONGEST_WAIT) + random.uniform(0, 0.1))


class RemoteClassifier:
    """A classifier that the service keeps; the verbs are those of `FewShotClassifier`."""

    def __init__(self, client: Client, about: Mapping[str, Any]) -> None:
        self._client, self.about = client, dict(about)

    @property
    def id(self) -> str:
        """Under which the service knows it."""
        return str(self.about["id"])

    @property
    def version(self) -> int:
        """Which state of it was last seen here."""
        return int(self.about["version"])

    @property
    def classes_(self) -> list[str]:
        """The labels, sorted; the columns of `predict_proba`."""
        return list(self.about["labels"])

    def predict(self, X: Iterable[str]) -> list[str | None]:
        """The likeliest label of each text; None where it is rejected."""
        return [one["label"] for one in self.answer(X)]

    def predict_proba(self, X: Iterable[str]) -> list[list[float]]:
        """The probability of each label for each text, in the order of `classes_`."""
        answers = self.answer(X)
        if answers and sorted(answers[0]["probabilities"]) != self.classes_:
            self.refresh()
        return [[one["probabilities"][label] for label in self.classes_] for one in answers]

    def scope_proba(self, X: Iterable[str]) -> list[float]:
        """The probability that each text is in scope."""
        return [one["scope"] for one in self.answer(X)]

    def answer(self, X: Iterable[str], *, nearest: int = 0) -> list[dict[str, Any]]:
        """All that is answered on each text: label, probability, scope, whether and why it is rejected ..."""
        texts, found = _listed(X), []
        for at in range(0, len(texts), TEXTS_AT_ONCE):
            body = {"texts": texts[at : at + TEXTS_AT_ONCE], "nearest": nearest}
            found += self._ask("predictions", body)["items"]
        return found

    def add_examples(self, texts: Iterable[str], labels: Iterable[str]) -> "RemoteClassifier":
        """Take in further examples, of labels old or new."""
        return self._change("examples", {"add": _labelled(texts, labels)})

    def add_counter_examples(self, texts: Iterable[str]) -> "RemoteClassifier":
        """Take in texts that are out of scope."""
        return self._change("examples", {"add": [{"text": text} for text in _listed(texts)]})

    def remove_examples(self, texts: Iterable[str]) -> "RemoteClassifier":
        """Forget the examples with these texts."""
        gone = set(_listed(texts))
        there = [one for one in self.examples() if one["text"] in gone]
        if len({one["text"] for one in there}) < len(gone):
            raise InputError("There is no such example to remove. Give the texts as they were given.")
        return self._change("examples", {"remove": [one["id"] for one in there]})

    def examples(self) -> list[dict[str, Any]]:
        """The examples with their ids; those without a label are counter-examples."""
        return list(self._client.pages(f"/v1/classifiers/{self.id}/examples", limit=200))

    def explain(self, text: str) -> dict[str, Any]:
        """Why the text is answered as it is."""
        found: dict[str, Any] = self._ask("explanations", {"text": text})
        return found

    def doctor(self) -> dict[str, Any]:
        """What is wrong with the examples, and how well they answer one another."""
        found: dict[str, Any] = self._ask("evaluation", {})
        return found

    def score(self, X: Iterable[str], y: Iterable[str]) -> float:
        """The share of the texts that are answered with their labels."""
        return float(self._ask("evaluation", {"test": _labelled(X, y)})["test"]["accuracy"])

    def suggest(self, texts: Iterable[str], count: int = 10) -> list[dict[str, Any]]:
        """Which of these unlabelled texts to label next, and why."""
        return list(self._ask("suggestions", {"texts": _listed(texts), "count": count})["items"])

    def versions(self) -> list[dict[str, Any]]:
        """All versions with their estimated accuracy, oldest first."""
        return list(self._client.request("GET", f"/v1/classifiers/{self.id}/versions")["items"])

    def roll_back(self, version: int) -> "RemoteClassifier":
        """Make a new version that is like an earlier one."""
        return self._change("rollback", {"version": version})

    def set_params(self, **given: Any) -> "RemoteClassifier":
        """Set `name`, `reject`, `margin` or `shared`."""
        self.about = self._client.request("PATCH", f"/v1/classifiers/{self.id}", given)
        return self

    def refresh(self) -> "RemoteClassifier":
        """Look at it again: others may have changed it."""
        self.about = self._client.request("GET", f"/v1/classifiers/{self.id}")
        return self

    def delete(self) -> None:
        """Delete it with all its versions and examples."""
        self._client.request("DELETE", f"/v1/classifiers/{self.id}")

    def __repr__(self) -> str:
        return f"<RemoteClassifier {self.id}, version {self.version}, of {len(self.classes_)} labels>"

    def _ask(self, what: str, body: Any) -> Any:
        return self._client.request("POST", f"/v1/classifiers/{self.id}/{what}", body)

    def _change(self, what: str, body: Any) -> "RemoteClassifier":
        self.about = self._ask(what, body)
        return self


def _labelled(texts: Iterable[str], labels: Iterable[str]) -> list[dict[str, str]]:
    these, theirs = _listed(texts), _listed(labels)
    if len(these) != len(theirs):
        raise DataError(f"Found {len(these)} texts and {len(theirs)} labels. Give one label for each text.")
    return [{"text": text, "label": str(label)} for text, label in zip(these, theirs, strict=True)]


def _listed(values: Iterable[str]) -> Sequence[str]:
    if isinstance(values, str):
        raise DataError("Found one text where a list of texts was expected. Put it in a list: [text].")
    return list(values)


def _error(status: int, answer: bytes) -> ServiceError:
    try:
        told = json.loads(answer)
        detail = str(told["detail"])
    except (ValueError, KeyError, TypeError):
        detail = "The service answered in a way that is not its own. Check its address."
    return ServiceError(detail, status)
