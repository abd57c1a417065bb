"""A measurement's file: numbers are short, and a run that is cut short keeps its parts."""

import json

import torch

from kernels.bench import kept, machine


def test_numbers_are_kept_with_four_digits():
    assert kept.dumps({"date": "today", "rows": [{"us": 1.234567}]}) == (
        '{\n  "date": "today",\n  "rows": [\n    {"us": 1.235}\n  ]\n}\n'
    )


def test_each_part_is_in_the_file_at_once(monkeypatch, tmp_path):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(machine, "describe", lambda device: {"gpu": "NVIDIA H200", "sms": 132})
    found = kept.begin([], tmp_path / "results")
    found.keep(first=1)
    found.keep(rows=[{"us": 2.0}])
    run = json.loads((tmp_path / "results" / "h200.json").read_text(encoding="utf-8"))
    assert run["machine"]["sms"] == 132 and run["first"] == 1 and run["rows"] == [{"us": 2.0}]
    assert kept.begin([str(tmp_path / "named.json")], tmp_path).path == tmp_path / "named.json"
