from elmore.compat.allennlp.data.token_indexers.elmo_indexer import ELMoCharacterMapper

__all__ = ["ELMoCharacterMapper"]
