"""What the processor tells by itself, and its books held against ours."""
