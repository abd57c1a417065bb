"""An attack worked. Any error of the system's means that it was held back."""


class Through(Exception):
    pass
