"""Check that the table of questions and the notebooks agree. Each question needs its check, and each check its row."""

from pathlib import Path

from . import rooms


def check(root: Path, questions: dict | None = None) -> list[str]:
    """`questions` is the table by id, by default the project's own."""
    from grader.notebooks import make, text

    if questions is None:
        from grader.questions import load

        questions = load()
    asked, said = {}, []
    for path in make.sources(root, []):
        if path.parts[0] != "solutions":
            continue
        notebook, _ = text.read((root / path).read_text(encoding="utf-8"), lambda name: 0)
        for cell in notebook.cells:
            if cell.id.startswith("check_"):
                name = f"{make.topic(path)}.{cell.id.removeprefix('check_')}"
                asked[name] = path.as_posix()
                if name not in cell.source:
                    said.append(
                        f"{path.as_posix()}: {cell.id} must check({name!r}), got {cell.source.strip()!r}"
                    )
    awaited = (
        {topic.slug for topic in rooms.topics(root) if topic.to_come}
        if (root / "README.md").exists()
        else set()
    )
    for name, question in questions.items():
        if name.split(".")[0] in awaited and not any(root.glob(f"solutions/*_{question.slug}")):
            continue  # the kernel came first, and README says that its labs are to come
        place = f"solutions/{question.notebook_path.removesuffix('.ipynb')}.md"
        if asked.get(name) != place:
            said.append(f"{place}: {name} is in the table of questions and must have its check here")
    extra = sorted(set(asked) - set(questions))
    return said + [
        f"{asked[name]}: check={name} must be in the table of questions, got no row" for name in extra
    ]
