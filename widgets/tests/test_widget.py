"""The widget: one answer for a request, and a picture that needs no view in a saved notebook."""

from html.parser import HTMLParser

import pytest

import widgets
from widgets.registry import every, find

VOID = {"meta", "br", "input"}


class Balanced(HTMLParser):
    """Counts tags, and fails on one that closes what is not open."""

    def __init__(self):
        super().__init__()
        self.open, self.count = [], {}

    def handle_starttag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def saved(widget) -> str:
    return widget._repr_mimebundle_()[0]["text/html"]


def test_a_request_has_one_answer_with_its_revision():
    widget = widgets.show("tile_walk")
    heard = []
    widget.observe(lambda change: heard.append(change["new"]), "answer")
    widget.request = {"view": "a", "revision": 1, "values": {**widget.values, "m": 1}, "guess": None}
    widget.request = {"view": "a", "revision": 2, "values": {**widget.values, "m": 1}, "guess": None}
    assert [(got["view"], got["revision"]) for got in heard] == [("a", 1), ("a", 2)]
    assert widget.values["m"] == 1 and widget.result.reuse_flop_per_element < 2


def test_bad_values_leave_the_widget_alive():
    widget = widgets.show("gemm_tiling.tile_walk", m=64)
    widget.request = {"view": "a", "revision": 1, "values": {"m": None}}
    assert "must be" in widget.answer["error"]
    widget.request = {"view": "a", "revision": 2, "values": {"m": 1}}
    assert "frames" in widget.answer


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: widgets.show("tile_wlak"), "did you mean 'tile_walk'"),
        (lambda: widgets.show("roofline.tile_walk"), "simulator must be one of"),
        (lambda: widgets.show("tile_walk", m=0), "must be a whole number from 1"),
        (lambda: widgets.show("tile_walk", rows=2), "input must be one of"),
        (
            lambda: widgets.show("attention_state", measured={"seconds": 1}),
            "measured must hold one of bytes_moved",
        ),
        (lambda: widgets.show("fp8_accumulator", measured={"seconds": 1}), "measured must be left out"),
        (
            lambda: widgets.show("attention_state", measured={"bytes_moved": 0.0}),
            "must be a positive number",
        ),
    ],
)
def test_a_wrong_call_says_what_is_right(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("simulator", every(), ids=lambda d: d.id)
def test_a_saved_notebook_shows_picture_and_table_without_a_view(simulator):
    html = saved(widgets.show(simulator.id))
    parsed = Balanced()
    parsed.feed(html)
    assert not parsed.open
    assert parsed.count["svg"] == 2, "one for a column, one for a phone"
    assert parsed.count["table"] == 1 and "script" not in parsed.count
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")


def test_a_saved_locked_notebook_keeps_the_answer():
    html = saved(widgets.show("tile_walk", predict=True))
    assert "2.68" not in html and find("tile_walk").prediction.question in html


def test_two_saved_pictures_do_not_share_ids():
    one, other = saved(widgets.show("tile_walk")), saved(widgets.show("tile_walk"))
    assert one != other
