#!/usr/bin/env python
"""Django's command line, with Lockstep's own commands: up, launch, doctor, bench."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    try:
        from django.core.management import execute_from_command_line
    except ImportError:
        sys.exit("Lockstep's packages are not installed here: run `make setup`, then `.venv/bin/python manage.py …`.")
    from dashboard.conf import ConfigError

    try:
        execute_from_command_line(sys.argv)
    except ConfigError as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
