"""Every item of the course's sources has a section that says its words."""

from pathlib import Path

from kernels import from_sources


def check(root: Path) -> list[str]:
    course = root / "course"
    if not (course / from_sources.TABLE).exists():
        return [f"course/{from_sources.TABLE} must be there, got none. It names each item's section"]
    return from_sources.complaints(course)
