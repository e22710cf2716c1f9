"""ELMo models as ONNX files, which run without torch and without elmore: onnxruntime, browsers.

from elmore.export.onnx import write_onnx
write_onnx(elmore.load_model(), "english.onnx")
"""

from elmore import require_extra

require_extra("onnx", needed_for="exporting to ONNX")

from elmore.export.onnx.file import write_onnx  # noqa: E402
from elmore.export.onnx.network import make_onnx  # noqa: E402

__all__ = ["make_onnx", "write_onnx"]
