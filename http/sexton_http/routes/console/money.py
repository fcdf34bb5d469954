"""The page of money: the balance, and what each run was billed."""

from typing import Final

from sexton_http.answers import Answer
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody
from sexton_http.pages.console import console_operation
from sexton_http.pages.form_actions import act
from sexton_http.pages.templates.frame import Frame, show
from sexton_http.routes.billing import Balance, ChargePage, ChargeQuery, get_balance, list_charges

HERE: Final = "money"


@console_operation(HERE, HERE, "Money")
async def show_money(call: Call[NoBody, ChargeQuery], frame: Frame) -> Answer:
    """Show the tenant's balance and what its runs were billed, newest first."""
    who = frame.signed_in
    balance: Balance = await act(call, who, get_balance)
    charges: ChargePage = await act(call, who, list_charges, query=call.query)
    older = None if charges.next_cursor is None else f"{frame.address(HERE)}?cursor={charges.next_cursor}"
    return show(
        frame, "money", balance=balance, charges=charges.items, older=older, now=call.ctx.world.now_ms()
    )
