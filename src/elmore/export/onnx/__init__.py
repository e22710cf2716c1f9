"""ELMo models as ONNX files, which run without torch and without elmore: onnxruntime, browsers.

from elmore.export.onnx import write_onnx
write_onnx(elmore.load_model(), "english.onnx")
"""

from elmore import MissingExtraError

try:
    import onnx as _onnx  # noqa: F401
    import onnxruntime as _onnxruntime  # noqa: F401
except ImportError as error:
    raise MissingExtraError(needed_for="exporting to ONNX", extra="onnx") from error

from elmore.export.onnx.file import write_onnx
from elmore.export.onnx.network import make_onnx

__all__ = ["make_onnx", "write_onnx"]
