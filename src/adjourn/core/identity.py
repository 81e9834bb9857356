"""The name of a process that no other process ever had."""

import msgspec


class ProcessId(msgspec.Struct, frozen=True, kw_only=True):
    """One process on one boot of one machine; a reused pid is another one."""

    boot_id: str
    pid: int
    start_time: int  # clock ticks since boot
