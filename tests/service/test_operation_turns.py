"""Requests wait for the turn of their tenant; a flood fills its own line, and is itself what is refused."""

import asyncio

import pytest

from manymetrics.service.problems import TooMany
from manymetrics.service.turns import Turns


def run(story):
    asyncio.run(asyncio.wait_for(story(), 60))


async def ask(turns, line, order, name):
    try:
        await turns.take(line)
    except TooMany:
        order.append(f"{name} refused")
        return
    order.append(name)
    await asyncio.sleep(0)
    turns.leave(line)


async def ask_in_order(turns, *names):
    """Tasks that ask one after the other; a name starts with the letter of its tenant."""
    order = []
    tasks = [asyncio.create_task(ask(turns, name[0], order, name)) for name in names]
    await asyncio.gather(*tasks)
    return order


def test_tenants_are_served_in_turn():
    async def story():
        order = await ask_in_order(Turns(at_once=1, each=1, most=11), "a1", "a2", "a3", "a4", "b1", "c1")
        assert order == ["a1", "a2", "b1", "c1", "a3", "a4"]

    run(story)


def test_a_tenant_is_not_worked_on_at_more_than_its_share_of_places():
    async def story():
        turns, order = Turns(at_once=3, each=2, most=11), []
        await turns.take("a")
        await turns.take("a")
        third = asyncio.create_task(ask(turns, "a", order, "a3"))
        await asyncio.sleep(0)
        await turns.take("b")  # comes later, and need not wait
        assert order == []
        turns.leave("a")
        await third
        assert order == ["a3"]

    run(story)


def test_a_flood_makes_room_for_others_and_refuses_itself():
    async def story():
        turns = Turns(at_once=1, each=1, most=4)
        order = await ask_in_order(turns, "a1", "a2", "a3", "a4", "a5", "b1", "b2")
        assert [name for name in order if "refused" not in name] == ["a1", "a2", "b1", "a3"]
        assert {name for name in order if "refused" in name} == {"a4 refused", "a5 refused", "b2 refused"}
        assert len(turns) == 0

    run(story)


async def one_served_two_waiting():
    turns, order = Turns(at_once=1, each=1, most=11), []
    await turns.take("a")
    gone = asyncio.create_task(ask(turns, "a", order, "gone"))
    stays = asyncio.create_task(ask(turns, "b", order, "stays"))
    await asyncio.sleep(0)
    return turns, order, gone, stays


def test_who_goes_away_while_waiting_leaves_no_gap():
    async def story():
        turns, order, gone, stays = await one_served_two_waiting()
        gone.cancel()
        await asyncio.sleep(0)
        assert len(turns) == 1
        turns.leave("a")
        await stays
        assert order == ["stays"]
        await turns.take("a")  # the place is free again

    run(story)


def test_who_goes_away_just_as_its_turn_comes_hands_it_on():
    async def story():
        turns, order, gone, stays = await one_served_two_waiting()
        turns.leave("a")  # the turn is given to `gone`, which has not run since
        gone.cancel()
        await asyncio.gather(gone, stays, return_exceptions=True)
        assert order == ["stays"]

    run(story)


def test_beyond_all_places_a_request_is_refused_at_once():
    async def story():
        turns = Turns(at_once=1, each=1, most=1)
        await turns.take("a")
        assert turns.refuses("a")
        with pytest.raises(TooMany):
            await turns.take("b")

    run(story)
