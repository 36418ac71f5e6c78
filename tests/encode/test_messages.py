"""Messages of fields: read back as they were written."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from manymetrics.encode.messages import field, fields, numbers, text

VALUES = st.one_of(st.integers(0, 2**64 - 1), st.binary(max_size=300), st.text(max_size=100))


@given(st.lists(st.tuples(st.integers(1, 2**20), VALUES)))
def test_fields_are_read_back_as_they_were_written(given_fields):
    message = b"".join(field(number, value) for number, value in given_fields)
    meant = [(number, value.encode() if isinstance(value, str) else value) for number, value in given_fields]
    assert list(fields(message)) == meant
    assert [(number, value if isinstance(value, int) else bytes(value)) for number, value in
            fields(memoryview(message))] == meant  # fmt: skip


def test_numbers_of_four_and_eight_bytes_are_given_as_bytes():
    message = b"\x15" + struct.pack("<f", 2.5) + b"\x19" + struct.pack("<d", 0.5) + field(4, "end")
    assert list(fields(message)) == [(2, struct.pack("<f", 2.5)), (3, struct.pack("<d", 0.5)), (4, b"end")]


def test_whole_numbers_one_behind_the_other_and_strings():
    packed = field(1, 300)[1:] + field(1, 7)[1:]
    assert list(numbers(packed)) == [300, 7]
    assert (text(b"parcel"), text(memoryview("größe".encode())), text(3)) == ("parcel", "größe", "3")
