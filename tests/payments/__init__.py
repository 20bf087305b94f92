"""Tests of the payments."""
