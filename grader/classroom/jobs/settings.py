"""Set Dask for judging: one answer at a time per worker, no open port, no second guess at a verdict."""

import logging
from pathlib import Path

KEY, CERTIFICATE = "key.pem", "certificate.pem"
CONFIG = {
    "distributed.scheduler.allowed-failures": 2,  # deaths of workers that one answer may be near
    "distributed.scheduler.worker-ttl": "60s",  # without a heartbeat a worker hangs and is replaced
    "distributed.scheduler.worker-saturation": 1.0,  # nothing waits at a worker that could be judged elsewhere
    "distributed.scheduler.http.routes": [],  # no page, no numbers, no door
    "distributed.worker.http.routes": [],
    "distributed.worker.memory.target": False,  # boxes hold the memory, and have limits of their own
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.profile.enabled": False,
    "distributed.comm.timeouts.connect": "10s",
}


def apply(**more) -> None:
    """Apply the settings to this process and the workers it starts. `more`, such as worker_ttl="10s", sets a key of
    the scheduler's."""
    import dask
    import distributed  # noqa: F401  whose loggers have their levels once it is there

    for name in ("distributed", "tornado", "asyncio"):  # our own words report a scheduler that ends
        logging.getLogger(name).setLevel(logging.CRITICAL)
    own = {f"distributed.scheduler.{key.replace('_', '-')}": value for key, value in more.items()}
    dask.config.set(CONFIG | own)


def make_keys(folder: Path) -> Path:
    """Make a key and its certificate. Scheduler, workers and the class command all need them, and no other client is
    let in."""
    from distributed.security import Security

    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    made = Security.temporary()
    for name, text in ((KEY, made.tls_client_key), (CERTIFICATE, made.tls_ca_file)):
        path = folder / name
        path.touch(0o600)
        path.write_text(text, encoding="utf-8")
    return folder


def security(folder: Path):
    """TLS in which every side shows the one certificate."""
    from distributed.security import Security

    missing = [name for name in (KEY, CERTIFICATE) if not (folder / name).is_file()]
    if missing:
        raise ValueError(
            f"keys must be a folder with {KEY} and {CERTIFICATE}, got {folder} without {' and '.join(missing)}. "
            f"Make them with `python -m grader farm keys {folder}`, and put a copy on every machine"
        )
    files = {}
    for role in ("client", "scheduler", "worker"):
        files |= {f"tls_{role}_key": str(folder / KEY), f"tls_{role}_cert": str(folder / CERTIFICATE)}
    return Security(require_encryption=True, tls_ca_file=str(folder / CERTIFICATE), **files)


def tls(address: str) -> str:
    """Return the address, if only holders of the keys can use this address."""
    if not address.startswith("tls://"):
        raise ValueError(
            f"scheduler must be an address as tls://HOST:PORT, got {address!r}. Without TLS, anyone who reaches the port "
            "could run programs as you"
        )
    return address
