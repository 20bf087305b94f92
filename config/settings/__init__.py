"""Settings by concern; `demo`, `test` and `production` are the three that a process may name."""
