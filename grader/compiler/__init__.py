"""The compiler: Triton's own, boxed, on text that the machine printed; says what a kernel takes on a GPU that is not here."""
