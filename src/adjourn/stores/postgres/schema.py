"""Installs our schema and the engine's, and refuses versions that this program does not know."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from adjourn.core.errors import StoreProblem
from adjourn.stores.postgres.batch import SCHEMA
from adjourn.stores.postgres.connection import PostgresConnection
from adjourn.stores.postgres.translation import newer_schema

ENGINE = "0.5.1"  # the version of Absurd that this program was tested with
_ENCODING = "UTF8"
_INSTALLING = 1633970797  # "adjm": one who installs at a time


def require_schema(db: PostgresConnection) -> None:
    """Make the schema in an empty database.

    Refuse one that is newer than we are, or an engine that we do not know.
    """
    _require_encoding(db)
    if _version(db) < SCHEMA:
        _install(db)
    require_engine(db)


def _require_encoding(db: PostgresConnection) -> None:
    """Refuse a database that cannot keep every text there is."""
    if db.encoding != _ENCODING:
        words = f"createdb {db.name.options} --encoding={_ENCODING} --template=template0 NAME"
        raise StoreProblem(
            f"{db.name} keeps text as {db.encoding}, and not every text can be kept so",
            way_out=words,
        )


def _version(db: PostgresConnection) -> int:
    """Return the schema's version, or refuse one that this program does not know."""
    if not db.all(b"SELECT 1 FROM pg_class WHERE oid = to_regclass('adjourn.schema_version')"):
        return 0
    ((version,),) = db.all(b"SELECT coalesce(max(version), 0) FROM adjourn.schema_version")
    if version > SCHEMA:
        raise newer_schema(db.name, f"schema {version}, and this program knows {SCHEMA}")
    return int(version)


def require_engine(db: PostgresConnection) -> None:
    """Refuse an engine whose version this program was not tested with."""
    found = _engine_version(db)
    if found != ENGINE:
        raise StoreProblem(
            f"{db.name} has Absurd {found or 'of an unknown version'}, "
            f"and this program knows {ENGINE}",
            way_out="use the adjourn that fits it, "
            f"or bring it there: absurdctl migrate --to {ENGINE}",
        )


def _engine_version(db: PostgresConnection) -> str | None:
    if not db.all(b"SELECT 1 FROM pg_proc WHERE oid = to_regproc('absurd.get_schema_version')"):
        return None
    ((version,),) = db.all(b"SELECT absurd.get_schema_version()")
    return str(version)


def _install(db: PostgresConnection) -> None:
    """Bring the schema up to date, in one transaction; of many who try, one does it."""
    with _alone(db):
        for version in range(_version(db) + 1, SCHEMA + 1):
            if version == 1:
                _install_engine(db)
                db.all(b"CREATE SCHEMA IF NOT EXISTS adjourn")
            db.last(_steps(version))
            db.all(b"INSERT INTO adjourn.schema_version (version) VALUES ($1)", version)
        if db.all(
            b"SELECT 1 FROM pg_trigger WHERE tgname = 'guard' AND tgrelid = 'adjourn.ask'::regclass"
        ):
            db.last(_file("roles.sql"))  # the roles of an older version know nothing of what is new


@contextmanager
def _alone(db: PostgresConnection) -> Generator[None, None, None]:
    """Open a transaction in which nobody else installs anything; it is gone if the block raised."""
    db.all(b"BEGIN")
    try:
        # Any login of the database can take this lock: nobody waits for it for ever.
        db.all(b"SET LOCAL lock_timeout = '30s'")
        db.all(b"SELECT pg_advisory_xact_lock($1)", _INSTALLING)
        yield
        db.all(b"COMMIT")
    except BaseException:
        if db.is_in_transaction:
            db.all(b"ROLLBACK")
        raise


def _install_engine(db: PostgresConnection) -> None:
    if _engine_version(db) is None:
        if db.all(b"SELECT 1 FROM pg_namespace WHERE nspname = 'absurd'"):
            require_engine(db)
        db.last(_engine_schema().encode())
    require_engine(db)


def _engine_schema() -> str:
    """Return the schema that absurdctl brings along; no psql is needed for it."""
    # Slow to import, and seldom needed
    from importlib import import_module

    brought: Any = import_module("absurdctl")  # it says nothing of its types
    if brought.ABSURD_SCHEMA_TARGET_VERSION != ENGINE:
        raise StoreProblem(
            f"absurdctl {brought.ABSURD_SCHEMA_TARGET_VERSION} is installed, "
            f"and this program knows {ENGINE}",
            way_out=f"pip install 'absurdctl=={ENGINE}'",
        )
    return str(brought.BUNDLED_SCHEMA_SQL)


def make_roles(db: PostgresConnection) -> None:
    """Make the roles, and the guards that hold them to what they may do.

    A second time changes nothing.
    """
    with _alone(db):
        db.last(_file("roles.sql"))


def _steps(version: int) -> bytes:
    return _file(f"schema_{version}.sql")


def _file(name: str) -> bytes:
    with open(os.path.join(os.path.dirname(__file__), name), "rb") as file:
        return file.read()
