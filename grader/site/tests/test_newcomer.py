"""A newcomer's way through three labs of the site, in Chromium and in Firefox: first kernels, a product, a softmax; away and back;
and the notebooks that the browser saves get the same points from the grader."""

import json

import pytest

from grader import questions
from grader.__main__ import main as grader
from grader.judge import referee
from grader.paths import ROOT
from grader.proofs import wrong
from grader.proofs.right import right
from grader.site.inside import PART
from grader.site.tests.conftest import site
from grader.tools import programs
from widgets.browser import chromium
from widgets.site.tests.firefox import firefox

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("no_jails_left"),
    pytest.mark.skipif(not (ROOT / "solutions").exists(), reason="solutions/, which is not handed out"),
]
WAY = {
    "00_roofline/first_kernels": ("doubled", "differences", "subtracted"),
    "01_gemm_tiling/kernel": ("tiled_gemm",),
    "05_flash_attention/concepts": ("online_softmax",),
}
READY = "() => document.documentElement.dataset.lab === 'ready'"
WRITE = "(name, text) => { tileLab.editors.get(name).text = text; }"
TEXT = "name => tileLab.editors.get(name).text"
CHECK = "name => document.querySelector(`[data-cell=${name}] .check`).click()"
DONE = "name => document.querySelector(`[data-cell=${name}] .stop`).hidden"
OUT = """name => {
  const out = document.querySelector(`[data-cell=${name}] .lab-out`);
  return { verdict: out.dataset.verdict, text: out.innerText };
}"""
TOTAL = "() => document.querySelector('.lab-total').innerText"
ASK = "async request => (await tileLab.ask(request, () => {})).answer"
SAVED = """async () => {
  const blob = new Promise(resolve => { URL.createObjectURL = made => { resolve(made); return '#'; }; });
  document.querySelector('.lab-save').click();
  return (await blob).text();
}"""
SECONDS = 1200.0


class InChromium:
    """What Firefox's page does (widgets.site.tests.firefox), done by Chromium."""

    def __init__(self, page):
        self.page = page

    def open(self, url: str) -> None:
        self.page.goto(url)

    def ask(self, function: str, *given):
        return self.page.evaluate(f"given => ({function})(...given)", list(given))

    def wait(self, function: str, *given, seconds: float):
        self.page.wait_for_function(
            f"given => ({function})(...given)", arg=list(given), timeout=1000 * seconds
        )


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    with site(tmp_path_factory.mktemp("walk"), tuple(WAY)) as (address, _):
        yield address


@pytest.fixture(
    params=[
        pytest.param("chromium", marks=pytest.mark.browser),
        pytest.param("firefox", marks=pytest.mark.firefox),
    ]
)
def page(request):
    if request.param == "firefox":
        with firefox(programs.firefox()) as page:
            yield page
    else:
        with chromium(programs.chromium()) as browser:
            yield InChromium(browser.new_page())


def test_a_newcomer_solves_leaves_comes_back_and_hands_in(base, page, tmp_path, capsys, record_property):
    points = {}
    for lab, names in WAY.items():
        page.open(f"{base}/labs/{lab}.html")
        page.wait(READY, seconds=SECONDS)
        for name in names:
            page.ask(WRITE, name, right(f"{lab[3:].partition('/')[0]}.{name}"))
            page.ask(CHECK, name)
            page.wait(DONE, name, seconds=SECONDS)
            points[name] = page.ask(OUT, name)
            assert points[name]["verdict"] == ("OPEN" if name == "tiled_gemm" else "PASS"), points[name]
    assert "open" in points["tiled_gemm"]["text"]
    for lab, names in WAY.items():
        page.open("about:blank")
        page.open(f"{base}/labs/{lab}.html")
        page.wait(READY, seconds=SECONDS)
        assert page.ask(TOTAL).startswith("So far ")
        saved = tmp_path / f"{lab.replace('/', '_')}.ipynb"
        saved.write_text(page.ask(SAVED), encoding="utf-8")
        for name in names:
            question = f"{lab[3:].partition('/')[0]}.{name}"
            assert page.ask(TEXT, name) == right(question)
            grader(["check", question, str(saved), "--json"])
            told = json.loads(capsys.readouterr().out)
            here = points[name]["text"]
            asked = questions.find(question)
            worth = sum(part.points for part in asked.parts if part.judged_by("cpu") != "compiled")
            assert told["verdict"] == "PASS" and told["points"] == asked.points, told
            assert f"{worth:g} of {asked.points:g} points" in here, here


def test_ten_wrong_answers_are_told_as_in_a_notebook(base, page):
    lab = "00_roofline/first_kernels"
    page.open(f"{base}/labs/{lab}.html")
    page.wait(READY, seconds=SECONDS)
    for name in ("doubled", "differences", "subtracted", "turned", "sum_and_max"):
        question = questions.find(f"roofline.{name}")
        for row in list(wrong.table(question).values())[:2]:
            source = wrong.source(question, row)
            told = page.ask(ASK, {"what": "check", "question": question.id, "source": source, "seed": 28})
            verdict = referee.grade_one(source, question, seed=28)
            assert told["parts"] == [{key: getattr(part, key) for key in PART} for part in verdict.parts]
            assert told["verdict"] == "FAIL"
