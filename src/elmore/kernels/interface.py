"""The native libraries' C interface: the structs and functions of exports.cpp."""

import ctypes
from ctypes import POINTER, c_float, c_int32, c_int64, c_void_p

# Must equal elmore_interface() in exports.cpp.
INTERFACE = 4


class Matrix(ctypes.Structure):
    """`ElmoreMatrix` of exports.cpp."""

    _fields_ = (
        ("panels", c_void_p),
        ("scales", c_void_p),
        ("num_inputs", c_int64),
        ("num_panels", c_int64),
    )


class Layer(ctypes.Structure):
    """`ElmoreLayer` of exports.cpp."""

    _fields_ = (
        ("input", Matrix),
        ("state", Matrix),
        ("projection", Matrix),
        ("bias", c_void_p),
        ("cell_clip", c_float),
        ("output_clip", c_float),
        ("num_cells", c_int64),
        ("num_outputs", c_int64),
        ("precision", c_int32),
    )


class BackwardLayer(ctypes.Structure):
    """`ElmoreBackwardLayer` of exports.cpp."""

    _fields_ = (
        ("projection", Matrix),
        ("state", Matrix),
        ("cell_clip", c_float),
        ("output_clip", c_float),
        ("num_cells", c_int64),
        ("num_outputs", c_int64),
        ("precision", c_int32),
    )


class Saved(ctypes.Structure):
    """`ElmoreSaved` of exports.cpp."""

    _fields_ = tuple((name, c_void_p) for name in ("gates", "cells", "shown", "narrow"))


class Gradients(ctypes.Structure):
    """`ElmoreGradients` of exports.cpp."""

    _fields_ = tuple(
        (name, c_void_p)
        for name in (
            *("outputs", "last_hidden", "last_cell"),
            *("gates", "narrow", "first_hidden", "first_cell"),
        )
    )


SIGNATURES: dict[str, tuple[type, list[object]]] = {
    "elmore_interface": (c_int32, []),
    "elmore_panel": (c_int64, []),
    "elmore_packed_bytes": (c_int64, [c_int32, c_int64, c_int64]),
    "elmore_pack": (
        c_int32,
        [c_int32, c_void_p, c_int64, c_int64, c_int64, c_void_p, c_int64, c_void_p, c_void_p],
    ),
    "elmore_train": (
        c_int32,
        [
            *(POINTER(Layer), c_void_p, c_int64, c_void_p),  # layer, steps, their number, inputs
            *(
                c_void_p,
                c_void_p,
                c_void_p,
                c_void_p,
            ),  # first hidden and cell, last hidden and cell
            *(c_void_p, POINTER(Saved)),  # outputs
        ],
    ),
    "elmore_train_back": (
        c_int32,
        [
            *(POINTER(BackwardLayer), c_void_p, c_int64),  # layer, steps, their number
            *(POINTER(Saved), c_void_p, POINTER(Gradients)),  # first cell in between
        ],
    ),
    "elmore_take_exponents": (
        c_int32,
        [
            *(c_void_p, c_int64, c_int64),  # logits, rows, candidates
            *(c_void_p, c_void_p),  # columns and logits of the targets
            *(c_void_p, c_void_p, c_void_p),  # losses, gradients of the targets' logits, shares
        ],
    ),
    "elmore_linear": (
        c_int32,
        [
            *(c_int32, POINTER(Matrix), c_void_p),  # precision, matrix, bias
            *(c_void_p, c_int64, c_void_p, c_int64),  # inputs, rows, outputs, columns
            *(c_int64, c_int64),  # first and last panel
        ],
    ),
    "elmore_highway": (
        c_int32,
        [
            *(c_int32, POINTER(Matrix), c_void_p),  # precision, matrix, bias
            *(c_void_p, c_int64, c_void_p),  # inputs, rows, outputs
            *(c_int64, c_int64),  # first and last panel
        ],
    ),
    "elmore_strongest": (
        c_int32,
        [
            *(
                c_void_p,
                c_void_p,
                c_int64,
                c_int64,
            ),  # units, positions, numbers of tokens and chars
            *(c_void_p, c_int64, c_int64, c_int64),  # table, width, units, filters
            *(c_void_p, c_int64, c_void_p),  # strongest, stride, winners
        ],
    ),
    "elmore_scatter": (
        c_int32,
        [
            *(c_void_p, c_int64, c_int64, c_void_p),  # units, numbers of tokens and chars, winners
            *(c_void_p, c_int64),  # gradient, stride
            *(c_int64, c_int64, c_int64, c_void_p),  # width, units, filters, gradient of the table
        ],
    ),
    "elmore_read": (
        c_int32,
        [
            *(
                POINTER(Layer),
                c_int64,
                c_int32,
            ),  # layers, their number, residuals
            *(c_void_p, c_int64, c_void_p),  # sizes of steps, their number, positions
            *(c_void_p, c_int64),  # tokens, stride
            *(
                c_void_p,
                c_void_p,
                c_void_p,
                c_void_p,
            ),  # first hidden and cell, last hidden and cell
            *(c_void_p, c_int64, c_int64),  # outputs, strides of layers and rows
            c_int32,  # threads that share each step
        ],
    ),
}
