"""Nothing in the repository tells where it was made, or fetches from a named place."""

import re

import pytest

from tests.house.tree import named, tracked

# Written in two halves, so that this file does not find itself.
_REGISTRIES = (
    "pypi" + ".org",
    "python" + "hosted.org",
    "registry." + "npmjs.org",
    "--" + "index-url",
    "--" + "extra-index-url",
    "/" + "simple/",
)
_PLACES = re.compile(r"(?<![\w.$}~-])/(?:work|home|root|Users)/[\w.-]+")


def place_or_registry(text: str) -> list[str]:
    """Find a package registry, or an absolute path of somebody's machine."""
    found = [name for name in _REGISTRIES if name in text]
    return found + [match.group() for match in _PLACES.finditer(text)]


@pytest.mark.parametrize(
    "text",
    [
        "https://files.python" + "hosted.org/packages/x.whl",
        "pip install --" + "index-url http://127.0.0.1/",
        "see /" + "work/main/README.md",
        "cd /" + "home/somebody/countersign",
        "File '/" + "root/x.py'",
    ],
)
def test_the_rule_catches_registries_and_places(text: str) -> None:
    assert place_or_registry(text)


@pytest.mark.parametrize(
    "text",
    ["templates/work/home.html", "WORKDIR /srv/app", "https://example.com/work/", "/tmp/cs-test-x"],
)
def test_the_rule_lets_relative_paths_pass(text: str) -> None:
    assert place_or_registry(text) == []


def test_no_tracked_file_names_a_registry_or_a_place() -> None:
    broken, read = [], 0
    for path in tracked():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        read += 1
        if named(path) != "Makefile":
            broken += [f"{named(path)}: {found}" for found in place_or_registry(text)]
    assert read > 200
    assert broken == []


def test_the_lock_pins_every_package_by_hash() -> None:
    lock = next(path for path in tracked() if path.name == "requirements.lock").read_text()
    blocks = [block for block in re.split(r"\n(?=\S)", lock) if block and not block.startswith("#")]
    assert len(blocks) > 50
    bare = [
        block.split()[0] for block in blocks if "==" not in block or "--hash=sha256:" not in block
    ]
    assert bare == []
