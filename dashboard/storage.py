"""Django's storage setting for sealed runs, from LOCKSTEP_STORAGE: a folder, or a bucket that speaks S3."""

from __future__ import annotations

from typing import Any

KEPT = "runs"  # its name among Django's STORAGES; not there where runs are kept in the home folder alone
S3 = "s3://"


def kept_storage(place: str) -> dict[str, Any]:
    """The entry of STORAGES for `place`. Credentials, region and endpoint of a bucket are boto3's own settings (AWS_…)."""
    if not place:
        return {}
    if not place.startswith(S3):
        options: dict[str, Any] = {"location": place, "allow_overwrite": True}
        return {KEPT: {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": options}}
    bucket, _, prefix = place.removeprefix(S3).partition("/")
    options = {"bucket_name": bucket, "location": prefix, "file_overwrite": True, "default_acl": None, "querystring_auth": False}
    return {KEPT: {"BACKEND": "storages.backends.s3.S3Storage", "OPTIONS": options}}
