"""python -m grader.site.times [LAB ...]: check right answers in a tab of Chromium and keep their seconds in
seconds.json.

Seconds are those that the browser's processes computed. Others who work on the machine slow them down too, because
they share its caches, so the machine's load before and after is kept with them."""

import json
import os
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from grader.proofs.right import right
from grader.site import build
from grader.site.bundle import questions_of
from grader.site.tab import Tab, processor_s, served
from widgets.browser import chromium
from widgets.site import npm

KEPT = Path(__file__).with_name("seconds.json")


def of_lab(tab: Tab, lab: str) -> dict[str, dict]:
    """Check each question's stub and right answer in a lab. Return question -> {"stub", "right", "seconds",
    "text"}."""
    tab.open(lab)
    tab.live()
    browser, found = tab.page.context.browser, {}
    for question in questions_of(lab):
        stub = tab.press(question.name, "check")
        before = processor_s(browser)
        green = tab.answered(question.name, right(question.id))
        seconds = round(processor_s(browser) - before, 1)
        found[question.id] = {
            "stub": stub["verdict"],
            "right": green["verdict"],
            "seconds": seconds,
            "text": green["text"],
        }
    return found


def main(labs: list[str]) -> int:
    kept, busy = json.loads(KEPT.read_text(encoding="utf-8")), os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="site_") as folder:
        out = Path(folder)
        build.put(out, build.make(only=tuple(labs)))
        npm.unpack(out)
        build.compile_ahead(out)
        with served(out) as (base, _), chromium() as browser:
            for lab in labs or build.labs():
                page = browser.new_page()
                for name, row in of_lab(Tab(page, base), lab).items():
                    print(f"{name:<42} {row['stub']} {row['right']:<6} {row['seconds']:6.1f} s", flush=True)
                    if row["right"] not in ("PASS", "OPEN"):
                        print(row["text"][:1000])
                        continue
                    kept["seconds"][name] = row["seconds"]
                page.close()
                kept |= {
                    "date": datetime.now(UTC).date().isoformat(),
                    "load": [round(busy), round(os.getloadavg()[0])],
                }
                KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
