"""Compile the topic's kernel as it is launched, for GPUs that are not here; prints facts as JSON."""

import json

import torch

from kernels.roofline import spread_rows
from kernels.roofline.layernorm_gelu import layernorm_gelu
from kernels.tests.compiled import Found


def main():
    found = Found()
    for cols in (1024, 4096, 5120, 7168, 8192, 12288, 14336, 16384):
        x, vector = torch.empty(8, cols, dtype=torch.bfloat16), torch.empty(cols, dtype=torch.bfloat16)
        for target in (80, 89, 90, 100) if cols in (1024, 8192, 14336) else (90,):
            found.add(f"{cols} {target}", lambda x=x, v=vector: layernorm_gelu(x, v, v), target)
    for cols in (4096, 8192, 14336):
        x, vector = torch.empty(8, cols), torch.empty(cols)
        found.add(f"{cols} 90 fp32", lambda x=x, v=vector: layernorm_gelu(x, v, v), 90)
    for cols, spread in spread_rows.SPREADS.items():
        x, vector = torch.empty(8, cols, dtype=torch.bfloat16), torch.empty(cols, dtype=torch.bfloat16)
        for target in (90, 100) if cols in (16384, 65536) else (90,):
            found.add(
                f"spread {cols} {target}",
                lambda x=x, v=vector, c=spread: spread_rows.launch(x, v, v, 1e-5, x, c, 132),
                target,
            )
    print(json.dumps(found))


if __name__ == "__main__":
    main()
