"""A viewer without a browser: it pulls as a page does, and connects again from its cursor when the server drops it."""

import json
import time

from websockets.exceptions import InvalidHandshake, WebSocketException
from websockets.sync.client import connect

from dashboard.bench.viewers import Counted
from dashboard.live.messages import decode_batch

RECONNECT_SECONDS = 30


class Viewer:
    """Of the run that the link with `token` opens. It holds a cursor, so a connection that ends is no loss."""

    def __init__(self, stack, token):
        self.counted, self.cursor, self.connections = Counted(), None, 0
        self._address, self._origin = f"{stack.url.replace('http', 'ws', 1)}/ws/s/{token}/", stack.url
        self._connect()

    def _connect(self):
        give_up = time.monotonic() + RECONNECT_SECONDS
        while True:
            try:
                self._socket = connect(
                    self._address, origin=self._origin, max_size=None, max_queue=1, compression=None, ping_interval=None,
                    legacy=True,
                )
                self.connections += 1
                return
            except (OSError, EOFError, InvalidHandshake):  # the server ended while it was asked: the next one will answer
                if time.monotonic() > give_up:
                    raise
                time.sleep(0.1)

    def close(self):
        self._socket.close()

    def pull(self):
        self._socket.send(json.dumps({"type": "pull", "after": self.cursor}))

    def read(self):
        """One batch."""
        message = self._socket.recv(timeout=60)
        while isinstance(message, str):
            message = self._socket.recv(timeout=60)
        meta, frames = decode_batch(message)
        self.counted.take(frames)
        self.cursor, self.counted.complete = meta["cursor"], meta["complete"]

    def read_to_the_end(self):
        """What answers a pull that was sent already, and all that follows it."""
        while not self.counted.complete:
            try:
                self.read()
                self.pull()
            except (OSError, EOFError, WebSocketException):
                self._connect()
                self.pull()
