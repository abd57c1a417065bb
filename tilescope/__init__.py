"""Run Triton kernels without a GPU and see their accesses. Every access is checked, counted and ordered."""

from importlib import import_module

__version__ = "0.1.0"
__all__ = ["Finding", "LaunchError", "install", "show", "watch"]
HOMES = {
    "Finding": "findings",
    "LaunchError": "launcher",
    "install": "launcher",
    "show": "notebook",
    "watch": "watching",
}


def load_ipython_extension(shell) -> None:
    """`%load_ext tilescope` gives a notebook the cell magic %%tilescope."""
    import_module("tilescope.notebook").load_ipython_extension(shell)


def __getattr__(name: str):
    if name in HOMES:
        import_module("tilescope.versions").hold_triton()
        try:
            return getattr(import_module(f"tilescope.{HOMES[name]}"), name)
        except ModuleNotFoundError as error:
            if error.name in ("anywidget", "traitlets", "IPython"):
                raise ImportError(f"tilescope.{name} needs {error.name}. Run pip install anywidget") from None
            raise
    raise AttributeError(f"tilescope has no {name!r}, only {', '.join(__all__)}")
