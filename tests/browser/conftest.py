"""A real Chromium on the real product: launcher, workers, processor, in a home of their own."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from config.launcher.preflight import free_port
from tests.platform.launching import Launch, all_ended

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)
# Slow enough that a page can be reloaded in the middle of an answer.
MODEL = "offline:planner@40"
PATIENCE = 30_000

Enter = Callable[..., Page]


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the path of a Chromium; without one the journeys are skipped, in CI they fail."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found:
        return found
    missing = "No Chromium is installed, so no browser journey was run (apt-get install chromium)."
    if os.environ.get("CI") == "true" or os.environ.get("COUNTERSIGN_REQUIRE_BROWSER"):
        pytest.fail(missing)
    pytest.skip(missing)


@pytest.fixture(scope="session")
def product(chromium: str) -> Iterator[Launch]:
    """Return a started product with the sample data."""
    folder = Path(tempfile.mkdtemp(prefix="cs-web-", dir="/tmp"))
    folder.chmod(0o711)
    launch = Launch(folder, free_port(), CHAT_MODEL=MODEL)
    try:
        launch.wait_for("end with Ctrl-C")
        yield launch
    finally:
        launch.interrupt()
        launch.end()
        left = all_ended(folder)
        shutil.rmtree(folder, ignore_errors=True)
    assert left == []


# By module: while Playwright runs, Django takes the main thread for an asynchronous one.
@pytest.fixture(scope="module")
def browser(chromium: str, product: Launch) -> Iterator[Browser]:
    """Return a headless browser that reaches this machine alone."""
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture
def enter(browser: Browser, product: Launch) -> Iterator[Enter]:
    """Return a function that signs somebody in, in a browser context of their own."""
    contexts: list[BrowserContext] = []
    faults: list[str] = []

    def entered(who: str, **how: Any) -> Page:
        context = browser.new_context(
            base_url=f"http://127.0.0.1:{product.port}",
            viewport=how.pop("viewport", {"width": 1280, "height": 860}),
            reduced_motion="reduce",
            **how,
        )
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        # A refused inline script or style, and every error in ours, ends up here.
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on(
            "console",
            lambda message: (
                faults.append(message.text) if "Content Security" in message.text else None
            ),
        )
        page.goto("/login/")
        page.get_by_role("button", name=who).click()
        page.wait_for_url("**/")
        return page

    yield entered
    for context in contexts:
        context.close()
    assert faults == []
