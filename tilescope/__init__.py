"""Run Triton kernels without a GPU, and see what they do: every access checked, counted and ordered."""

__version__ = "0.1.0"
__all__ = ["LaunchError", "install"]


def __getattr__(name: str):
    if name in __all__:
        from tilescope import launcher

        return getattr(launcher, name)
    raise AttributeError(f"tilescope has no {name!r}; it offers {', '.join(__all__)}")
