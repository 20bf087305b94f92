#!/usr/bin/env python
"""Run one management command against the running product, or say in a sentence what is missing."""

import os
import sys

START = "Start the product with `make run` in this folder first, or set {name}."


def main() -> int:
    """Run the command line; a lost database or Redis is a sentence, not a trace."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.demo")
    import django.db
    import kombu.exceptions
    import redis
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except django.db.OperationalError as error:
        # Only a failed connection has no SQLSTATE; anything else is a defect and keeps its trace.
        if getattr(error.__cause__, "sqlstate", None) is not None:
            raise
        print("The database does not answer. " + START.format(name="DATABASE_URL"), file=sys.stderr)
    except (redis.ConnectionError, redis.TimeoutError, kombu.exceptions.OperationalError):
        print("Redis does not answer. " + START.format(name="REDIS_URL"), file=sys.stderr)
    except ImproperlyConfigured as error:
        print(error, file=sys.stderr)
    else:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
