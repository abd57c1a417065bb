import sys
from pathlib import Path

from . import complaints

said = complaints(Path(__file__).parents[2])
print(*said, sep="\n", end="\n" if said else "")
sys.exit(1 if said else 0)
