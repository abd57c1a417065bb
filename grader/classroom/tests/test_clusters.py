"""What is written for Slurm and Kubernetes fits their schemas, runs this course's commands, and wrong wishes are named."""

import pytest
import yaml

from grader.classroom.jobs import cluster, command, settings, slurm

NEEDED = {"slurm": [], "kubernetes": ["--image", "registry.example/course:1"]}


def written(kind: str, folder, *more: str) -> dict:
    assert command.main([kind, "--out", str(folder), *NEEDED[kind], *more]) == 0
    return yaml.safe_load((folder / cluster.KINDS[kind].file).read_text())


def arguments(made: dict) -> list[str]:
    """What a worker is started with, after `python -m`."""
    if "jobqueue" in made:
        own = made["jobqueue"]["slurm"]
        by_jobqueue = [
            "tls://10.0.0.5:1",
            "--name",
            "one",
            "--nthreads",
            "1",
            "--memory-limit",
            "16.00GiB",
            "--death-timeout",
            str(own["death-timeout"]),
            *own["worker-extra-args"],
            "--interface",
            "ib0",
            "--protocol",
            "tls://",
            "--tls-ca-file",
            "c",
            "--tls-cert",
            "c",
            "--tls-key",
            "k",
        ]
        return [*own["worker-command"].split(), *by_jobqueue]
    (one,) = made["spec"]["worker"]["spec"]["containers"]
    return [*one["command"][2:], *one["args"]]


@pytest.mark.parametrize("kind", cluster.KINDS)
@pytest.mark.parametrize("gpus", [0, 1])
def test_workers_are_this_courses_own_with_one_gpu_each(kind, gpus, tmp_path, monkeypatch, capsys):
    made = written(kind, tmp_path, "--gpus", str(gpus), "--workers", "3")
    said = capsys.readouterr().out
    assert "python -m grader farm keys" in said and "python -m grader class LAB --scheduler tls://" in said
    assert ("gpu" in yaml.safe_dump(made).replace("queue: gpu", "")) == bool(gpus), (
        "asked for where it is wanted"
    )
    assert arguments(made)[:3] == ["grader", "farm", "worker"]
    started = []
    from grader.classroom.jobs import processes

    monkeypatch.setattr(processes, "worker", lambda *a, **more: started.append(a))
    assert command.main(arguments(made)[2:]) == 0
    assert started[0][0].startswith("tls://") and started[0][2] == ("given" if gpus else None)


@pytest.mark.parametrize(
    "kind, options, words",
    [
        ("kubernetes", ["--image", ""], "image must be a container image"),
        ("kubernetes", ["--name", "Tile Farm"], "name must be of the DaskCluster, got 'Tile Farm'"),
        ("slurm", ["--workers", "0"], "workers must be workers, one answer at a time each, got 0"),
        ("slurm", ["--walltime", "soon"], "walltime must be"),
        ("slurm", ["--gres", "gpu:2"], "gres must be the request to Slurm for one GPU"),
        ("slurm", ["--memory", "16GB"], "memory must be"),
    ],
)
def test_a_wish_that_does_not_fit_is_named_and_nothing_is_written(kind, options, words, tmp_path, capsys):
    assert command.main([kind, "--out", str(tmp_path), *NEEDED[kind], *options]) == 64
    assert words in capsys.readouterr().err and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "kind, spoil, words",
    [
        ("slurm", lambda made: made["jobqueue"]["slurm"].update(cores=4), "jobqueue.slurm.cores"),
        ("slurm", lambda made: made["jobqueue"]["slurm"].update({"job-extra": []}), "jobqueue.slurm"),
        ("slurm", lambda made: made["jobqueue"]["slurm"].pop("walltime"), "walltime"),
        ("kubernetes", lambda made: made["spec"]["scheduler"].pop("service"), "service"),
        ("kubernetes", lambda made: made["spec"]["worker"]["spec"].update(hostNetwork=True), "hostNetwork"),
        ("kubernetes", lambda made: made["spec"]["worker"]["spec"]["securityContext"].update(runAsNonRoot=False), "True"),
    ],
)  # fmt: skip
def test_the_schema_refuses_what_the_cluster_would_not_understand(
    kind, spoil, words, tmp_path, monkeypatch, capsys
):
    kept = cluster.KINDS[kind]

    def spoiled(wants):
        made = kept.make(wants)
        spoil(made)
        return made

    monkeypatch.setitem(
        cluster.KINDS, kind, cluster.Kind(kept.options, spoiled, kept.schema, kept.file, kept.then)
    )
    assert command.main([kind, "--out", str(tmp_path), *NEEDED[kind]]) == 64
    assert words in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_slurm_without_its_package_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "dask_jobqueue", None)
    keys = settings.make_keys(tmp_path / "keys")
    assert command.main(["on-slurm", str(tmp_path / "jobqueue.yaml"), "--keys", str(keys)]) == 64
    assert slurm.PACKAGE in capsys.readouterr().err
