"""What the tests of `collect` share."""

import pytest
from collect_files import write


@pytest.fixture
def make(tmp_path):
    """Write a file below the temporary folder, and return its path."""
    return lambda name, content: write(tmp_path / name, content)
