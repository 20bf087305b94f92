"""What keeps the product from starting, as a sentence for the person at the terminal."""


class CannotStart(Exception):
    """The product cannot start or go on; the message is one sentence without a trace."""
