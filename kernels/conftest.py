"""Where there is no GPU, kernels run in Triton's interpreter: that must be said before triton is imported."""

import os
import sys
from pathlib import Path

import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
    sys.path.append(str(Path(__file__).parents[1] / "grader" / "jail"))
    import interpreter  # bf16 and fp8 as a GPU computes them

    interpreter.install()
    interpreter.patch_everywhere()  # tl's own device functions too, for the whole session
