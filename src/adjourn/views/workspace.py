"""The one layout of what changed in a workspace since its task paused."""

from adjourn.core.documents import WorkspaceDoc
from adjourn.core.text.render import visible
from adjourn.views.block import Block, Span, line

_SHORT = 12  # characters of a commit


def workspace_blocks(since: WorkspaceDoc) -> list[Block]:
    """Lay out what changed, a line for each thing."""
    blocks: list[Block] = [line("workspace since the pause")]
    if since.head_then is not None or since.head_now is not None:
        now = _head(since.head_now, since.ref_now)
        if (since.head_then, since.ref_then) == (since.head_now, since.ref_now):
            blocks.append(line(f"  HEAD is where it was: {now}"))
        else:
            blocks.append(line(f"  HEAD was {_head(since.head_then, since.ref_then)}, is {now}"))
    blocks += [line("  changed  ", Span(visible(path), "code")) for path in since.changed]
    if since.changed_count > len(since.changed):
        left_out = since.changed_count - len(since.changed)
        blocks.append(line(f"  … {left_out:,} more; --full shows all"))
    if not since.is_whole:
        entries = f"{since.looked_at:,} entries"
        blocks.append(line(f"  There is more than a short look covers: it ended after {entries}."))
    elif not since.changed_count:
        blocks.append(line(f"  no file changed, of {since.looked_at:,} entries"))
    return blocks


def _head(commit: str | None, ref: str | None) -> str:
    where = f" ({visible(ref)})" if ref else ""
    return f"{commit[:_SHORT] if commit else 'unknown'}{where}"
