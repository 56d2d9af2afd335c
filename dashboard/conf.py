"""The only reader of the environment. Everything an operator can set is here, with what it means."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LEAST_TOKEN = 16  # characters of a token that an operator chooses


class ConfigError(Exception):
    """A setting from the environment cannot be used."""


def _number(name: str, default: int, least: int, most: int) -> int:
    text = os.environ.get(name, str(default))
    try:
        value = int(text)
    except ValueError:
        raise ConfigError(f"{name}={text!r} is not a whole number") from None
    if not least <= value <= most:
        raise ConfigError(f"{name}={value} is outside {least} to {most}")
    return value


def _devices() -> list[str]:
    devices = [device for device in os.environ.get("LOCKSTEP_DEVICES", "").split(",") if device]
    if set(devices) - {"cpu", "cuda"}:
        raise ConfigError(f"LOCKSTEP_DEVICES={','.join(devices)!r} names something else than cpu and cuda")
    return devices


def _choice(name: str, default: str, *others: str) -> str:
    value = os.environ.get(name) or default
    if value not in (default, *others):
        raise ConfigError(f"{name}={value!r} would have to be {' or '.join((default, *others))}")
    return value


def _token(name: str) -> str:
    token = os.environ.get(name, "")
    if token and len(token) < LEAST_TOKEN:
        raise ConfigError(f"{name} has {len(token)} characters; a random text of {LEAST_TOKEN} or more would do")
    return token


def _flag(name: str) -> bool:
    return os.environ.get(name, "").lower() in ("1", "true", "yes", "on")


def _list(name: str) -> list[str]:
    return [item.strip() for item in os.environ.get(name, "").split(",") if item.strip()]


def _storage(name: str) -> str:
    text = os.environ.get(name, "")
    is_bucket = re.fullmatch(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[\w./-]*)?", text, re.ASCII)
    if text and not Path(text).is_absolute() and not is_bucket:
        raise ConfigError(f"{name}={text!r} is neither a folder such as /srv/lockstep nor a bucket such as s3://runs/lockstep")
    return text


def _origins(name: str) -> list[str]:
    """Each goes into a header as it is, so nothing else may."""
    found = _list(name)
    for origin in found:
        if not re.fullmatch(r"https?://(\*\.)?[\w.-]+(:\d{1,5})?", origin, re.ASCII):
            raise ConfigError(f"{name} has {origin!r}; an origin such as https://wiki.example.org would do")
    return found


def redis_url_file(home: Path) -> Path:
    """Where `manage.py up` says how the Redis of its stack is reached."""
    return home / "redis-url"


@dataclass(frozen=True)
class Conf:
    home: Path  # LOCKSTEP_HOME: the one folder of state
    redis_url: str  # REDIS_URL, or what `manage.py up` wrote for the stack it runs; empty when neither
    redis_given: bool  # whether it came from REDIS_URL
    database_url: str  # DATABASE_URL; empty means SQLite in the home folder
    allowed_hosts: list[str]  # LOCKSTEP_HOSTS: names under which the server answers, comma-separated
    origins: list[str]  # LOCKSTEP_ORIGINS: https://… addresses when behind a proxy
    embed_in: list[str]  # LOCKSTEP_EMBED_IN: origins of sites that may show shared runs in a frame, comma-separated
    storage: str  # LOCKSTEP_STORAGE: where sealed runs are kept, /a/folder or s3://bucket/prefix; empty: in the home folder
    storage_local_gb: int  # LOCKSTEP_STORAGE_LOCAL_GB: of runs that are kept there, how much stays in the home folder
    hook_hosts: list[str]  # LOCKSTEP_HOOK_HOSTS: hosts in private networks that teams' webhooks may call, comma-separated
    oidc_issuer: str  # LOCKSTEP_OIDC_ISSUER: an OpenID Connect provider whose people may log in; empty for none
    oidc_client_id: str  # LOCKSTEP_OIDC_CLIENT_ID: what the provider calls this server
    oidc_client_secret: str  # LOCKSTEP_OIDC_CLIENT_SECRET
    oidc_domains: list[str]  # LOCKSTEP_OIDC_DOMAINS: of verified e-mail addresses that may come in; empty for everybody there
    oidc_name: str  # LOCKSTEP_OIDC_NAME: on the button
    debug: bool  # LOCKSTEP_DEBUG
    runs_at_once: int  # LOCKSTEP_RUNS_AT_ONCE: by one worker
    most_ranks: int  # LOCKSTEP_MOST_RANKS: of one run on one worker
    flush_ms: int  # LOCKSTEP_FLUSH_MS: how often a rank sends what it recorded
    stop_seconds: int  # LOCKSTEP_STOP_SECONDS: how long each rung of the ladder of stops waits
    metrics_token: str  # LOCKSTEP_METRICS_TOKEN: opens /metrics from elsewhere; empty means from this machine alone
    log_format: str  # LOCKSTEP_LOG_FORMAT: line, or json for an object a line
    devices: list[str]  # LOCKSTEP_DEVICES: what this machine's worker runs, comma-separated; empty means what it finds

    def secret_key(self) -> str:
        """LOCKSTEP_SECRET_KEY, or one made once and kept in a file that only its owner can read."""
        given = os.environ.get("LOCKSTEP_SECRET_KEY")
        if given:
            return given
        return kept_secret(self.home / "secret-key")


def kept_secret(path: Path) -> str:
    """The secret in `path`, made if there is none; mode 600 from its first byte, and never seen half-written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            _keep_new_secret(path)
        text = path.read_text().strip()
    except OSError as error:
        raise ConfigError(f"{path} cannot be used ({error.strerror}); LOCKSTEP_HOME has to be a folder of your own") from None
    if not text:
        raise ConfigError(f"{path} is empty; remove it and a new secret is made")
    return text


def _keep_new_secret(path: Path) -> None:
    draft = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(secrets.token_urlsafe(48))
    with contextlib.suppress(FileExistsError):  # another process was quicker; its secret is the one
        os.link(draft, path)
    draft.unlink()


def _oidc() -> dict[str, Any]:
    issuer = os.environ.get("LOCKSTEP_OIDC_ISSUER", "").rstrip("/")
    names = ("LOCKSTEP_OIDC_CLIENT_ID", "LOCKSTEP_OIDC_CLIENT_SECRET")
    if issuer and (missing := [name for name in names if not os.environ.get(name)]):
        raise ConfigError(f"LOCKSTEP_OIDC_ISSUER needs {' and '.join(missing)} too: what its provider gave you for this server")
    if issuer and not re.match(r"https://|http://(localhost|127\.0\.0\.1)[:/]", issuer):
        raise ConfigError(f"LOCKSTEP_OIDC_ISSUER={issuer!r} is no address such as https://id.example.org")
    client_id, client_secret = (os.environ.get(name, "") for name in names)
    return {
        "oidc_issuer": issuer, "oidc_client_id": client_id, "oidc_client_secret": client_secret,
        "oidc_domains": [domain.lower() for domain in _list("LOCKSTEP_OIDC_DOMAINS")],
        "oidc_name": os.environ.get("LOCKSTEP_OIDC_NAME") or "your company's account",
    }


def load() -> Conf:
    home = Path(os.environ.get("LOCKSTEP_HOME") or ROOT / ".lockstep").expanduser().resolve()
    url_file = redis_url_file(home)
    return Conf(
        home=home,
        redis_url=os.environ.get("REDIS_URL") or (url_file.read_text().strip() if url_file.exists() else ""),
        redis_given=bool(os.environ.get("REDIS_URL")),
        database_url=os.environ.get("DATABASE_URL", ""),
        allowed_hosts=[*_list("LOCKSTEP_HOSTS"), "localhost", "127.0.0.1", "[::1]"],
        origins=_list("LOCKSTEP_ORIGINS"),
        embed_in=_origins("LOCKSTEP_EMBED_IN"),
        storage=_storage("LOCKSTEP_STORAGE"),
        storage_local_gb=_number("LOCKSTEP_STORAGE_LOCAL_GB", 20, 0, 1_000_000),
        hook_hosts=_list("LOCKSTEP_HOOK_HOSTS"),
        **_oidc(),
        debug=_flag("LOCKSTEP_DEBUG"),
        runs_at_once=_number("LOCKSTEP_RUNS_AT_ONCE", 1, 1, 64),
        most_ranks=_number("LOCKSTEP_MOST_RANKS", 64, 1, 1024),
        flush_ms=_number("LOCKSTEP_FLUSH_MS", 100, 5, 10_000),
        stop_seconds=_number("LOCKSTEP_STOP_SECONDS", 10, 1, 600),
        metrics_token=_token("LOCKSTEP_METRICS_TOKEN"),
        log_format=_choice("LOCKSTEP_LOG_FORMAT", "line", "json"),
        devices=_devices(),
    )
