"""A client of the service, with the methods of the library: adapt, predict, add_examples, explain.

It needs only the standard library. A request is repeated if the connection fails or the service is overloaded; a
request that changes something has an idempotency key, so that the service executes it once.
"""

import contextlib
import http.client
import json
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

from manymetrics.errors import DataError, EnvironmentProblem, InputError, ServiceError

BATCH = 500  # texts per request
RETRY_STATUS = (429, 502, 503, 504)
MAX_WAIT = 30.0  # seconds


class Client(contextlib.AbstractContextManager["Client"]):
    """A connection to the service at `url` with the `key` of a tenant.

    A request is repeated at most `retries` times, and each attempt waits at most `timeout` seconds for a response.
    Several threads may use one client.
    """

    def __init__(self, url: str, key: str, *, timeout: float = 60.0, retries: int = 5,
                 wait: Callable[[float], object] = time.sleep) -> None:  # fmt: skip
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError("The URL of the service is not valid. Give one such as http://127.0.0.1:8000.")
        if not key.isascii() or not key.isprintable():
            raise InputError("The key has characters that are not part of any key. Give it as it was printed.")
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._local = _ConnectionOfThread(kind, parts.hostname, parts.port, timeout=timeout)
        self._host, self._prefix = parts.hostname, parts.path.rstrip("/")
        self._key, self._retries, self._wait = key, retries, wait

    def adapt(self, texts: Iterable[str], labels: Iterable[str], counter_examples: Iterable[str] = (), *,
              name: str = "classifier", reject: float = 0.0, margin: float = 0.0,
              shared: bool = False) -> "RemoteClassifier":  # fmt: skip
        """Create a classifier for a new task; with `shared`, the next model may learn from its examples."""
        examples = [*_labelled(texts, labels), *({"text": text} for text in counter_examples)]
        body = {"name": name, "examples": examples, "reject": reject, "margin": margin, "shared": shared}
        return RemoteClassifier(self, self.request("POST", "/v1/classifiers", body))

    def classifier(self, id: str) -> "RemoteClassifier":
        """The classifier with this id."""
        return RemoteClassifier(self, self.request("GET", f"/v1/classifiers/{quote(id, safe='')}"))

    def classifiers(self) -> Iterator[dict[str, Any]]:
        """A description of each classifier of this tenant, the oldest first."""
        return self.pages("/v1/classifiers")

    def pages(self, path: str, **query: Any) -> Iterator[dict[str, Any]]:
        """The items of a list, which the service sends in pages."""
        while True:
            page = self.request("GET", path, query=query)
            yield from page["items"]
            if page["next"] is None:
                return
            query["cursor"] = page["next"]

    def request(self, method: str, path: str, body: Any = None, *, query: Mapping[str, Any] | None = None) -> Any:
        """Send a request, repeat it if that may help, and return the parsed response."""
        headers = {"Authorization": f"Bearer {self._key}", "Accept": "application/json"}
        content = None
        if body is not None:
            headers["Content-Type"], content = "application/json", json.dumps(body, allow_nan=False).encode()
        if method in ("POST", "PATCH"):
            headers["Idempotency-Key"] = uuid.uuid4().hex
        target, attempt = self._prefix + path + (f"?{urlencode(query)}" if query else ""), 0
        while True:
            retry_after = ""
            try:
                connection = self._local.connection
                connection.request(method, target, content, headers)
                response = connection.getresponse()
                status, answer, retry_after = response.status, response.read(), response.getheader("Retry-After", "")
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if attempt == self._retries:
                    message = f"The service at {self._host} cannot be reached ({type(error).__name__})."
                    raise EnvironmentProblem(f"{message} Check its URL, and that it runs.") from error
            else:
                if method == "DELETE" and status == 404 and attempt:
                    return None  # an earlier attempt succeeded, but its response was lost
                if attempt == self._retries or status not in RETRY_STATUS:
                    return _parse(status, answer)
            seconds = float(retry_after) if retry_after.isdigit() else 0.1 * 2 ** min(attempt, 10)
            self._wait(min(seconds, MAX_WAIT) + random.uniform(0, 0.1))
            attempt += 1

    def close(self) -> None:
        """Close the connection of this thread; another request opens it again."""
        self._local.connection.close()

    def __exit__(self, *_: object) -> None:
        self.close()


class _ConnectionOfThread(threading.local):
    def __init__(self, kind: type[http.client.HTTPConnection], host: str, port: int | None, *, timeout: float) -> None:
        self.connection = kind(host, port, timeout=timeout)  # called in each thread that uses it


class RemoteClassifier:
    """A classifier of the service, with the methods of `FewShotClassifier`."""

    def __init__(self, client: Client, about: Mapping[str, Any]) -> None:
        self._client, self.about = client, dict(about)
        self.id = str(self.about["id"])  # in the service
        self._path = f"/v1/classifiers/{self.id}"

    @property
    def classes_(self) -> list[str]:
        """The labels, sorted; the columns of `predict_proba`."""
        return list(self.about["labels"])

    def predict(self, X: Iterable[str]) -> list[str | None]:
        """The most probable label of each text; None if it is rejected."""
        return [answer["label"] for answer in self.answer(X)]

    def predict_proba(self, X: Iterable[str]) -> list[list[float]]:
        """The probability of each label for each text, in the order of `classes_`."""
        answers = self.answer(X)
        if answers and sorted(answers[0]["probabilities"]) != self.classes_:
            self.refresh()
        return [[answer["probabilities"][label] for label in self.classes_] for answer in answers]

    def answer(self, X: Iterable[str], *, nearest: int = 0) -> list[dict[str, Any]]:
        """The answers to the texts: label, probability, scope, whether the text is rejected, and why."""
        texts = _as_list(X)
        bodies = [{"texts": texts[start : start + BATCH], "nearest": nearest} for start in range(0, len(texts), BATCH)]
        return [answer for body in bodies for answer in self._post("predictions", body)["items"]]

    def add_examples(self, texts: Iterable[str], labels: Iterable[str]) -> Self:
        """Add examples, of known or new labels."""
        return self._change("POST", "/examples", {"add": _labelled(texts, labels)})

    def remove_examples(self, texts: Iterable[str]) -> Self:
        """Remove the examples with these texts."""
        removed = set(_as_list(texts))
        examples = [example for example in self.examples() if example["text"] in removed]
        if {example["text"] for example in examples} != removed:
            raise InputError("There is no example with this text. Give the texts as they were added.")
        return self._change("POST", "/examples", {"remove": [example["id"] for example in examples]})

    def examples(self) -> list[dict[str, Any]]:
        """The examples with their ids; those without a label are counter-examples."""
        return list(self._client.pages(f"{self._path}/examples", limit=200))

    def explain(self, text: str) -> dict[str, Any]:
        """Why the text is answered as it is."""
        return dict(self._post("explanations", {"text": text}))

    def doctor(self) -> dict[str, Any]:
        """Problems in the examples, and the accuracy cross-validated on them."""
        return dict(self._post("evaluation", {}))

    def score(self, X: Iterable[str], y: Iterable[str]) -> float:
        """The accuracy on these texts."""
        return float(self._post("evaluation", {"test": _labelled(X, y)})["test"]["accuracy"])

    def suggest(self, texts: Iterable[str], count: int = 10) -> list[dict[str, Any]]:
        """Which of these unlabelled texts to label next, and why."""
        return list(self._post("suggestions", {"texts": _as_list(texts), "count": count})["items"])

    def versions(self) -> list[dict[str, Any]]:
        """All versions with their estimated accuracy, the oldest first."""
        return list(self._client.request("GET", f"{self._path}/versions")["items"])

    def roll_back(self, version: int) -> Self:
        """Create a new version that equals an earlier one."""
        return self._change("POST", "/rollback", {"version": version})

    def set_params(self, **settings: Any) -> Self:
        """Set `name`, `reject`, `margin` or `shared`."""
        return self._change("PATCH", "", settings)

    def refresh(self) -> Self:
        """Read its description again; other clients may have changed it."""
        return self._change("GET", "")

    def delete(self) -> None:
        """Delete it with all its versions and examples."""
        self._client.request("DELETE", self._path)

    def __repr__(self) -> str:
        return f"<RemoteClassifier {self.id}, version {self.about['version']}, of {len(self.classes_)} labels>"

    def _post(self, path: str, body: Any) -> Any:
        return self._client.request("POST", f"{self._path}/{path}", body)

    def _change(self, method: str, path: str, body: Any = None) -> Self:
        self.about = self._client.request(method, self._path + path, body)
        return self


def _labelled(texts: Iterable[str], labels: Iterable[str]) -> list[dict[str, str]]:
    texts, labels = _as_list(texts), _as_list(labels)
    if len(texts) != len(labels):
        raise DataError(f"Found {len(texts)} texts and {len(labels)} labels. Give one label for each text.")
    return [{"text": text, "label": str(label)} for text, label in zip(texts, labels, strict=True)]


def _as_list(values: Iterable[str]) -> list[str]:
    if isinstance(values, str):
        raise DataError("Found one text where a list of texts was expected. Put it in a list: [text].")
    return list(values)


def _parse(status: int, response: bytes) -> Any:
    """The content of a response; an error of the service is raised."""
    if status < 300:
        return json.loads(response) if response else None
    try:
        detail = str(json.loads(response)["detail"])
    except (ValueError, KeyError, TypeError):
        detail = "The response is not one of this service. Check its URL."
    raise ServiceError(detail, status)
