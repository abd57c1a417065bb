"""What an attack raises when it worked; any error of the system's means that it was held back."""


class Through(Exception):
    pass
