"""Check that CHANGELOG.md lists the present version's changes and the steps that instructors must redo."""

import re
from pathlib import Path


def check(root: Path) -> list[str]:
    path = root / "CHANGELOG.md"
    if not path.exists():
        return ["CHANGELOG.md must be there, got none. Write what changed and what instructors must redo"]
    version = re.search(r'^version = "([^"]+)"', (root / "pyproject.toml").read_text(encoding="utf-8"), re.M)[
        1
    ]
    if not re.search(rf"^##\s+\[?v?{re.escape(version)}\b", path.read_text(encoding="utf-8"), re.M):
        return [f"CHANGELOG.md must have a section '## {version}', got none. Say what instructors must redo"]
    return []
