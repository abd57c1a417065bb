"""Run a script or a module with every launch of a Triton kernel checked (`tilescope script.py args`)."""

import argparse
import contextlib
import json
import runpy
import sys
import traceback
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path

from . import __version__, floors
from .asked import ON_REQUEST, SECONDS
from .findings import Finding
from .saved import BadFile, load, save
from .sources import place_of
from .versions import hindrance as hindrance_here

INTERRUPTED = 130  # the exit code of what Ctrl-C ends
WANTS_A_GPU = ("not compiled with CUDA", "No CUDA GPUs", "Found no NVIDIA driver", "NoDevice")
NO_GPU = (
    "something asked for a GPU. Make tensors on the CPU, leave timing out, and import a library that looks for a "
    "GPU while it is imported with --import NAME"
)


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line names. Return 1 if a finding is an error, else the script's own exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["open"]:
        return open_saved(arguments[1:])
    step = arguments[:1] == ["step"]
    made = parser(step)
    if not arguments[step:]:
        made.print_help(sys.stderr)
        return 2
    asked = made.parse_args(arguments[step:])
    for option in misplaced(made, asked):
        print(
            f"tilescope: {option} comes after {asked.target}, so {asked.target} gets the option. Put it before",
            file=sys.stderr,
        )
    if wrong := hindrance(asked):
        print(f"tilescope: {wrong}", file=sys.stderr)
        return 2

    for name in asked.first:
        try:
            import_module(name)
        except ImportError as error:
            print(f"tilescope: --import {name} failed ({error})", file=sys.stderr)
            return 2

    from .stepping import Stepping, Wanted

    stepping = Stepping(Wanted(asked.program, asked.kernel, asked.launch), texts=asked.texts)
    to_stdout = asked.json == "-"
    with (
        watched(asked, stepping if step or asked.save else None) as seen,
        contextlib.redirect_stdout(sys.stderr) if to_stdout else contextlib.nullcontext(),
    ):
        code = run(asked)
    if asked.lines:
        print(table(seen), file=sys.stderr)
    print(summary(seen), file=sys.stderr)
    if asked.json:
        text = json.dumps(as_dict(seen), indent=2)
        if to_stdout:
            print(text)
        else:
            Path(asked.json).write_text(text + "\n", encoding="utf-8")
    if asked.save:
        save(asked.save, as_dict(seen), seen.recording)
        print(f"tilescope: kept in {asked.save}. See it with tilescope open {asked.save}", file=sys.stderr)
    if step:
        told = step_through(stepping, asked)
        code = code or told
    return 1 if seen.errors and code != INTERRUPTED else code


def step_through(stepping, asked) -> int:
    """Show the recorded program. Return 2 if none was recorded."""
    from .terminal import show

    if stepping.recording is None:
        met = (
            f"the launches were {', '.join(stepping.refusals)}"
            if stepping.refusals
            else "nothing was launched"
        )
        print(f"tilescope: no launch matches the request ({stepping.wanted}), {met}", file=sys.stderr)
        return 2
    show(stepping.recording, asked.html, asked.open)
    return 0


def open_saved(arguments: list[str]) -> int:
    """Show the findings of a saved run and the steps of its recording (`tilescope open FILE`)."""
    from .terminal import show

    made = argparse.ArgumentParser("tilescope open", description="Look at a run that --save kept.")
    made.add_argument("file")
    add_page(made)
    asked = made.parse_args(arguments)
    if wrong := no_folder("html", asked.html):
        print(f"tilescope: {wrong}", file=sys.stderr)
        return 2
    try:
        run, recording = load(asked.file)
        findings = [Finding(**{k: v for k, v in f.items() if k != "severity"}) for f in run["findings"]]
    except (BadFile, KeyError, TypeError) as error:
        print(f"tilescope: {error}", file=sys.stderr)
        return 2
    seen = Saved(run["launches"], findings)
    print(summary(seen))
    if recording is not None:
        show(recording, asked.html, asked.open)
    return 1 if seen.errors else 0


@dataclass
class Saved:
    """The parts of a run that its summary needs."""

    launches: int
    findings: list[Finding]

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == "error"]


def watched(asked, stepping=None):
    """Watches what is run. Under pytest the plugin installs the launcher, after libraries are imported."""
    from .watching import collect, watch

    wanted, looks = {name: getattr(asked, name) for name in ON_REQUEST}, [stepping] if stepping else []
    if not runs_pytest(asked):
        return watch(*looks, seconds=asked.seconds, **wanted)
    given = [f"--tilescope-{name.replace('_', '-')}" for name, wants in wanted.items() if wants]
    quiet = ["-W", "ignore:Module already imported so cannot be rewritten:pytest.PytestAssertRewriteWarning"]
    asked.args = ["-p", "tilescope.pytest_plugin", "--tilescope", *quiet, *given, *asked.args]
    return collect(*looks, seconds=asked.seconds, **wanted)


def runs_pytest(asked) -> bool:
    return asked.module and asked.target == "pytest"


def hindrance(asked) -> str:
    """Return why nothing can be checked here, or an empty text."""
    if wrong := hindrance_here():
        return wrong
    if not asked.module and Path(asked.target).is_dir():
        return f"{asked.target!r} is a folder. Name a script in it"
    if not asked.module and not Path(asked.target).is_file():
        return f"there is no file {asked.target!r}"
    if not asked.module and Path(asked.target).suffix == ".tilescope":
        return f"{asked.target!r} is a saved run. See it with tilescope open {asked.target}"
    for option in ("json", "save", "html"):
        if wrong := no_folder(option, getattr(asked, option, None)):
            return wrong
    if getattr(asked, "open", False) and not asked.html:
        return "--open needs --html FILE, the page to open"
    return ""


def no_folder(option: str, name: str | None) -> str:
    """Return why a file can't be written, or an empty text."""
    if name in (None, "-") or Path(name).absolute().parent.is_dir():
        return ""
    return f"--{option} needs a file in a folder that exists, got {name!r}"


def misplaced(made: argparse.ArgumentParser, asked) -> list[str]:
    """Return tilescope's own options among a script's arguments."""
    own = {name for action in made._actions for name in action.option_strings if name.startswith("--")} - {
        "--help",
        "--version",
    }
    return [] if asked.module else [name for name in asked.args if name in own]


def program_ids(text: str) -> int | tuple[int, ...]:
    """Parse a program as typed: a number such as 5, or its ids on the grid's axes, such as 1,2 or 1,2,0."""
    try:
        ids = tuple(int(part) for part in text.strip("() ").split(","))
    except ValueError:
        ids = ()
    if not 1 <= len(ids) <= 3 or min(ids) < 0:
        raise argparse.ArgumentTypeError(f"must be a number such as 5 or ids such as 1,2, got {text!r}")
    return ids[0] if len(ids) == 1 else ids


def add_page(made: argparse.ArgumentParser) -> None:
    made.add_argument("--html", metavar="FILE", help="write the steps as a page, too")
    made.add_argument("--open", action="store_true", help="open that page in a browser")


def parser(step: bool = False) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        "tilescope step" if step else "tilescope",
        description="Run a script without a GPU, and check every launch of a Triton kernel.",
        epilog=None
        if step
        else "tilescope step script.py walks through one program. tilescope open FILE shows a saved run.",
    )
    made.set_defaults(program=None, kernel="", launch=None, texts=False)
    made.add_argument("--save", metavar="FILE", help="keep the run in a file, for tilescope open")
    if step:
        made.add_argument(
            "--program", metavar="P", type=program_ids, help="which program: 5, or 1,2 on two axes"
        )
        made.add_argument("--kernel", metavar="NAME", default="", help="the kernel of the launch")
        made.add_argument("--launch", metavar="N", type=int, help="the launch, counted from 0")
        made.add_argument(
            "--source-only", dest="texts", action="store_false", help="leave out Triton IR and PTX"
        )
        made.set_defaults(texts=True)
        add_page(made)
    made.add_argument("--version", action="version", version=f"tilescope {__version__}")
    made.add_argument(
        "--json", metavar="FILE", help="also write the findings there, or to standard output with -"
    )
    made.add_argument(
        "--seconds",
        metavar="S",
        type=float,
        help=f"of processor time that a launch may take, {SECONDS:g} if not said",
    )
    made.add_argument(
        "--lines", action="store_true", help="print the bytes and the arithmetic of each source line"
    )
    for name, what in ON_REQUEST.items():
        made.add_argument(f"--{name.replace('_', '-')}", action="store_true", help=what)
    early = "import a library before Triton sees a GPU, for libraries that look for a GPU during their import"
    made.add_argument("--import", dest="first", metavar="NAME", action="append", default=[], help=early)
    made.add_argument("-m", dest="module", action="store_true", help="run a module, as python -m does")
    made.add_argument("target", metavar="script.py", help="a script, or with -m a module")
    args = made.add_argument("args", nargs=argparse.REMAINDER, help="the script's own arguments")
    args.required = False  # or a missing script would be reported as "script.py, args"
    return made


def run(asked) -> int:
    """Run the script as Python would. Return its exit code, or 1 if it raised."""
    kept = sys.argv, sys.path[:]
    sys.argv = [asked.target, *asked.args]
    sys.path.insert(0, "" if asked.module else str(Path(asked.target).resolve().parent))
    try:
        if asked.module:
            runpy.run_module(asked.target, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(asked.target, run_name="__main__")
    except SystemExit as end:
        return code_of(end)
    except KeyboardInterrupt as stop:
        told = getattr(stop, "__notes__", [])  # where the kernel was that ran
        print(f"\ntilescope: {told[0]}" if told else traceback.format_exc(), file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        traceback.print_exc()
        if any(words in str(error) for words in WANTS_A_GPU):
            print(f"tilescope: {NO_GPU}", file=sys.stderr)
        return 1
    finally:
        sys.argv, sys.path[:] = kept
    return 0


def code_of(end: SystemExit) -> int:
    """Return the exit code that Python makes of a SystemExit. A text is printed and means 1."""
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return int(end.code)
    print(end.code, file=sys.stderr)
    return 1


def as_dict(seen) -> dict:
    """Return the object that --json writes."""
    return {
        "tilescope": __version__,
        "launches": seen.launches,
        "findings": [finding.as_dict() for finding in seen.findings],
        "lines": [
            {
                "file": row.file,
                "kernel": row.kernel,
                "line": row.line,
                "kind": row.kind,
                "tensors": sorted(row.tensors),
                "requested": row.requested,
                "fetched": row.fetched,
                "sectors": row.sectors,
                "useful": row.useful,
                "masked_off": row.masked_off,
            }
            for row in seen.lines
        ],
        "work": [asdict(row) for row in seen.work],
        "bytes": {name: asdict(moved) for name, moved in seen.bytes.items()},
        "kernels": {
            name: {
                "launches": kernel.launches,
                "floor": kernel.floor,
                "limit": kernel.limit,
                "seconds": kernel.seconds,
            }
            for name, kernel in seen.kernels.items()
        },
    }


def summary(seen) -> str:
    """Return every finding in a line of its own, errors first, and then their number."""
    errors = seen.errors
    warnings = [finding for finding in seen.findings if finding not in errors]
    launches, wrong = counted(seen.launches, "launch", "launches"), counted(len(errors), "error", "errors")
    end = f"tilescope: {launches}, {wrong}, {counted(len(warnings), 'warning', 'warnings')}"
    if not seen.launches:
        end += ". Was a kernel meant to run?"
    return "\n".join([*map(str, errors), *map(str, warnings), end])


def counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def table(seen) -> str:
    """Return tables of each source line's bytes and arithmetic, of each tensor's bytes, and of each kernel's least
    time."""
    rows = [f"{'line':>6} {'':6} {'requested':>14} {'fetched':>14} {'useful':>7} {'masked off':>11}  kernel"]
    for row in seen.lines:
        rows.append(
            f"{row.line:6} {row.kind:6} {row.requested:14,} {row.fetched:14,} {row.useful:7.0%} "
            f"{row.masked_off:11.1%}  {row.kernel} ({Path(place_of(row.file, None)).name})"
        )
    rows += ["", f"{'line':>6} {'':6} {'operations':>14} {'FLOP of dots':>14} {'':19}  kernel"]
    for row in seen.work:
        rows.append(
            f"{row.line:6} {'':6} {row.operations:14,} {row.flops:14,} {'':19}  {row.kernel} "
            f"({Path(place_of(row.file, None)).name})"
        )
    rows += ["", f"{'':6} {'':6} {'requested':>14} {'distinct':>14} {'by wave':>19}  tensor"]
    for name, moved in sorted(seen.bytes.items()):
        for kind, counts in vars(moved).items():
            if counts.requested:
                bytes_of = f"{counts.requested:14,} {counts.unique:14,} {counts.wave:19,}"
                rows.append(f"{'':6} {kind:6} {bytes_of}  {name}")
    return "\n".join([*rows, "", *(floors.said(*pair) for pair in seen.kernels.items())])
