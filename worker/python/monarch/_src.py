"""Where some programs of Monarch's find what monarch.actor has: monarch._src.actor.actor_mesh, endpoint and shape."""

from monarch import _places, _shapes, actor

_MESH = ("Accumulator", "Actor", "ActorError", "ActorMesh", "Channel", "Context", "Port", "PortReceiver", "RankedPortReceiver", "ValueMesh", "context",
         "current_actor_name", "current_rank", "current_size", "send")
_ENDPOINT = ("Endpoint", "EndpointProperty", "Extent", "endpoint")

_places.put(__name__, {
    "actor.actor_mesh": {name: getattr(actor, name) for name in _MESH},
    "actor.endpoint": {name: getattr(actor, name) for name in _ENDPOINT},
    "actor.shape": {
        "Extent": _shapes.Extent, "NDSlice": _shapes.Slice, "Point": _shapes.Point, "Region": _shapes.Region, "Shape": _shapes.Shape,
        "Slice": _shapes.Slice
    }
})
