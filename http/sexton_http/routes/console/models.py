"""The page of models: which there are, what they cost, and which one the tenant's runs use."""

from typing import Annotated, Any, Final, Literal

import msgspec

from sexton_http.answers import Answer, Problem
from sexton_http.bodies.shapes import Body
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery
from sexton_http.pages.console import Notice, console_form, console_operation, see_page, show_page
from sexton_http.pages.form_actions import FormDecoder, act, may
from sexton_http.pages.templates.frame import Frame
from sexton_http.routes.catalogue import ModelList, list_models
from sexton_http.routes.llm import (
    LlmKey,
    NewTenantProvider,
    TenantProviderView,
    delete_tenant_provider,
    get_llm_key,
    get_tenant_provider,
    put_tenant_provider,
)
from sexton_http.routes.shared.told_acts import act_told
from sexton_storage.records.providers import ProviderMode

HERE: Final = "models"
TITLE: Final = "Models"


class ModelWish(Body):
    """What the forms of the page send."""

    verb: Literal["choose", "reset"]
    model: Annotated[str, msgspec.Meta(max_length=128)] = ""


_WISH: Final = FormDecoder(ModelWish)


async def _page(call: Call[Any, Any], frame: Frame, notice: Notice | None = None) -> Answer:
    who = frame.signed_in
    offered: ModelList = await act(call, who, list_models)
    chosen: TenantProviderView = await act(call, who, get_tenant_provider)
    own: LlmKey = await act(call, who, get_llm_key)
    return show_page(
        call,
        frame,
        "models",
        notice,
        offered=offered,
        chosen=chosen,
        own=own,
        allowed=may(who, put_tenant_provider),
    )


@console_operation(HERE, HERE, TITLE)
async def show_models(call: Call[NoBody, NoQuery], frame: Frame) -> Answer:
    """Show the models that are offered with their prices, and which one runs use."""
    return await _page(call, frame)


@console_form(HERE, HERE, TITLE, _page, form=ModelWish)
async def submit_model(call: Call[NoBody, NoQuery]) -> Answer:
    """Choose the model that the tenant's runs use where nothing nearer says otherwise, or none."""
    wish, who = _WISH.decode(call), call.signed_in
    if wish.verb == "reset":
        await act_told(call, who, delete_tenant_provider)
    else:
        if not wish.model:
            raise Problem("UZ-REQ-001", "model: choose one", facts={"parameter": "model"})
        body = NewTenantProvider(ProviderMode.PLATFORM, model=wish.model)
        await act_told(call, who, put_tenant_provider, body=body)
    return see_page(call, HERE)
