"""Where a process lives on its machine: its namespaces, and how its user ids are mapped."""

import msgspec

PLACES = "places"  # the name of the shared document that lists where people use the store from
_MOST = 8


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The namespaces of a process.

    Inode numbers are used again, so the pid namespace has its first process with it.
    """

    boot_id: str
    pid_namespace: int
    first_process: int  # when the first process of the pid namespace started
    user_namespace: int
    mount_namespace: int
    uid_map: str
    gid_map: str


def known_places(body: bytes | None) -> tuple[Place, ...]:
    """Return the places that a store knows.

    None where the list cannot be read, so that nothing is believed.
    """
    try:
        return msgspec.json.decode(body, type=tuple[Place, ...]) if body else ()
    except msgspec.MsgspecError:
        return ()


def with_place(places: tuple[Place, ...], place: Place) -> bytes:
    """Return the list with one more place.

    What an earlier boot left is dropped, and so is the oldest of too many.
    """
    kept = [known for known in places if known.boot_id == place.boot_id and known != place]
    return msgspec.json.encode([*kept, place][-_MOST:])


def difference(place: Place, places: tuple[Place, ...]) -> str | None:
    """Return what keeps a place from being one of these, in words, or None if it is one of them."""
    if place in places:
        return None
    pid_namespace = (place.boot_id, place.pid_namespace, place.first_process)
    same = [
        each
        for each in places
        if (each.boot_id, each.pid_namespace, each.first_process) == pid_namespace
    ]
    if not same:
        return "its pid namespace"
    nearest = same[-1]
    if (place.uid_map, place.gid_map) != (nearest.uid_map, nearest.gid_map):
        return "its map of user ids"
    return (
        "its user namespace"
        if place.user_namespace != nearest.user_namespace
        else "its mount namespace"
    )
