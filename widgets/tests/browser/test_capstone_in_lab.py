"""From lesson 07 to the model's first sentence, in a real JupyterLab and without a GPU: every lab's answers are the solutions'."""

import json
import shutil

import pytest
from playwright.sync_api import expect

from widgets.tests.browser import in_lab, lab

pytestmark = [pytest.mark.browser, pytest.mark.slow]
CAPSTONE = "work/07_next_bottleneck/capstone.ipynb"
SAYS = "The kernel is the same as the kernel"
RAN_MS = 600_000  # an upper bound for a busy machine; an idle one takes half a minute


@pytest.fixture
def learner(served, browser):
    """A page over a learner's folders, with all labs done but one."""
    for notebook in sorted((lab.ROOT / "solutions").glob("*/*.ipynb")):
        shutil.copy(notebook, served.project / "work" / notebook.parent.name / notebook.name)
    (served.project / "work/06_sampling_fusion/kernel.ipynb").write_bytes(
        (lab.ROOT / "labs/06_sampling_fusion/kernel.ipynb").read_bytes()
    )
    page = browser.new_context(viewport=in_lab.WINDOW, reduced_motion="reduce").new_page()
    page.base, page.project = served.base, served.project
    yield page
    page.context.close()


def outputs(notebook) -> str:
    """All text that the cells of a saved notebook show."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    shown = [one for cell in cells for one in cell.get("outputs", ())]
    assert not [one for one in shown if one["output_type"] == "error"], shown[-1]
    texts = [one.get("text") or one.get("data", {}).get("text/plain", "") for one in shown]
    return "\n".join("".join(text) for text in texts)


def test_from_the_lesson_to_the_sentence(learner):
    lab.open_notebook(learner, learner.base, "course/07_next_bottleneck/review.ipynb")
    panel = learner.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    panel.get_by_role("link", name="capstone", exact=True).click()
    learner.wait_for_function(f"() => {lab.PANEL}.context.path === '{CAPSTONE}'", timeout=60_000)
    learner.evaluate(lab.READY)
    learner.wait_for_function(lab.IDLE, timeout=60_000)
    lab.run_all(learner)
    expect(panel.locator(".jp-OutputArea-output", has_text=SAYS).first).to_be_visible(timeout=RAN_MS)
    learner.wait_for_function(lab.IDLE, timeout=RAN_MS)
    lab.save_and_stop(learner)
    said = outputs(learner.project / CAPSTONE)
    assert "PASS  next_bottleneck.residual_norm" in said and "PASS  next_bottleneck.rotary_cache" in said
    assert "not started in 06_sampling_fusion/kernel.ipynb" in said
    assert "the token is the same" in said and "share of the gap closed: " in said
