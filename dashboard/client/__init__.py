"""The client for programs and shells: one file that runs anywhere, also served at /client/lockstep.py."""
