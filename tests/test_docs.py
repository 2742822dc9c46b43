"""The documentation: the site builds strictly and asks nothing of the network; examples and commands are right."""

from __future__ import annotations

import contextlib
import doctest
import html
import importlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import synvolution as sv
from synvolution import cli, data, models, nn, ops, spectral

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").rglob("*.md"))
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]

#: Elements that make a browser ask for something as it shows a page, and the attribute that says where.
LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


class Page(HTMLParser):
    """What a built page has and asks for."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.prose: list[str] = []
        self._code = 0
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.ids.add(found.get("id", ""))
        self._code += tag in ("code", "pre", "script", "style")
        if tag in LOADED and LOADED[tag] in found and found.get("rel") != "canonical":
            self.loaded.append(found[LOADED[tag]])
        if tag in ("a", "img"):
            self.links.append(found.get("href", found.get("src", "")))

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag in ("code", "pre", "script", "style")

    def handle_data(self, data: str) -> None:
        if not self._code:
            self.prose.append(data)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built from a copy: neither its pages nor its cache are left in the checkout."""
    pytest.importorskip("zensical", reason="the site's generator needs Python 3.11")
    copy = tmp_path_factory.mktemp("docs")
    for folder in ("docs", "src", "examples"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for file in ("mkdocs.yml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / file, copy)
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return copy / "site"


@pytest.fixture(scope="module")
def built(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html") if path.name != "404.html"}


def navigation() -> list[str]:
    """The files that the navigation names, in its order."""
    part = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n", 1)[1].split("\n\n", 1)[0]
    return re.findall(r"([\w/-]+\.md)$", part, re.MULTILINE)


def test_every_page_is_in_the_navigation_and_built(site: Path) -> None:
    nav = navigation()
    assert sorted(nav) == sorted(path.relative_to(ROOT / "docs").as_posix() for path in PAGES)
    for file in nav:
        assert (site / file).with_suffix(".html").is_file(), file


def test_links_and_pictures_resolve(built: dict[Path, Page]) -> None:
    """Pictures as well, which the generator does not check."""
    broken = []
    for path, page in built.items():
        for link in page.links:
            if "://" in link or link.startswith("mailto:"):
                continue
            file, _, anchor = link.partition("#")
            target = (path.parent / file).resolve() if file else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file() or (anchor and target in built and anchor not in built[target].ids):
                broken.append(f"{path.name}: {link}")
    assert not broken


def test_no_page_asks_the_network(site: Path, built: dict[Path, Page]) -> None:
    asked = {place for page in built.values() for place in page.loaded if re.match(r"(?:\w+:)?//", place)}
    assert not asked
    for path in built:  # what the theme's script fetches for pages that have such elements
        assert not re.search(r'class="[^"]*(?:mermaid|glightbox|pyodide)', path.read_text(encoding="utf-8")), path.name
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", sheet.read_text(encoding="utf-8")), sheet.name


def test_every_public_name_is_in_the_reference(site: Path, built: dict[Path, Page]) -> None:
    ids = {name for path, page in built.items() if path.parent == site / "api" for name in page.ids}
    assert not {f"synvolution.{name}" for name in sv.__all__} - ids
    last = {name.rsplit(".", 1)[-1] for name in ids if name.startswith("synvolution.")}
    for module in (ops, spectral, nn, models, data):
        assert not set(module.__all__) - last, module.__name__


def test_every_example_is_shown_whole(site: Path) -> None:
    page = html.unescape(re.sub(r"<[^>]*>", "", (site / "examples.html").read_text(encoding="utf-8")))
    for script in (ROOT / "examples").glob("*.py"):
        assert script.read_text(encoding="utf-8").strip() in page, script.name


def test_formulas_have_their_indices(site: Path, built: dict[Path, Page]) -> None:
    assert "H<sub>u</sub> = G<sub>0</sub>" in (site / "math.html").read_text(encoding="utf-8")
    for path, page in built.items():
        assert not re.findall(r"\S[_^]\{[^}]*\}", " ".join(page.prose)), path.name


@pytest.mark.parametrize("name", ["docs.formulas", "docs.docstrings"])
def test_extensions_of_the_generator(name: str) -> None:
    pytest.importorskip("zensical", reason="the site's generator needs Python 3.11")
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0
    assert found.failed == 0


def python_blocks(path: Path) -> list[str]:
    blocks: list[str] = re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [block for block in blocks if "--8<--" not in block]


@pytest.mark.parametrize("path", [path for path in PAGES if python_blocks(path)], ids=named)
def test_examples_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a page one after the other; lines after >>> must give what is printed."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in python_blocks(path):
        if ">>>" in block:
            test = doctest.DocTestParser().get_doctest(block, names, named(path), None, None)
            runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
            assert runner.run(test, clear_globs=False).failed == 0
            names |= test.globs
        else:
            exec(compile(block, named(path), "exec"), names)


def commands_in(text: str) -> list[list[str]]:
    """The words after ``synvolution`` of every command in fenced shell blocks and between backquotes.

    >>> commands_in("`synvolution bench ops|gru --quick`")
    [['bench', 'ops', '--quick'], ['bench', 'gru', '--quick']]
    """
    blocks = re.findall(r"^```bash\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = [part for block in blocks for line in block.replace("\\\n", " ").splitlines() for part in line.split("&&")]
    lines += re.findall(r"`(synvolution [^`\n]+)`", text)
    found = []
    for line in lines:
        words = shlex.split(line, comments=True)
        if "synvolution" in words:
            words = words[words.index("synvolution") + 1 :]
            several = next((word for word in words if re.fullmatch(r"\w+(\|\w+)+", word)), "")
            found += [[choice if word == several else word for word in words] for choice in several.split("|")]
    return found


@cache
def help_of(*words: str) -> str:
    """What the command line itself says."""
    out = io.StringIO()
    wide = mock.patch.dict(os.environ, COLUMNS="200")
    arguments = mock.patch.object(sys, "argv", ["synvolution", *words, "--help"])
    with wide, arguments, contextlib.redirect_stdout(out), pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code, out.getvalue()
    return out.getvalue()


def fault_of(words: list[str]) -> str | None:
    """What is wrong with a documented command, if anything."""
    known = cli.commands()
    if words[0] not in known:
        return f"no command {words[0]!r}"
    subject = [word for word in words[1:2] if not word.startswith("-")]
    with_subject = words[0] == "data" or (words[0] in cli.WITH_RECIPE and not any("." in word for word in subject))
    said = help_of(words[0], *(subject if with_subject else []))
    choices = re.search(r"^usage:.*\{([\w,]+)\}\]?$", said, re.MULTILINE)
    if choices and subject and subject[0] not in choices[1].split(","):
        return f"{words[0]} has no {subject[0]!r}"
    options = set(re.findall(r"--[\w.-]+", said))
    missing = [word for word in words if word.startswith("--") and word.split("=")[0] not in {*options, "--help"}]
    return f"{' '.join(words)}: no option {missing[0]}" if missing else None


@pytest.mark.parametrize("path", [path for path in TEXTS if commands_in(path.read_text(encoding="utf-8"))], ids=named)
def test_commands_exist(path: Path) -> None:
    faults = [fault_of(words) for words in commands_in(path.read_text(encoding="utf-8"))]
    assert not [fault for fault in faults if fault]
