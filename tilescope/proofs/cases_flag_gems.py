"""Cases of flag_gems: torch's own samples of each operator, computed by flag_gems and by torch."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

MOST_SAMPLES = 3
TOLERANCE = {"rtol": 2e-3, "atol": 2e-4}
RANDOM = ("rand", "normal", "bernoulli", "dropout", "uniform", "exponential", "multinomial", "empty")


def cases(only: str):
    from torch.testing._internal.common_methods_invocations import op_db

    for op in op_db:
        if only in op.name and not any(word in op.name for word in RANDOM):
            for dtype in (torch.float32, torch.int32, torch.bool):
                if dtype in op.dtypes:
                    yield (
                        op.name + ("." + op.variant_test_name if op.variant_test_name else ""),
                        case(op, dtype),
                    )
                    break


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


def case(op, dtype):
    def run() -> str:
        worst = ""
        for number, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=False)):
            if number == MOST_SAMPLES:
                break
            copied = tree_map(
                lambda x: x.clone() if isinstance(x, torch.Tensor) else x,
                (sample.input, sample.args, sample.kwargs),
            )
            wanted = op(sample.input, *sample.args, **sample.kwargs)
            mode = Gems()
            with torch.no_grad(), mode:
                got = op(copied[0], *copied[1], **copied[2])
            if mode.used:
                worst = worst if worst == "wrong" else same(wanted, got)
        return worst

    return run


def same(wanted, got) -> str:
    """Whether all tensors of two results are close."""
    one, other = tree_flatten(wanted)[0], tree_flatten(got)[0]
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if isinstance(a, torch.Tensor)]
    close = all(
        a.shape == b.shape and torch.allclose(a.double(), b.double(), equal_nan=True, **TOLERANCE)
        for a, b in pairs
        if not a.is_complex()
    )
    return "right" if close else "wrong"
