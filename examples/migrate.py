"""Runs migrations; each one that loses something is approved first, by its very arguments."""

import adjourn

MIGRATIONS = [
    ("add_column", {"table": "users", "column": "email"}),
    ("drop_table", {"table": "sessions"}),
]

done = adjourn.checkpoint.load([])
for name, arguments in MIGRATIONS:
    if name in done:
        continue
    if name.startswith("drop"):
        with adjourn.approval(
            f"Migration {name} loses data.", tool=name, arguments=arguments
        ) as value:
            print(f"{name} {arguments['table']} ({value})")
    else:
        print(f"{name} {arguments['table']}")
    done.append(name)
    adjourn.checkpoint.save(done)
print(f"{len(done)} migrations done")
