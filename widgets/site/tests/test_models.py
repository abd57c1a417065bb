"""The zip of models: all that the simulators need, and the standard library does the rest."""

import io
import json
import subprocess
import sys
import zipfile

import pytest

from widgets.answer import answer
from widgets.registry import every, find
from widgets.site import models
from widgets.site.inside import reply
from widgets.site.tests.alike import same

ALONE = """
import json, sys
folder, names = sys.argv[1], sys.argv[2:]
sys.path[:0] = [folder]
for name in ("numpy", "torch", "triton", "anywidget", "IPython", "markdown_it", "jupytext"):
    sys.modules[name] = None
from widgets.site.inside import reply
import widgets
assert widgets.__file__.startswith(folder), widgets.__file__
print(json.dumps([json.loads(reply(name, "{}", "{}")) for name in names]))
"""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    with zipfile.ZipFile(io.BytesIO(models.zipped())) as archive:
        archive.extractall(folder)
    return folder


def test_every_simulator_answers_from_the_zip_alone(unpacked):
    names = [d.id for d in every()]
    command = [sys.executable, "-I", "-S", "-c", ALONE, str(unpacked), *names]
    done = subprocess.run(command, capture_output=True, text=True, cwd=unpacked)
    assert done.returncode == 0, done.stderr
    wanted = [json.loads(json.dumps(answer(d))) for d in every()]
    assert json.loads(done.stdout) == wanted


def test_only_what_is_needed_is_in_it(unpacked):
    held = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*.py")}
    assert {f"widgets/{d.slug}/{d.name}.py" for d in every()} <= held
    assert {"widgets/site/inside.py", "widgets/__init__.py", "kernels/__init__.py"} <= held
    assert not {name for name in held if "test" in name or name.endswith(("simulator.py", "reference.py"))}
    assert held == {path.as_posix() for path in models.modules()}


def test_a_table_that_a_model_reads_is_beside_it(unpacked):
    held = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*.json")}
    assert held == {path.as_posix() for path in models.beside()} and held
    shown = find("kbit_dispatch")
    for card in next(one for one in shown.controls if one.name == "card").stops:
        request = json.dumps({"values": {"card": card}})
        code = ALONE.replace('"{}", "{}"', f"{request!r}, '{{}}'")
        command = [sys.executable, "-I", "-S", "-c", code, str(unpacked), shown.id]
        done = subprocess.run(command, capture_output=True, text=True, cwd=unpacked)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == [json.loads(json.dumps(answer(shown, {"values": {"card": card}})))]


def test_the_same_texts_make_the_same_zip():
    assert models.zipped() == models.zipped()


def test_imports_inside_functions_are_left_alone(tmp_path):
    file = tmp_path / "one.py"
    file.write_text(
        "import math\nfrom kernels import require\nif True:\n    import json\n\ndef f():\n    import numpy\n"
    )
    assert list(models._names(file)) == ["math", "kernels.require", "json"]


def test_a_reply_is_the_answer_as_json():
    one = next(d for d in every() if d.prediction)
    given = {"start": one.inputs(), "locked": True}
    request = {"view": "v", "revision": 3, "values": one.inputs()}
    assert json.loads(reply(one.id, json.dumps(request), json.dumps(given)))["locked"]
    opened = json.loads(reply(one.id, json.dumps({**request, "guess": 1}), json.dumps(given)))
    assert opened["frames"] and opened["revision"] == 3 and opened["verdict"]


@pytest.mark.parametrize(
    "pair", [("68.9 ms", "68.8 ms"), ("1,024", "1,025"), ("2", "2.1"), ({"a": [1.0]}, {"a": [1.01]})]
)
def test_a_last_digit_counts_as_the_same(pair):
    same(*pair)


@pytest.mark.parametrize(
    "pair",
    [("68.9 ms", "68.7 ms"), ("1.5 s", "1.5 ms"), (1.0, 1.1), ({"a": 1}, {}), (None, "x"), (True, None)],
)
def test_more_than_that_does_not(pair):
    with pytest.raises(AssertionError):
        same(*pair)
