"""What `make bare` runs of README and the guides, and that it notices failures. The blocks themselves take minutes."""

import re
import tomllib

import pytest

import readme_blocks
from readme_blocks import GIVEN, Block, Failed, blocks_of, in_order, reason_not_to_run, run, running

NEEDS_PEERS = {"peers"}  # of the experiments, which are not run
PAGE = """# first
```python
x = 1
```
## second
```console
$ pip install ".[ray]"    # all
$ echo one \\
    two
```
```
not run
```
```console
$ echo '
  # kept
'
```
"""


@pytest.fixture(scope="module")
def blocks():
    return readme_blocks.blocks_of_pages()


def test_blocks_are_found_with_their_section_extra_and_commands():
    python, ray, plain = blocks_of(PAGE)
    assert (python.section, python.language, python.text) == ("first", "python", "x = 1\n")
    assert python.commands == []
    assert (ray.section, ray.extra) == ("second", "ray")
    assert ray.commands == ['pip install ".[ray]"', "echo one \\\n    two"]
    assert (plain.extra, plain.commands) == ("", ["echo '\n  # kept\n'"])
    assert in_order([python, ray, plain])[:2] == [ray, plain]
    assert [block.text for block in in_order([python, ray, plain])[2:]] == [python.text]
    other = Block("third", "console", "$ true\n", page="other")
    assert [block.page for block in in_order([other, ray, python])] == ["other", "README", "README"]


def test_every_exception_is_still_in_a_page(blocks):
    commands = [command for block in blocks for command in block.commands]
    assert len(commands) > 30
    for pattern in (*readme_blocks.NOT_RUN, *readme_blocks.MUST_PRINT):
        assert [one for one in commands if re.match(pattern, one)], f"no command matches {pattern!r}"
    assert (
        {*GIVEN, *readme_blocks.PYTHON_MUST_PRINT}
        <= {page.stem for page in readme_blocks.PAGES}
        == {block.page for block in blocks}
    )
    assert all(reason_not_to_run(one) is None for one in commands if one.startswith(("manymetrics learn", "curl")))


def test_every_extra_is_installed_alone_by_a_block(blocks):
    project = tomllib.loads((readme_blocks.PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {block.extra for block in blocks} == {"", *project["optional-dependencies"]} - NEEDS_PEERS
    for block in blocks:
        used = [one for one in block.commands if reason_not_to_run(one) is None]
        assert not block.extra or len(used) > 1, f"nothing is done with the extra {block.extra}"


def test_what_fails_is_noticed(tmp_path):
    shell = {"PATH": "/usr/bin:/bin"}
    assert run("echo fine | cat", tmp_path, shell) == "fine\n"
    with pytest.raises(Failed, match="exit code 1"):
        run("false | cat", tmp_path, shell)
    with running("sh -c 'echo up; sleep 60'", tmp_path, shell, ready="up") as printed:
        assert printed == "up\n"
    with pytest.raises(Failed, match="'up' is not in"), running("echo down", tmp_path, shell, ready="up"):
        pass
