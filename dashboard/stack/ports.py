"""The address where the stack answers."""

from __future__ import annotations

import errno
import socket


class PortRefused(Exception):
    """The server cannot listen there; the text says why and what would do."""


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 lets the system choose. Raises PortRefused."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server((str(address[0]), port), family=family, backlog=128)
    except socket.gaierror as error:
        raise PortRefused(f"{host!r} is no address of this machine: {error.strerror}. --host 127.0.0.1 would do.") from error
    except OverflowError as error:
        raise PortRefused(f"Port {port} does not exist; 0 to 65535 would do.") from error
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            words = f"Port {port} on {host} is in use by another program."
        elif error.errno == errno.EACCES:
            words = f"Port {port} is for the system's administrator."
        else:
            words = f"{host} port {port}: {error.strerror}."
        raise PortRefused(f"{words} Give another, such as --port {max(1024, port) + 1}; 0 takes any that is free.") from error


def url_of(host: str, port: int) -> str:
    """Where a browser on this machine finds it."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}"
