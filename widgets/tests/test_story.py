"""Every story link in lessons and labs sets a state that its simulator has."""

from pathlib import Path

import pytest

from widgets.story import links, wrong

ROOT = Path(__file__).parents[2]
TEXTS = [path for room in ("course", "solutions") for path in sorted((ROOT / room).rglob("*.md"))]


@pytest.mark.parametrize(
    "link, why",
    [
        ("#set/tile_walk?m=1", ""),
        ("#set/gemm_tiling.tile_walk?reset&m=4096&step=2", ""),
        ("#set/sampling_chain?graph=true&top_p=false", ""),
        ("#set/backend_dispatcher?kv_dtype=16-bit", ""),
        ("#set/tile_wlak?m=1", "did you mean 'tile_walk'"),
        ("#set/tile_walk?rows=1", "input must be one of"),
        ("#set/tile_walk?m=0", "must be a whole number from 1"),
        ("#set/tile_walk?step=99", "step must be from 0 to 31, got '99'"),
        ("#set/backend_dispatcher?kv_dtype=fp32", "must be one of"),
    ],
)
def test_a_link_is_judged_as_the_view_would_follow_it(link, why):
    ((name, asked),) = links(f"Now [look here]({link}).")
    assert (why in wrong(name, asked)) if why else not wrong(name, asked)


def test_every_link_of_lessons_and_labs_sets_what_it_says():
    assert TEXTS
    found = {
        f"{path.name}: {name} {asked}": wrong(name, asked)
        for path in TEXTS
        for name, asked in links(path.read_text(encoding="utf-8"))
    }
    assert not {where: why for where, why in found.items() if why}
