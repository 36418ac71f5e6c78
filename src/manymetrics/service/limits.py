"""How fast each tenant may ask: a bucket of tokens that fills at a steady rate, one token a request."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from manymetrics.service.problems import TooMany

KNOWN = 50_000  # buckets, before those not used for longest are forgotten


class RateLimits:
    """The buckets of all tenants."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens left, as of when
        self._lock = threading.Lock()

    def take(self, tenant: str, *, rate: float, burst: float) -> None:
        """One request of a tenant; refused where its bucket is empty."""
        moment = self._clock()
        with self._lock:
            left, since = self._buckets.get(tenant, (burst, moment))
            left = min(burst, left + (moment - since) * rate)
            allowed = left >= 1
            self._buckets[tenant] = (left - allowed, moment)
            self._buckets.move_to_end(tenant)
            while len(self._buckets) > KNOWN:
                self._buckets.popitem(last=False)
        if not allowed:
            wait = (1 - left) / rate if rate > 0 else 60.0
            raise TooMany("This tenant sends more requests than its limit allows. Wait, then go on.", retry_after=wait)
