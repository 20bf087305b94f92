"""The seven things of the product, acted out from message to money with nothing faked."""
