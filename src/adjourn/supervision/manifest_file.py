"""Writes pauses into files for machines. The store is the truth; these are copies."""

import os
from collections.abc import Callable

import msgspec

from adjourn.core.documents import Manifest, encoded, manifest_of
from adjourn.core.redact import Redactor
from adjourn.core.scene import Scene
from adjourn.system.files import private_directory, write_whole
from adjourn.views.block import CommandWriter
from adjourn.views.task import resume_hint


def write_manifest(
    scene: Scene,
    *,
    root: str,
    commands: CommandWriter,
    redactor: Redactor,
    warn: Callable[[str], None],
) -> Manifest:
    """Return how a task stands; if it is paused, write that to its two files, without secrets.

    A full disk costs the copy, not the pause.
    """
    manifest = manifest_of(scene, hint=resume_hint(scene, commands))
    if manifest.outcome != "paused":
        return manifest
    if scene.clarification:
        # Most pauses are for approval (bench resume)
        from adjourn.clarifications.protocol_files import clarification_doc

        manifest = msgspec.structs.replace(
            manifest, clarification=clarification_doc(root, scene) or msgspec.UNSET
        )
    text = encoded(redactor.document(manifest)).encode() + b"\n"
    try:
        newest = private_directory(os.path.join(root, "session"))
        own = private_directory(os.path.join(newest, manifest.task_id))
        for directory in (own, newest):
            write_whole(os.path.join(directory, "pause.json"), text)
    except OSError as error:
        warn(f"the manifest file could not be written: {error.strerror}")
    return manifest
