"""A page of JupyterLab that shows some simulators, and what tests ask of one of them there.

Tests wait for the revision that an answer carries, never for time.
"""

from playwright.sync_api import Locator, Page, expect

from widgets.tests.browser import lab

expect.set_options(timeout=60_000)  # an upper bound for a busy machine: nothing sleeps so long
LATE_MS = 60_000
WINDOW = {"width": 1280, "height": 800}
# What Lab throws on a busy machine, where a notebook is left before its kernel has answered Lab's own request.
LEFT_EARLY = "Canceled future for create_subshell_request message before replies were done"
FIRST = "from widgets import show\nshow('tile_walk')"
STEPS = "from widgets import show\nshow('fp8_accumulator')"
# The clock starts when Lab itself has heard of it: how long a server takes to stop a kernel is not ours.
SAID = """(words) => { let began = performance.now(); const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  for (const signal of [kernel.statusChanged, kernel.disposed]) signal.connect(() => { began = performance.now(); });
  window.said = new Promise(done => {
  const look = () => (document.querySelector('.tbt-over')?.checkVisibility() && document.querySelector('.tbt-over').textContent.includes(words)
    ? done(performance.now() - began) : setTimeout(look, 20));
  look();
}); }"""


def new_page(browser, served) -> Page:
    """A page of Lab, with the one picture of its first notebook: the first that this page and its kernel show."""
    context = browser.new_context(viewport=WINDOW, reduced_motion="reduce")
    page = context.new_page()
    lab.keep_sockets(page)
    page.base, _, page.folder = served
    page.complaints, page.requests = [], []
    page.on("pageerror", lambda problem: LEFT_EARLY in str(problem) or page.complaints.append(str(problem)))
    page.on("request", lambda request: page.requests.append(request.url))
    lab.open_notebook(page, served.base, lab.notebook(served.folder, [FIRST]))
    lab.run_all(page)
    page.first_picture_ms = page.wait_for_function("() => window.firstPictureMs", timeout=60_000).json_value()
    expect(page.locator("svg.tbt-scene").first).to_be_visible()
    return page


def opened(page: Page, simulators: list, asked: list, more: tuple[str, ...] = ()) -> Page:
    """There, a notebook with the simulators, then those of `asked` shut by their predictions; `more`: cells not yet run."""
    cells = ["from widgets import show"]
    cells += [f"show({d.id!r})" for d in simulators]
    cells += [f"show({d.id!r}, predict=True)" for d in asked]
    page.simulators, page.asked = simulators, asked
    page.notebook = lab.notebook(page.folder, [*cells, *more])
    lab.open_instead(page, page.notebook)
    lab.run_each(page, len(simulators) + len(asked))
    expect(page.locator(".tbt[data-revision]")).to_have_count(len(simulators) + len(asked))
    return page


def run_one(page: Page) -> None:
    """All cells of a notebook that shows one simulator."""
    lab.run_all(page)
    expect(page.locator(".tbt[data-revision]")).to_be_visible(timeout=60_000)


# By place: to search a page for a role, at every step of every test, takes most of a test's time.
def shown(page: Page, simulator) -> Locator:
    return page.locator(".tbt[data-revision]").nth(page.simulators.index(simulator))


def locked(page: Page, simulator) -> Locator:
    return page.locator(".tbt[data-revision]").nth(len(page.simulators) + page.asked.index(simulator))


def revision(root: Locator) -> int:
    return int(root.get_attribute("data-revision"))


def settled(root: Locator, at: int) -> None:
    """Seen in the frame that shows it: an expectation looks again only after 100 ms, then after 250 more."""
    root.page.wait_for_function(
        "([root, at]) => root.dataset.revision === at", arg=[root.element_handle(), str(at)], timeout=LATE_MS
    )


def arrived(page: Page, messages: list, many: int) -> None:
    """So many are there, or all that will be: on a busy machine a kernel rests long before it hears of its next."""
    for _ in range(LATE_MS // 50):
        if len(messages) >= many:
            return
        page.wait_for_timeout(50)


def figures(root: Locator) -> list[str]:
    return root.locator(".tbt-figures dd").all_inner_texts()


def drawn(root: Locator) -> list[str]:
    return root.locator("svg.tbt-scene > g").evaluate(
        "layer => [...layer.children].map(node => node.dataset.id)"
    )


def open_more(root: Locator) -> None:
    """The folded controls; open is open, whoever opened them."""
    more = root.locator(".tbt-more")
    if more.get_attribute("open") is None:
        more.get_by_text("More settings", exact=True).press("Enter")
    expect(more).to_have_attribute("open", "")


def scenes(simulator) -> list:
    return simulator.scenes(simulator.run(**simulator.inputs()))


def scene_shown(root: Locator, simulator, **inputs):
    """What should be seen at the step where the view stands: figures and marks may change from step to step."""
    result = simulator.run(**simulator.inputs(inputs))
    return simulator.scenes(result)[int(root.get_attribute("data-step"))]


def expected(root: Locator, simulator, **inputs) -> list[str]:
    return [figure.text for figure in scene_shown(root, simulator, **inputs).figures]


def pressed(control: Locator, key: str, root: Locator) -> None:
    """A key, and the answer to it."""
    before = revision(root)
    control.press(key)
    settled(root, before + 1)


def first_preset(root: Locator) -> Locator:
    return root.get_by_role("group", name="Presets").get_by_role("button").first


def back_to_the_first_preset(root: Locator) -> None:
    pressed(first_preset(root), "Enter", root)


def quiet(page: Page) -> None:
    """Nothing left this machine, and nothing was thrown."""
    elsewhere = [url for url in page.requests if not url.startswith((page.base, "data:", "blob:"))]
    assert not elsewhere and not page.complaints, (elsewhere, page.complaints)
