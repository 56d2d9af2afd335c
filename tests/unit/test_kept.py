"""Sealed runs in a storage, a folder or a bucket: kept, fetched by whoever reads them, removed with their run."""

import random

import pytest
from django.core.files.storage import storages
from django.utils import timezone

from dashboard.conf import ConfigError, load
from dashboard.live.cursor import AfterSealed
from dashboard.live.history import StoredHistory
from dashboard.live.opening import opening_of
from dashboard.runs import curation, kept
from dashboard.runs.models import Run, State
from dashboard.runs.stored import store_of
from dashboard.stack import checkup
from dashboard.storage import KEPT, kept_storage
from tests.bucket import BUCKET, bucket
from tests.unit.frames import shuffled
from trainer.folder import run_folder, store_folder
from trainer.trace import stream
from trainer.trace.store import StoreWriter
from workers import keep


@pytest.fixture(scope="module")
def server():
    with bucket() as environment:
        yield environment


@pytest.fixture(params=["a folder", "a bucket"])
def storage(request, settings, tmp_path, monkeypatch):
    place = str(tmp_path / "storage")
    if request.param == "a bucket":
        for name, value in request.getfixturevalue("server").items():
            monkeypatch.setenv(name, value)
        place = f"s3://{BUCKET}/{tmp_path.name.replace('_', '-')}"
    settings.STORAGES = settings.STORAGES | kept_storage(place)
    monkeypatch.setattr(kept, "ASK_SECONDS", 0.0)
    return storages[KEPT]


@pytest.fixture
def run(people, home, storage):
    """One that is sealed, in several segments."""
    writer = StoreWriter(folder(home, people.run), most_spans=200)
    for at, frame in enumerate(shuffled(random.Random(7))):
        writer.add(frame, f"{at + 1}-0")
        if writer.is_full:
            writer.seal()
    writer.add_steps([{"step": 0, "loss": 2.5}])
    writer.seal(complete=True)
    Run.objects.filter(pk=people.run.pk).update(state=State.FINISHED, started_at=timezone.now(), sealed_at=timezone.now())
    return people.run


def folder(home, run):
    return store_folder(run_folder(home, run.pk))


def everything(run_id):
    """All that a viewer is sent of it."""
    history, cursor, sent = StoredHistory(run_id), AfterSealed(), []
    while isinstance(cursor, AfterSealed):
        batch = history.batch(cursor, 10**6)
        sent += [*batch.frames, *batch.events]
        cursor = batch.cursor
    return sent


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_kept_run_whose_copy_went_is_read_as_before(run, home):
    before, sent = files(folder(home, run)), everything(run.pk)
    assert len(store_of(run.pk).segments) > 2 and len(sent) > 2
    keep.keep_sealed()
    keep.let_copies_go(most_bytes=0)
    assert not folder(home, run).exists()
    assert everything(run.pk) == sent
    assert files(folder(home, run)) == before
    assert [path.name for path in run_folder(home, run.pk).iterdir()] == ["store"], "nothing unfinished lies about"


def test_every_sealed_run_is_kept_once_and_its_copy_stays_while_there_is_room(run, home):
    keep.keep_sealed()
    kept_at = Run.objects.get(pk=run.pk).kept_at
    assert kept_at is not None
    keep.keep_sealed()
    keep.let_copies_go(most_bytes=10**9)
    assert Run.objects.get(pk=run.pk).kept_at == kept_at and folder(home, run).exists()


def test_a_run_that_is_not_sealed_stays_at_home(run, home, storage):
    Run.objects.update(sealed_at=None)
    keep.keep_sealed()
    keep.let_copies_go(most_bytes=0)
    assert folder(home, run).exists() and not storage.exists(f"{run.pk}/store/manifest.json")


def test_what_was_interrupted_is_no_run_and_is_kept_again(run, home, storage, monkeypatch):
    """The manifest goes last: without it nobody finds half a run."""
    save = type(storage).save

    def refuse(self, name, content, **options):
        if name.endswith("manifest.json"):
            raise OSError("the line was cut")
        return save(self, name, content, **options)

    with monkeypatch.context() as cut:
        cut.setattr(type(storage), "save", refuse)
        with pytest.raises(kept.StorageAway, match="the line was cut"):
            keep.keep_sealed()
    assert Run.objects.get(pk=run.pk).kept_at is None
    assert not kept.fetch(run.pk, home / "elsewhere")
    kept.keep(run.pk)
    assert kept.fetch(run.pk, home / "elsewhere")
    assert files(home / "elsewhere") == files(folder(home, run))


def test_while_the_storage_is_away_a_page_still_tells_of_the_run(run, home, storage, monkeypatch):
    keep.keep_sealed()
    keep.let_copies_go(most_bytes=0)

    def refuse(self, name):
        raise ConnectionError("no route to host")

    with monkeypatch.context() as cut:
        cut.setattr(type(storage), "exists", refuse)
        with pytest.raises(kept.StorageAway, match=f"run {run.pk} cannot be read from the storage: no route to host"):
            store_of(run.pk)
        assert opening_of(run.pk)["sealed"] is None
    assert store_of(run.pk).manifest.complete


def test_the_doctor_tries_the_storage(storage, monkeypatch):
    assert checkup._storage().level == checkup.OK

    def refuse(self, name, content, **options):
        raise PermissionError("not yours")

    monkeypatch.setattr(type(storage), "save", refuse)
    found = checkup._storage()
    assert found.level == checkup.FAIL and "not yours" in found.words and "LOCKSTEP_STORAGE" in found.advice


def test_a_removed_run_leaves_nothing_in_the_storage(run, home, storage, monkeypatch):
    keep.keep_sealed()
    assert storage.listdir(f"{run.pk}/store")[1]
    curation.delete(run)
    monkeypatch.setattr(stream, "forget", lambda client, run_id: None)
    curation.remove(run.pk, home, client=None)
    assert not storage.exists(f"{run.pk}/store/manifest.json")
    assert not kept._files(storage, run.pk)


@pytest.mark.parametrize("place", ["runs", "s3://", "s3://A_B/x", "http://bucket", "s3://bucket/a b"])
def test_a_place_that_is_none_is_named(place, monkeypatch):
    monkeypatch.setenv("LOCKSTEP_STORAGE", place)
    with pytest.raises(ConfigError, match="LOCKSTEP_STORAGE="):
        load()


@pytest.mark.parametrize("place", ["", "/srv/lockstep", "s3://runs", "s3://my.runs/lockstep/one/"])
def test_a_place_that_is_one_is_taken(place, monkeypatch):
    monkeypatch.setenv("LOCKSTEP_STORAGE", place)
    assert load().storage == place
