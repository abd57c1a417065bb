"""What of a simulator is seen together and said aloud, in a notebook as on a bare page."""

from playwright.sync_api import Locator, expect

from widgets.tests.browser.in_lab import scene_shown

ROOM = 680  # px: what a window of 1280 × 800 leaves a notebook of JupyterLab
IN_SIGHT = """root => {
  root.scrollIntoView({ block: 'start' });
  const top = root.getBoundingClientRect().top;
  const parts = '.tbt-question, .tbt-figures, .tbt-stage, .tbt-stepper, .tbt-caption, .tbt-control, .tbt-takeaway';
  const shown = [...root.querySelectorAll(parts)].filter(node => node.checkVisibility());
  return [Math.max(...shown.map(node => node.getBoundingClientRect().bottom)) - top, shown.length];
}"""


def question_and_answer_are_seen_together(root: Locator, simulator) -> None:
    """Question, figures, picture, steps, every control in view and the sentence to keep, without scrolling."""
    needed, seen = root.evaluate(IN_SIGHT)
    assert seen >= 4 + sum(not control.more for control in simulator.controls)
    assert needed <= ROOM, f"{needed:.0f} px of {ROOM}"


def in_plain_spaces(words: str) -> str:
    """A browser tells a screen reader of a narrow space as of any other."""
    return " ".join(words.split())


def a_screen_reader_is_told_the_story(root: Locator, simulator) -> None:
    """The accessibility tree alone: what it is, what it asks, the state, the sentence to keep, handles by name."""
    scene, tree = scene_shown(root, simulator), in_plain_spaces(root.aria_snapshot())
    for words in (simulator.question, scene.takeaway, *(f.text for f in scene.figures)):
        assert in_plain_spaces(words) in tree, words
    expect(root.get_by_role("img", name=scene.summary, exact=True)).to_have_count(1)
    labels = {control.name: control.label for control in simulator.controls}
    for mark in scene.marks:
        for one in mark.get("drag", ()):
            grip = root.get_by_role(
                "slider", name=f"{labels[one['input']]}, in the picture", exact=True
            ).first
            assert grip.get_attribute("aria-valuetext")
