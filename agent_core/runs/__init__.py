"""The durable host of the core: conversations, runs, calls, events; claims, resumes, streams."""
