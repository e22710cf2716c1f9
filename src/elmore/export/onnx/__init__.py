"""ELMo models as ONNX files, which run without torch and without elmore: onnxruntime, browsers.

from elmore.export.onnx import write_onnx
write_onnx(elmore.load_model(), "english.onnx")
"""

from elmore import MissingExtraError
from elmore.integrations.required import check_version

_NEEDED_FOR = "exporting to ONNX"

try:
    import onnx as _onnx
    import onnxruntime as _onnxruntime
except ImportError as error:
    raise MissingExtraError(needed_for=_NEEDED_FOR, extra="onnx") from error

for _module, _at_least in ((_onnx, (1, 17)), (_onnxruntime, (1, 20))):
    check_version(
        _module.__name__,
        _module.__version__,
        needed_for=_NEEDED_FOR,
        extra="onnx",
        at_least=_at_least,
    )

from elmore.export.onnx.file import write_onnx  # noqa: E402
from elmore.export.onnx.network import make_onnx  # noqa: E402

__all__ = ["make_onnx", "write_onnx"]
