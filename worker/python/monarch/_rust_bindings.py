"""Where programs of Monarch's find what they catch: monarch._rust_bindings.monarch_hyperactor.supervision."""

from monarch import _errors, _places

_places.put(__name__, {"monarch_hyperactor.supervision": {"MeshFailure": _errors.MeshFailure, "SupervisionError": _errors.SupervisionError}})
