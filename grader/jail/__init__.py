"""The program that runs beside student code. Its modules import one another and nothing else of ours,
because inside the box this folder is all there is of the project."""
