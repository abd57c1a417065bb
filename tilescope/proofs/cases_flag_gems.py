"""List cases of flag_gems from torch's own samples of each operator, computed by flag_gems and by torch."""

from itertools import islice

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

MOST_SAMPLES = 5
DTYPES = torch.float32, torch.int32, torch.bool
TOLERANCE = {"rtol": 2e-3, "atol": 2e-4}
RANDOM = ("rand", "normal", "bernoulli", "dropout", "uniform", "exponential", "multinomial", "empty")


def cases(only: str):
    from torch.testing._internal.common_methods_invocations import op_db

    for op in op_db:
        if only not in op.name or any(word in op.name for word in RANDOM):
            continue
        name = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
        dtype = next((d for d in DTYPES if d in op.dtypes), None)
        samples = op.sample_inputs("cpu", dtype, requires_grad=False) if dtype else []
        for number, sample in enumerate(islice(samples, MOST_SAMPLES)):
            yield f"{name} {number}", case(op, sample)


class Gems(TorchDispatchMode):
    """Gives an operator of torch's to flag_gems, where it has one."""

    def __init__(self):
        import flag_gems

        super().__init__()
        self.own = {row[0]: row[1] for row in flag_gems._FULL_CONFIG}
        self.used = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name.split("::")[1]
        overload = func._schema.overload_name
        found = self.own.get(f"{name}.{overload}" if overload else name)
        if found is None:
            return func(*args, **(kwargs or {}))
        self.used.add(name)
        return found(*args, **(kwargs or {}))


def case(op, sample):
    def run() -> str:
        given = sample.input, sample.args, sample.kwargs
        copied = tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, given)
        wanted = op(sample.input, *sample.args, **sample.kwargs)
        mode = Gems()
        with torch.no_grad(), mode:
            got = op(copied[0], *copied[1], **copied[2])
        return same(wanted, got) if mode.used else ""

    return run


def same(wanted, got) -> str:
    """Return whether all tensors of two results are close."""
    one, other = tree_flatten(wanted)[0], tree_flatten(got)[0]
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if isinstance(a, torch.Tensor)]
    close = all(
        a.shape == b.shape and torch.allclose(a.double(), b.double(), equal_nan=True, **TOLERANCE)
        for a, b in pairs
        if not a.is_complex()
    )
    return "right" if close else "wrong"
