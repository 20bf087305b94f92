"""The audit: where its key lies, which is never in the database, and where its head is written."""

from config import env

# Empty: the head is logged and printed by `audit_head`, and no file is written.
AUDIT_HEAD_FILE = env.text("AUDIT_HEAD_FILE", "")
