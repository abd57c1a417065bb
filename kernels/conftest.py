"""Where there is no GPU, kernels are lowered by Triton's front end and run on the grader's machine, in this process."""

import torch

if not torch.cuda.is_available():
    from grader.machine import launcher

    launcher.install()
