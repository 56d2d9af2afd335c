"""A small OpenID Connect provider on a real socket: discovery, authorization, tokens signed with RS256, keys, userinfo."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT_ID, CLIENT_SECRET = "lockstep", "a secret of two"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


class Provider:
    """`person`: the claims of whoever logs in there; `token`: what its tokens say in place of what is right."""

    def __init__(self, url: str):
        self.url = url
        self.person: dict[str, Any] = {
            "sub": "42", "preferred_username": "ada", "email": "ada@acme.example", "email_verified": True,
        }
        self.token: dict[str, Any] = {}
        self.key = KEY
        self.asked: dict[str, dict[str, str]] = {}  # code to what the authorization was asked for

    def answer(self, path: str, given: dict[str, str], bearer: str) -> tuple[int, dict[str, Any] | str]:
        match path:
            case "/.well-known/openid-configuration":
                return 200, {"issuer": self.url, "authorization_endpoint": f"{self.url}/authorize",
                             "jwks_uri": f"{self.url}/keys", "token_endpoint": f"{self.url}/token",
                             "userinfo_endpoint": f"{self.url}/me"}
            case "/authorize":
                code = f"code-{len(self.asked)}"
                self.asked[code] = given
                return 302, f"{given['redirect_uri']}?{urlencode({'code': code, 'state': given['state']})}"
            case "/token":
                return self._token(given)
            case "/keys":
                public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))
                return 200, {"keys": [public | {"kid": "one", "alg": "RS256", "use": "sig"}]}
            case "/me" if bearer == "Bearer access":
                return 200, self.person
        return 404, {}

    def _token(self, given: dict[str, str]) -> tuple[int, dict[str, Any]]:
        asked = self.asked.pop(given.get("code", ""), None)
        proof = base64.urlsafe_b64encode(hashlib.sha256(given.get("code_verifier", "").encode()).digest()).rstrip(b"=").decode()
        is_right = asked and (given["client_id"], given["client_secret"]) == (CLIENT_ID, CLIENT_SECRET)
        if not is_right or asked["redirect_uri"] != given["redirect_uri"] or asked["code_challenge"] != proof:
            return 400, {"error": "invalid_grant"}
        says = {"iss": self.url, "aud": CLIENT_ID, "sub": self.person["sub"], "nonce": asked["nonce"]}
        says |= {"exp": int(time.time()) + 60} | self.token
        return 200, {"access_token": "access", "id_token": jwt.encode(says, self.key, "RS256", headers={"kid": "one"})}


@contextmanager
def running_provider() -> Iterator[Provider]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = urlsplit(self.path)
            self._answer(address.path, address.query)

        def do_POST(self) -> None:
            self._answer(self.path, self.rfile.read(int(self.headers["Content-Length"])).decode())

        def _answer(self, path: str, query: str) -> None:
            given = {key: values[0] for key, values in parse_qs(query).items()}
            status, body = provider.answer(path, given, self.headers.get("Authorization", ""))
            self.send_response(status)
            if status == 302:
                self.send_header("Location", str(body))
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider = Provider(f"http://127.0.0.1:{server.server_address[1]}")
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
