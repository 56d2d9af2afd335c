"""The product's settings over a home folder that is the tests' own and goes when they end."""

import atexit
import os
import shutil
import tempfile

os.environ["LOCKSTEP_HOME"] = tempfile.mkdtemp(prefix="lockstep-tests-")
os.environ.pop("REDIS_URL", None)
os.environ["DATABASE_URL"] = os.environ.get("LOCKSTEP_TEST_DATABASE", "")  # a server that tests may make a database on
atexit.register(shutil.rmtree, os.environ["LOCKSTEP_HOME"], ignore_errors=True)

from dashboard.settings import *  # noqa: E402, F403

if not os.environ["DATABASE_URL"]:
    # A file, as in the product: in memory, a thread that still reads makes the next test's clean-up fail at once.
    DATABASES["default"]["TEST"] = {"NAME": os.path.join(os.environ["LOCKSTEP_HOME"], "tests.sqlite3")}  # noqa: F405

# Unit tests have no Redis; tests of the stack start the real one in processes of their own.
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # quick; no test is about hashing
