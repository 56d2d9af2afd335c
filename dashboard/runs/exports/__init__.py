"""What a run recorded, for other programs: traces, tables, and a page that needs no server.

Each is written a segment at a time to a file in the run's folder, so that memory does not grow with the run.
"""
