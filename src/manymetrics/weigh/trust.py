"""What the bank's held-out tasks taught about when to trust an answer."""

from dataclasses import dataclass, field

from manymetrics.weigh.calibration import Calibration
from manymetrics.weigh.scope import Scope


@dataclass(frozen=True)
class Trust:
    """The scope of a task and the meaning of its probabilities; the defaults were learned from a bank of chatbots."""

    scope: Scope = field(default_factory=Scope)
    calibration: Calibration = field(default_factory=Calibration)
