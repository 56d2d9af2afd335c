"""A server that speaks S3, moto's, in a thread; and the environment by which boto3 finds it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

BUCKET = "lockstep-runs"


@contextmanager
def bucket() -> Iterator[dict[str, str]]:
    """The environment of a process that is to find BUCKET."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    own = {"AWS_ENDPOINT_URL_S3": f"http://{host}:{port}", "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
           "AWS_DEFAULT_REGION": "us-east-1"}
    try:
        client = boto3.client("s3", endpoint_url=own["AWS_ENDPOINT_URL_S3"], aws_access_key_id="key",
                              aws_secret_access_key="secret", region_name="us-east-1")
        client.create_bucket(Bucket=BUCKET)
        yield own
    finally:
        server.stop()
