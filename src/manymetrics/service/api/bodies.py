"""What requests must look like; unknown fields are refused."""

from __future__ import annotations

from typing import Annotated, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from manymetrics.service.values import Labelled

Item = TypeVar("Item")
Share = Annotated[float, Field(ge=0, le=1)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=100_000)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=500)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=500)]


class Body(BaseModel):
    """Any body."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ExampleBody(Body):
    """A labelled text; without a label it is a counter-example: a text that is out of scope."""

    text: Text
    label: Label | None = None

    def value(self) -> Labelled:
        """As the verbs take it."""
        return Labelled(self.text, self.label)


class CreateBody(Body):
    """A classifier to be made."""

    name: Name
    examples: Annotated[list[ExampleBody], Field(min_length=2, max_length=100_000)]
    reject: Share = 0.0
    margin: Share = 0.0
    shared: bool = False


class UpdateBody(Body):
    """What is to be changed of a classifier; what is left out stays."""

    name: Name | None = None
    reject: Share | None = None
    margin: Share | None = None
    shared: bool | None = None


class ChangeExamplesBody(Body):
    """Examples to be added, and ids of examples to be removed, in one step."""

    add: Annotated[list[ExampleBody], Field(max_length=100_000)] = []
    remove: Annotated[list[Annotated[str, StringConstraints(max_length=40)]], Field(max_length=100_000)] = []


class TextsBody(Body):
    """Texts to be answered, and how many near examples to name with each answer."""

    texts: Annotated[list[Text], Field(min_length=1, max_length=100_000)]
    nearest: Annotated[int, Field(ge=0, le=20)] = 3


class ExplainBody(Body):
    """A text whose answer is to be explained."""

    text: Text


class EvaluateBody(Body):
    """A labelled test set, if there is one."""

    test: Annotated[list[ExampleBody], Field(max_length=100_000)] = []


class SuggestBody(Body):
    """Unlabelled texts, and how many of them one is ready to label."""

    texts: Annotated[list[Text], Field(min_length=1, max_length=100_000)]
    count: Annotated[int, Field(ge=1, le=1000)] = 10


class RollBackBody(Body):
    """The version to go back to."""

    version: Annotated[int, Field(ge=1, le=10**9)]


class Page(BaseModel, Generic[Item]):
    """Some items of a list; `next` is the cursor of those that follow."""

    items: list[Item]
    next: str | None = None
