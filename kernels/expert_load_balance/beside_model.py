"""Compare a run that `measure` recorded with the cost model, which predicts all other rows of a shape from two even ones."""

from collections.abc import Callable
from dataclasses import dataclass

from kernels.expert_load_balance import cost

NEAR = 0.15
FEWEST = 16  # tokens, for a step with almost none


@dataclass(frozen=True)
class Measured:
    run: dict
    loads_of_skew: Callable  # (skew, tokens, top_k, experts) -> loads
    place: Callable  # (how, loads, ranks) -> Placement

    @property
    def ranks(self) -> int:
        return self.run["ranks"]

    def found(self, shape: str, tokens: int, skew="even", placement="contiguous", parts="1") -> dict:
        wanted = (shape, tokens, skew, placement, parts)
        return next(
            r
            for r in self.run["rows"]
            if (r["shape"], r["tokens"], r["skew"], r["placement"], str(r["parts"])) == wanted
        )

    def even(self, r: dict) -> dict:
        """Return the row of the same number of tokens with even loads."""
        return self.found(r["shape"], r["tokens"])

    def skewed(self) -> list[dict]:
        return [r for r in self.run["rows"] if r["skew"] != "even" and str(r["parts"]) == "1"]

    def predicted_us(self, r: dict) -> float:
        """Predict a step: a fixed part, taken from a step with almost no tokens, and a time per pair of the busiest
        device."""
        fixed = self.found(r["shape"], FEWEST)["us"]
        for_picks = max(
            self.even(r)["us"] - fixed, 1e-3
        )  # where the host decides, the fewest can take longer
        loads = self.loads_of_skew(r["skew"], self.ranks * r["tokens"], r["top_k"], r["experts"])
        placed = self.place(r["placement"].removesuffix(", home first"), loads, self.ranks)
        token_s = self.ranks * for_picks / sum(loads)
        return cost.ep_step(loads, placed, self.ranks, token_s=token_s, fixed_s=fixed).step_s

    def off(self, r: dict) -> float:
        """Return how much longer than predicted, as a share, or 0 where it is near enough to need no reason."""
        more = r["us"] / self.predicted_us(r) - 1
        return more if abs(more) >= NEAR else 0.0

    def line(self, r: dict) -> str:
        more = self.off(r)
        return (
            f"{r['shape']:<13} {r['tokens']:>4} {r['skew']:<8} {r['placement']:<22} {r['us']:>6.0f} µs, "
            f"predicted {self.predicted_us(r):>6.0f}" + (f", off by {more:+.0%}" if more else "")
        )

    def stage(self, r: dict) -> str:
        """Name the stage that differs most from the even step's, by the slowest rank, so that waiting counts."""
        mine, even = r["stages_us"], self.even(r)["stages_us"]
        name = max(even, key=lambda name: abs(mine[name] - even[name]))
        return f"{name} {mine[name]:.0f} µs, even {even[name]:.0f}"

    def times_of(self, fewer: "Measured", r: dict) -> float:
        """Return the work done in a time, over that of a run on fewer devices with equally many tokens each."""
        return self.ranks / fewer.ranks * fewer.even(r)["us"] / r["us"]
