"""Convert numpy arrays (bf16 and fp8 as ml_dtypes) to torch tensors and back, bit for bit."""

import ml_dtypes
import numpy as np
import torch

DTYPES = {
    "fp32": np.dtype(np.float32),
    "fp16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "fp8": np.dtype(ml_dtypes.float8_e4m3fn),
    "fp8_e5m2": np.dtype(ml_dtypes.float8_e5m2),
}
_NO_NUMPY = {
    DTYPES["bf16"]: (torch.bfloat16, np.int16, torch.int16),
    DTYPES["fp8"]: (torch.float8_e4m3fn, np.uint8, torch.uint8),
    DTYPES["fp8_e5m2"]: (torch.float8_e5m2, np.uint8, torch.uint8),
}


def to_torch(array: np.ndarray, device="cpu") -> torch.Tensor:
    """Return a tensor with the same values, always contiguous and always a copy."""
    array = np.array(array, order="C")
    if array.dtype in _NO_NUMPY:
        dtype, bits, _ = _NO_NUMPY[array.dtype]
        return torch.from_numpy(array.view(bits)).view(dtype).to(device)
    return torch.from_numpy(array).to(device)


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    tensor = tensor.detach().cpu()
    for numpy_dtype, (dtype, bits, torch_bits) in _NO_NUMPY.items():
        if tensor.dtype == dtype:
            return tensor.contiguous().view(torch_bits).numpy().astype(bits, copy=False).view(numpy_dtype)
    return tensor.numpy()


def laid_out(tensor: torch.Tensor, how: str) -> torch.Tensor:
    """Return the same matrix with other strides in memory. The gaps between its elements hold NaN."""
    rows, cols = tensor.shape
    if how == "rows":
        return tensor.contiguous()
    if how == "columns":
        return tensor.t().contiguous().t()
    homes = {"padded": (cols + 8, slice(0, cols)), "every second": (2 * cols, slice(0, None, 2))}
    if how not in homes:
        raise ValueError(
            f"how must be rows, columns or one of {', '.join(homes)}, got {how!r}; name a layout"
        )
    width, place = homes[how]
    home = torch.full((rows, width), float("nan"), device=tensor.device).to(tensor.dtype)
    home[:, place] = tensor
    return home[:, place]


def rows_aligned(x) -> bool:
    """Say whether rows are contiguous and start on 16 bytes, as the copy engine wants them."""
    return x.stride(1) == 1 and x.stride(0) * x.itemsize % 16 == 0 and x.data_ptr() % 16 == 0
