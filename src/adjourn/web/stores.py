"""The stores that the pages show: the server's own, or all stores of its user."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any

from starlette.requests import Request

from adjourn.controller.controller import Controller
from adjourn.core.ask import Principal
from adjourn.core.errors import AdjournError, NotFound
from adjourn.core.text.render import visible
from adjourn.core.trail.events import Happened
from adjourn.web.site import Site, site_of
from adjourn.wiring import name_of_store

_LISTS = frozenset({"/", "/snoozed", "/settled"})


def sites_of(request: Request) -> list[Site]:
    """Return all stores of this server, its own first."""
    others: Sequence[Site] = getattr(request.app.state, "others", ())
    return [site_of(request), *others]


def key_of(site: Site) -> str:
    """Return what stands for a store in an address."""
    return sha256(site.root.encode()).hexdigest()[:12]


def name_of(site: Site) -> str:
    """Return what people call a store: the directory that it lies in, or the database."""
    return visible(name_of_store(site.root).removesuffix("/.adjourn"))


def store_choices(request: Request) -> list[tuple[str, str]]:
    """Return the stores to choose from, where there are several."""
    sites = sites_of(request)
    return [(key_of(site), name_of(site)) for site in sites] if len(sites) > 1 else []


def chosen_site(request: Request, key: str = "") -> Site:
    """Return the store that a key names, or the server's own."""
    wanted = key or request.query_params.get("store", "")
    return next((site for site in sites_of(request) if key_of(site) == wanted), site_of(request))


async def site_with_ask(request: Request) -> Site:
    """Return the store that has the ask of a request."""
    name = request.path_params["ask"]

    def has(controller: Controller) -> bool:
        with controller.store.read() as view:
            return view.asks_like(name) == [name]

    return await _site_with(request, has, f"no ask is called {visible(name)}", "adjourn inbox")


async def site_with_task(request: Request) -> Site:
    """Return the store that has the task of a request."""
    name = request.path_params["task"]

    def has(controller: Controller) -> bool:
        with controller.store.read() as view:
            return name in view.tasks_like(name)

    return await _site_with(request, has, f"no task is called {visible(name)}", "adjourn tasks")


async def _site_with(
    request: Request, has: Callable[[Controller], bool], sentence: str, way_out: str
) -> Site:
    for site in sites_of(request):
        try:
            if await site.call(has):
                return site
        except AdjournError:
            if len(sites_of(request)) == 1:
                raise
    raise NotFound(sentence, way_out=way_out)


async def known_everywhere(request: Request, by: Principal) -> dict[str, Any]:
    """Return what every page has: who looks, how many asks are open, and from where it is live.

    It is read before the page itself, so that nothing is missed that happens in between.
    """
    places, count = list[int](), 0

    def read(controller: Controller) -> tuple[int, int]:
        with controller.store.read() as view:
            return view.trail_head()[0], view.count_open_asks()

    for site in sites_of(request):
        place, asks = 0, 0
        with suppress(AdjournError):
            place, asks = await site.call(read)
        places.append(place)
        count += asks
    path = request.url.path
    return {
        "user": by.name.partition(":")[2],
        "count": count,
        "here": "/" if path in _LISTS else path,
        "live": ",".join(map(str, places)),
    }


async def follow_all(
    sites: Sequence[Site], places: list[int], *, rest: float
) -> AsyncIterator[tuple[str, Sequence[Happened]]]:
    """Return what happens in all stores, each time with how far all of them were followed."""
    news: asyncio.Queue[tuple[int, Sequence[Happened]]] = asyncio.Queue(maxsize=16)

    async def follow(number: int, site: Site) -> None:
        async for events in site.feed.follow(places[number], rest=rest):
            await news.put((number, events))
        await news.put((-1, ()))

    tasks = [asyncio.create_task(follow(number, site)) for number, site in enumerate(sites)]
    try:
        while True:
            number, events = await news.get()
            if number < 0:
                return
            if events:
                places[number] = events[-1].place
            yield ",".join(map(str, places)), events
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
