"""Use the simulators without a browser: python -m widgets list | run NAME input=value ..."""

import argparse
import json
import sys
from dataclasses import fields

from widgets.answer import plain_result
from widgets.controls import Control
from widgets.declare import Declaration
from widgets.registry import every, find

WRONG_USAGE = 64


def described(declaration: Declaration) -> dict:
    """Return what `list --json` publishes of one simulator."""
    inputs = [
        {
            "name": c.name,
            "label": c.label,
            "kind": c.kind,
            "default": c.default,
            "unit": c.unit,
            "rule": c.rule(),
            "help": c.help,
            **({"options": list(c.stops)} if c.kind == "select" else {}),
            **({"min": c.min, "max": c.max} if c.min is not None else {}),
        }
        for c in declaration.controls
    ]
    result = declaration.run(**declaration.inputs())
    return {
        "id": declaration.id,
        "slug": declaration.slug,
        "name": declaration.name,
        "title": declaration.title,
        "question": declaration.question,
        "inputs": inputs,
        "outputs": [f.name for f in fields(result)],
        "presets": {label: declaration.inputs(some) for label, some in declaration.presets.items()},
        "measures": declaration.measures,
        "source": declaration.source,
    }


def parsed(declaration: Declaration, pairs: list[str]) -> dict:
    """Parse input=value from the command line, in the type of its control."""
    known = {control.name: control for control in declaration.controls}
    values = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ValueError(f"input must be name=value, got {pair!r}; put an equals sign between them")
        values[name] = _read(known[name], text) if name in known else text
    return declaration.inputs(values)


def _read(control: Control, text: str):
    if control.kind == "toggle":
        return {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}.get(
            text.lower(), text
        )
    if control.kind == "select":
        return next((stop for stop in control.stops if str(stop) == text), text)
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def list_command(as_json: bool) -> None:
    if as_json:
        print(json.dumps([described(d) for d in every()], indent=1, ensure_ascii=False))
        return
    for declaration in every():
        print(f"{declaration.id}: {declaration.question}")
        for c in declaration.controls:
            print(f"    {c.name}={c.default}  {c.label}: {c.rule()}")


def run_command(name: str, pairs: list[str], as_json: bool) -> None:
    declaration = find(name)
    inputs = parsed(declaration, pairs)
    result = declaration.run(**inputs)
    scene = declaration.scenes(result)[-1]
    outputs = plain_result(result)
    if as_json:
        answer = {"id": declaration.id, "inputs": inputs, "outputs": outputs, "summary": scene.summary}
        print(json.dumps(answer, indent=1, ensure_ascii=False))
        return
    print(scene.summary)
    for row in (scene.table.header(), *scene.table.shown()):
        print("  " + "  ".join(f"{cell:>14}" for cell in row))


def _flag_last(words: list[str]) -> list[str]:
    """Move --json to the end, so that inputs may come before and after it, which argparse doesn't allow."""
    return sorted(words, key=lambda word: word == "--json")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m widgets", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    lister = commands.add_parser("list", help="every simulator: question, inputs with ranges and defaults")
    runner = commands.add_parser("run", help="one simulator's result")
    runner.add_argument("name")
    runner.add_argument("inputs", nargs="*", metavar="input=value")
    for command in (lister, runner):
        command.add_argument("--json", action="store_true")
    try:
        args = parser.parse_args(_flag_last(sys.argv[1:] if argv is None else argv))
    except SystemExit as stop:
        return WRONG_USAGE if stop.code else 0
    try:
        if args.command == "list":
            list_command(args.json)
        else:
            run_command(args.name, args.inputs, args.json)
    except ValueError as problem:
        print(problem, file=sys.stderr)
        return WRONG_USAGE
    return 0


if __name__ == "__main__":
    sys.exit(main())
