"""The test suite, one folder a kind or part."""
