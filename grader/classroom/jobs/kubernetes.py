"""Run on Kubernetes through dask-kubernetes' operator, as one DaskCluster whose pods run this course's own
commands."""

from pathlib import Path

PORT = 8786
KEYS = "/keys"
STRINGS = {"type": "object", "additionalProperties": {"type": "string"}}


def _object(required: list[str], **properties) -> dict:
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}


def _list(item: dict) -> dict:
    return {"type": "array", "items": item, "minItems": 1}


TEXT, NUMBER, YES = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
QUANTITIES = {"type": "object", "additionalProperties": {"type": "string", "pattern": r"^\d+(m|Gi)?$"}}
CONTAINER = _object(
    ["name", "image", "command", "args", "resources", "securityContext", "volumeMounts"],
    name=TEXT,
    image=TEXT,
    command=_list(TEXT),
    args=_list(TEXT),
    env=_list(_object(["name", "value"], name=TEXT, value=TEXT)),
    ports=_list(
        _object(
            ["name", "containerPort", "protocol"], name=TEXT, containerPort=NUMBER, protocol={"const": "TCP"}
        )
    ),
    readinessProbe=_object(["tcpSocket"], tcpSocket=_object(["port"], port=NUMBER), periodSeconds=NUMBER),
    resources=_object(["requests", "limits"], requests=QUANTITIES, limits=QUANTITIES),
    securityContext=_object(["allowPrivilegeEscalation"], allowPrivilegeEscalation={"const": False}),
    volumeMounts=_list(_object(["name", "mountPath"], name=TEXT, mountPath=TEXT, readOnly=YES)),
)
POD = _object(
    ["containers", "restartPolicy", "securityContext", "volumes", "automountServiceAccountToken"],
    containers=_list(CONTAINER),
    restartPolicy={"const": "Always"},
    automountServiceAccountToken={"const": False},  # nothing in the pod may speak to the cluster
    securityContext=_object(
        ["runAsNonRoot", "runAsUser"], runAsNonRoot={"const": True}, runAsUser=NUMBER, fsGroup=NUMBER
    ),
    nodeSelector=STRINGS,
    volumes=_list(
        _object(
            ["name"],
            name=TEXT,
            emptyDir={"type": "object"},
            secret=_object(["secretName", "defaultMode"], secretName=TEXT, defaultMode=NUMBER),
        )
    ),
)
SERVICE = _object(
    ["type", "selector", "ports"],
    type={"const": "ClusterIP"},
    selector=STRINGS,
    ports=_list(
        _object(
            ["name", "port", "protocol", "targetPort"],
            name=TEXT,
            port=NUMBER,
            protocol={"const": "TCP"},
            targetPort=TEXT,
        )
    ),
)
SCHEMA = _object(  # DaskCluster of kubernetes.dask.org/v1, as far as this course fills it
    ["apiVersion", "kind", "metadata", "spec"],
    apiVersion={"const": "kubernetes.dask.org/v1"},
    kind={"const": "DaskCluster"},
    metadata=_object(["name", "namespace"], name=TEXT, namespace=TEXT),
    spec=_object(
        ["worker", "scheduler"],
        worker=_object(["replicas", "spec"], replicas=NUMBER, spec=POD),
        scheduler=_object(["spec", "service"], spec=POD, service=SERVICE),
    ),
)


def made(wants: dict) -> dict:
    address = f"tls://{wants['name']}-scheduler.{wants['namespace']}.svc:{PORT}"
    gpu = {"nvidia.com/gpu": "1"} if wants["gpus"] else {}
    each = {"cpu": str(wants["cores"]), "memory": wants["memory"].removesuffix("B")} | gpu
    little = {"cpu": "1", "memory": "2Gi"}
    worker = _container(wants, "worker", each, ["worker", address, *(["--gpu", "given"] if gpu else [])])
    scheduler = _container(
        wants, "scheduler", little, ["scheduler", "--host", "0.0.0.0", "--port", str(PORT)]
    )
    scheduler |= {
        "ports": [{"name": "tcp-comm", "containerPort": PORT, "protocol": "TCP"}],
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 10},
    }
    key, _, value = wants["gpu_label"].partition("=")
    chosen = {"nodeSelector": {key: value}} if key else {}
    return {
        "apiVersion": "kubernetes.dask.org/v1",
        "kind": "DaskCluster",
        "metadata": {"name": wants["name"], "namespace": wants["namespace"]},
        "spec": {
            "worker": {"replicas": wants["workers"], "spec": _pod(worker, wants) | chosen},
            "scheduler": {"spec": _pod(scheduler, wants), "service": _service(wants["name"])},
        },
    }


def _container(wants: dict, name: str, resources: dict, arguments: list[str]) -> dict:
    return {
        "name": name,
        "image": wants["image"],
        "command": ["python", "-m", "grader", "farm"],
        "args": [*arguments, "--keys", KEYS],
        "env": [{"name": "HOME", "value": "/tmp"}],  # where a box's measurement and Triton's cache go
        "resources": {"requests": resources, "limits": resources},
        "securityContext": {"allowPrivilegeEscalation": False},
        "volumeMounts": [
            {"name": "keys", "mountPath": KEYS, "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }


def _pod(container: dict, wants: dict) -> dict:
    return {
        "containers": [container],
        "restartPolicy": "Always",
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "fsGroup": 1000},
        "volumes": [
            {"name": "keys", "secret": {"secretName": wants["secret"], "defaultMode": 0o440}},
            {"name": "tmp", "emptyDir": {}},
        ],
    }


def _service(name: str) -> dict:
    return {
        "type": "ClusterIP",
        "selector": {"dask.org/cluster-name": name, "dask.org/component": "scheduler"},
        "ports": [{"name": "tcp-comm", "port": PORT, "protocol": "TCP", "targetPort": "tcp-comm"}],
    }


def then(given: dict, path: Path) -> list[str]:
    space, name = f"--namespace {given['namespace']}", given["name"]
    return [
        "python -m grader farm keys",
        f"kubectl {space} create secret generic {given['secret']} --from-file work/class/keys",
        f"kubectl apply --filename {path}      (with dask-kubernetes' operator in the cluster)",
        f"kubectl {space} port-forward service/{name}-scheduler {PORT}:{PORT}",
        f"python -m grader class LAB --scheduler tls://127.0.0.1:{PORT}",
    ]
