"""Say what is here to measure on: a GPU or none, and which one."""

NO_GPU = 3  # the exit code without one


def has_gpu(done: str = "measured") -> bool:
    """Return whether PyTorch finds a GPU. Print what was not done if it finds none."""
    import torch

    if not torch.cuda.is_available():
        print(f"PyTorch finds no NVIDIA GPU here, so nothing was {done}; run this where there is one.")
    return torch.cuda.is_available()


def about(device) -> dict:
    """Return what every record begins with: the machine, the versions and the date."""
    from kernels.bench import machine

    return {"machine": machine.describe(device), "versions": machine.versions(), "date": machine.today()}
