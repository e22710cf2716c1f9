from elmore.compat.allennlp.modules.elmo import Elmo
from elmore.compat.allennlp.modules.scalar_mix import ScalarMix

__all__ = ["Elmo", "ScalarMix"]
