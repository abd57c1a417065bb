"""A browser that reaches this machine alone."""

import pytest

from grader.tools import programs


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Formgrader asks a server far away for MathJax; without a network its page would wait for the answer
        here = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", here]
        opened = playwright.chromium.launch(executable_path=programs.chromium(), args=options)
        yield opened
        opened.close()
