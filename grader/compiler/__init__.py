"""Compile the text that the machine printed with Triton's own compiler, boxed. It tells what a kernel costs on a GPU
that isn't here."""
