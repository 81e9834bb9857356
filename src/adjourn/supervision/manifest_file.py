"""Writes pauses into files for machines. The store is the truth; these are copies."""

import os

from adjourn.cli.session import Session
from adjourn.core.documents import Manifest, encoded, manifest_of
from adjourn.core.scene import Scene
from adjourn.system.files import private_directory, write_whole
from adjourn.views.next_step import resume_hint


def project(session: Session, scene: Scene) -> Manifest:
    """Return how a task stands; if it is paused, the manifest files say so, too."""
    manifest = manifest_of(scene, hint=resume_hint(session, scene))
    if manifest.outcome == "paused":
        _write(session, manifest)
    return manifest


def _write(session: Session, manifest: Manifest) -> None:
    """Put the manifest in its two places. A full disk costs the copy, not the pause."""
    text = encoded(session.redactor.document(manifest)).encode() + b"\n"
    try:
        newest = private_directory(os.path.join(session.root, "session"))
        own = private_directory(os.path.join(newest, manifest.task_id))
        for place in (own, newest):
            write_whole(os.path.join(place, "pause.json"), text)
    except OSError as error:
        session.warn(f"adjourn: the manifest file could not be written: {error.strerror}")
