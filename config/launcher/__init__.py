"""`make run`: starts every part of the product on this machine, watches it, ends it in order."""
