"""A label's name -> words an encoder can read: `faq/ask_openingHours2` says "faq ask opening hours 2"."""

import re

_BORDERS = re.compile(
    r"(?<=[a-z])(?=[A-Z0-9])"  # orderStatus, step2
    r"|(?<=[0-9])(?=[A-Za-z])"  # 2nd
    r"|(?<=[A-Z])(?=[A-Z][a-z])"  # FAQOrders
)
_SIGNS = re.compile(r"[\W_]+")


def label_words(label: str) -> str:
    """The words of a label's name, in small letters; the name itself where it holds no letter or digit."""
    words = _SIGNS.sub(" ", _BORDERS.sub(" ", label)).split()
    return " ".join(words).lower() or label
