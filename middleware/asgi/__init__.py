"""AgJSON over HTTP: an agent behind one endpoint (spec §3, §4, §13).

```python
app = AgentApp(AnthropicAgent(client, model="..."))  # uvicorn module:app
```
"""

try:
    import starlette as _starlette  # noqa: F401
except ImportError:
    from agjson.errors import MissingExtraError

    raise MissingExtraError("serve", "starlette") from None

from agjson.middleware.asgi.app import AgentApp, Authorize
from agjson.middleware.asgi.errors import Forbidden, Refusal, Unauthorized
from agjson.middleware.asgi.runs import OnDisconnect
from agjson.middleware.asgi.trust import Denial, PushPolicy, Trust

__all__ = [
    "AgentApp",
    "Authorize",
    "Denial",
    "Forbidden",
    "OnDisconnect",
    "PushPolicy",
    "Refusal",
    "Trust",
    "Unauthorized",
]
