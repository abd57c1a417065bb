"""A page of JupyterLab that shows some simulators, and what tests ask of one of them there.

Tests wait for the revision that an answer carries, never for time.
"""

from playwright.sync_api import Locator, Page, expect

from widgets.tests.browser import lab

expect.set_options(timeout=15_000)  # an upper bound for a busy machine: nothing sleeps so long
LATE_MS = 15_000


def opened(browser, served, simulators: list, asked: list, more: tuple[str, ...] = ()) -> Page:
    """A notebook with the simulators, then those of `asked` shut by their predictions; `more`: cells not yet run."""
    cells = ["from widgets import show"]
    cells += [f"show({d.id!r})" for d in simulators]
    cells += [f"show({d.id!r}, predict=True)" for d in asked]
    name = lab.notebook(served.folder, [*cells, *more])
    context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    page = context.new_page()
    lab.keep_sockets(page)
    page.base, page.folder = served
    page.simulators, page.asked = simulators, asked
    page.complaints, page.requests = [], []
    page.on("pageerror", lambda problem: page.complaints.append(str(problem)))
    page.on("request", lambda request: page.requests.append(request.url))
    lab.open_notebook(page, served.base, name)
    lab.run_each(page, len(simulators) + len(asked))
    expect(page.locator(".tbt[data-revision]")).to_have_count(len(simulators) + len(asked))
    return page


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
