"""What axe has to say of a page, in words."""

from axe_playwright_python.sync_playwright import Axe

COLOUR = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}


def broken_rules(page, context: str | None = None, colour_alone: bool = False) -> list[str]:
    """`colour_alone`: of a page that axe has seen in another look, for a look colours anew and lays nothing out anew."""
    options = {"resultTypes": ["violations"], **(COLOUR if colour_alone else {})}
    found = Axe().run(page, context=context, options=options).response["violations"]
    return [f"{v['id']}: {node['html'][:160]} {node['failureSummary']}" for v in found for node in v["nodes"]]
