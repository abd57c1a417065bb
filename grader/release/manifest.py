"""List a student edition's files by pattern. A file that no pattern names stays with the instructor."""

from fnmatch import fnmatch

ALLOWED = {
    "to set up and to start": (
        "Makefile",
        ".ci/run",
        ".ci/left_for_proofs.txt",
        ".ci/setup.py",
        ".gitattributes",
        ".gitignore",
        ".jupyter/*.py",
        ".jupyter/custom/*",
        ".jupyter/labconfig/*",
        "LICENSE",
        "LICENSE-TEXT",
        "conftest.py",
        "environment.yml",
        "nbgrader_config.py",
        "pyproject.toml",
        "requirements.in",
        "requirements.lock",
    ),
    "lessons, labs and simulators": ("course/**", "labs/**", "widgets/**", "view/**"),
    "formulas that lessons and simulators state, and recorded times": (
        "kernels/__init__.py",
        "kernels/machines.py",
        "kernels/parts.py",
        "kernels/require.py",
        "kernels/routing.py",
        "kernels/from_sources.py",
        "kernels/texts.py",
        "kernels/*/__init__.py",
        "kernels/*/cost.py",
        "kernels/*/cost_*.py",
        "kernels/*/*_tables.py",
        "kernels/*/results/**.json",
        "kernels/*/tables/*.json",
    ),
    "a router that trains while the reader watches, and routings of a model that was trained": (
        "kernels/expert_load_balance/beside_model.py",
        "kernels/expert_load_balance/cases.py",
        "kernels/expert_load_balance/toy_router.py",
        "kernels/tiny_model/__init__.py",
        "kernels/tiny_model/kept.py",
        "kernels/tiny_model/model.py",
        "kernels/tiny_model/kept/*",
    ),
    "a decode step in plain PyTorch, with slots for the learner's kernels, and a model that speaks": (
        "kernels/decode_step.py",
        "kernels/next_bottleneck/counted.py",
        "kernels/torch_grouped.py",
        *(
            f"kernels/next_bottleneck/{name}.py"
            for name in (
                "cache",
                "captured",
                "learner",
                "plain",
                "shapes",
                "slots",
                "step",
                "timeline",
                "weights",
            )
        ),
        *(f"kernels/speaking_model/{name}.py" for name in ("__init__", "kept", "tokens")),
        "kernels/speaking_model/kept/*",
    ),
    "the references of checks, in float64 numpy, which no kernel can use": (
        "kernels/*/reference.py",
        "kernels/sampling_fusion/philox.py",
        "kernels/sampling_fusion/requests.py",
        "kernels/*/rules.py",
    ),
    "what calibration times": ("kernels/bench/__init__.py", "kernels/bench/machine.py", "kernels/timing.py"),
    "what judges": (
        "grader/*.py",
        "grader/bench/**",
        "grader/box/**",
        "grader/capstone/**",
        "grader/compiler/**",
        "grader/jail/**",
        "grader/judge/**",
        "grader/machine/**",
        "tilescope/**",
        "grader/questions/**",
        "grader/notebooks/**",
    ),
    "the questions, with recorded results for those in numpy": (
        "grader/topics/__init__.py",
        "grader/topics/*/__init__.py",
        *(f"grader/topics/*/{name}.py" for name in ("lab", "bar", "shared*")),
        *(f"grader/topics/*/*/{name}.py" for name in ("__init__", "question", "cases", "mistakes")),
    ),
    "what looks at a machine": (
        "grader/tools/__init__.py",
        "grader/tools/doctor/*.py",
        "grader/tools/programs.py",
        "grader/tools/progress.py",
        *(f"grader/tools/gates/{name}.py" for name in ("__init__", "dependencies", "references", "tree")),
    ),
    "its own test": ("grader/tests/__init__.py", "grader/tests/test_works_here.py"),
}
STATED = (  # may share single lines with a solution, since a lesson or the page handing_out.md states them
    "course/**",
    "kernels/*/cost.py",
    "kernels/*/reference.py",
)
NEVER = (
    "*/tests/*",
    "tilescope/proofs/*",
    "*/answers/*",
    "grader/topics/*/shared_answers.py",
    "grader/topics/*/shared_concepts.py",
    "*/README.md",
    "widgets/screenshots.py",
)


def allowed(name: str) -> bool:
    """Return whether the file with this path, as posix, belongs unchanged to a student edition."""
    if name in ALLOWED["its own test"]:
        return True
    if any(fnmatch(name, pattern) for pattern in NEVER):
        return False
    return any(matches(name, pattern) for patterns in ALLOWED.values() for pattern in patterns)


def matches(name: str, pattern: str) -> bool:
    """Return whether a path fits a pattern. One star stays within a folder, two cross folders."""
    if "**" in pattern:
        return fnmatch(name, pattern.replace("**", "*"))
    return name.count("/") == pattern.count("/") and fnmatch(name, pattern)
