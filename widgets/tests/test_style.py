"""scene.css: a colour for every role, readable on every ground, and nothing else that decides on colours."""

import re

import pytest

from widgets import static
from widgets.scene import MARK_ROLES, ROLES, TEXT_ROLES

LAB_DARK = "#212121"  # what JupyterLab's dark theme puts under an output
GROUNDS = {"light": ("#ffffff",), "dark": (LAB_DARK, "#111111")}
PALETTE = static.palette()


def luminance(colour: str) -> float:
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_counted_right():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


def test_every_role_has_a_colour_and_a_class():
    coloured = ROLES - {"fade"}  # a gradient of the ground
    assert set(PALETTE) >= coloured
    for role in coloured:
        assert f".tbt .{role} {{ --tbt-role: var(--tbt-{role}); }}" in static.css()


def test_a_fade_is_a_gradient_of_the_ground():
    assert ".tbt-scene rect.fade { fill: var(--tbt-fill-fade);" in static.css()
    assert ".tbt-scene linearGradient stop { stop-color: var(--tbt-ground); }" in static.css()
    assert '<linearGradient id="{uid}-fade"' in static.defs()


@pytest.mark.parametrize("role", sorted(MARK_ROLES | TEXT_ROLES - {"inverse"}))
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_marks_and_their_labels_can_be_read(role, theme):
    """4.5:1, not 3:1, for marks as well: a label takes the colour of its mark."""
    colour = PALETTE[role][theme == "dark"]
    for ground in GROUNDS[theme] + (PALETTE["soft"][theme == "dark"],):
        assert contrast(colour, ground) >= 4.5, (role, theme, ground)


@pytest.mark.parametrize("role", sorted(MARK_ROLES))
@pytest.mark.parametrize("theme", [0, 1])
def test_text_on_a_solid_mark_can_be_read(role, theme):
    assert contrast(PALETTE["inverse"][theme], PALETTE[role][theme]) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axes_can_be_seen(theme):
    for ground in GROUNDS[theme]:
        assert contrast(PALETTE["axis"][theme == "dark"], ground) >= 3


def test_colours_stand_in_one_place():
    rest = static.css().split("color-scheme: light dark;", 1)[1]
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b", rest)
    assert not re.findall(r"#[0-9a-fA-F]{6}\b", static.javascript())


def test_forced_colours_and_reduced_motion_are_served():
    assert "forced-colors: active" in static.css() and "prefers-reduced-motion" in static.javascript()
    forced = static.css().split("forced-colors: active", 1)[1]
    for role in MARK_ROLES | {"ink", "muted"}:
        assert f"--tbt-{role}:" in forced, role


def test_the_view_fetches_nothing():
    for text in (static.css(), static.javascript().replace(static.javascript().split("\n")[0], "")):
        assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text) and "import " not in text.replace(
            "no import", ""
        )
