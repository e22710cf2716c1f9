"""The ELMo modules of AllenNLP 0.9, with the same names, arguments, shapes and numbers.

LSTM state is carried from batch to batch, as in AllenNLP. The additional keyword `policy="reset"`
starts every sentence from the initial state, so that its vectors depend on nothing else.
"""

__all__ = ["__version__"]

__version__ = "0.9.0"  # of which these modules have the behavior
