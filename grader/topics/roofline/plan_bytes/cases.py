"""Draw the inputs of *plan bytes* and limit their cost."""

from kernels.roofline import cost


def plan_bytes(groups: list[int], rows: int, width: int, elem_bytes: float) -> tuple[float, float]:
    """Bytes that a chain moves when it is cut into these kernels, and how many fewer than one kernel an operation."""
    plan, single = (
        cost.chain_traffic(kernels, rows, width, elem_bytes).unfused_bytes
        for kernels in (len(groups), sum(groups))
    )
    return plan, single - plan
