"""The cases of `benchmarks/engine.py`: the work, the contestants and their references."""

from collections.abc import Callable, Iterator
from functools import partial

import torch

from benchmarks.bench import (
    LIMIT,
    PEERS,
    PEERS_SORTED,
    Bench,
    Row,
    cold_contestant,
    cold_flops,
    count_tokens,
    make_row,
    peers_contestant,
    peers_flops,
    sort_sentences,
    warm_contestant,
)
from benchmarks.models import (
    CONFIGS,
    convolution_flops,
    count_steps,
    lstm_flops,
    table_flops,
)
from benchmarks.sentences import choose_window, choose_words
from benchmarks.timing import Contestant, take_turns
from benchmarks.training_case import training
from elmore.embed.embedder import Embedder
from elmore.kernels.threads import for_native_calls
from elmore.model.packing import to_padded
from elmore.text.batches import NUM_MARKERS

NUM_DISTINCT_WORDS = 864


def lstm_part(bench: Bench) -> Iterator[Row]:
    """a: the LSTMs of `original` over 32 sentences, given their token vectors."""
    model, peers = bench.model("original"), bench.peers("original")
    lengths = torch.tensor([len(sentence) + NUM_MARKERS for sentence in bench.window])
    tokens = torch.randn(int(lengths.sum()), model.config.lstm.output_dim)
    padded, mask = to_padded(tokens, lengths)
    with torch.inference_mode():
        difference = model.bilm.contextualize(tokens, lengths).layers
        difference = difference - peers.contextualize(padded, lengths)[:, mask]
        bench.note(f"a: the two results differ by at most {difference.abs().max():.1e}")
        timings = bench.race(
            Contestant(name=PEERS, run=partial(peers.contextualize, padded, lengths)),
            Contestant(name="elmore f32", run=partial(model.bilm.contextualize, tokens, lengths)),
        )
    flops = lstm_flops(model.config, int(lengths.sum()))
    num_tokens = count_tokens(bench.window)
    for contestant, against in ((PEERS, None), ("elmore f32", LIMIT), ("elmore f32", PEERS)):
        yield make_row("a", timings, contestant, against, num_tokens=num_tokens, flops=flops)


def original_corpus(bench: Bench) -> Iterator[Row]:
    """b: `original` from tokens to layers, with an empty or full cache of token vectors."""
    sentences, config = bench.corpus("original"), CONFIGS["original"]
    cold, warm = Embedder(bench.model("original")), Embedder(bench.model("original"))
    timings = bench.race(
        peers_contestant(bench, "original", sentences),
        peers_contestant(bench, "original", sort_sentences(sentences), name=PEERS_SORTED),
        cold_contestant("elmore f32, cold", cold, sentences),
        warm_contestant("elmore f32, warm", warm, sentences),
    )
    flops = {
        PEERS: peers_flops(config, sentences),
        PEERS_SORTED: peers_flops(config, sort_sentences(sentences)),
        "elmore f32, cold": cold_flops(config, sentences),
        "elmore f32, warm": lstm_flops(config, count_steps(sentences)),
    }
    num_tokens = count_tokens(sentences)
    for name in (PEERS, PEERS_SORTED):
        yield make_row("b", timings, name, num_tokens=num_tokens, flops=flops[name])
    for name in ("elmore f32, cold", "elmore f32, warm"):
        for against in (LIMIT, PEERS, PEERS_SORTED):
            yield make_row("b", timings, name, against, num_tokens=num_tokens, flops=flops[name])


def precisions(bench: Bench) -> Iterator[Row]:
    """c: `original` in bf16 and int8 compared with elmore's own f32, with a full cache."""
    sentences = bench.corpus("original")
    embedders = bench.embedders("original")
    names = [f"elmore {precision}" for precision in embedders]
    timings = bench.race(
        *(
            warm_contestant(name, embedder, sentences)
            for name, embedder in zip(names, embedders.values(), strict=True)
        )
    )
    flops = lstm_flops(CONFIGS["original"], count_steps(sentences))
    for name in names:
        against = None if name == "elmore f32" else "elmore f32"
        num_tokens = count_tokens(sentences)
        yield make_row("c", timings, name, against, num_tokens=num_tokens, flops=flops)


def one_sentence(bench: Bench) -> Iterator[Row]:
    """d: the latency of one sentence of 25 tokens."""
    sentences = choose_window(bench.sentences, num_sentences=1, mean_tokens=25)
    config = CONFIGS["original"]
    contestants = [peers_contestant(bench, "original", sentences)]
    flops = {PEERS: peers_flops(config, sentences)}
    warm_ones, cold_ones = bench.embedders("original"), bench.embedders("original")
    for precision in warm_ones:
        name = f"elmore {precision}"
        contestants.append(warm_contestant(f"{name}, warm", warm_ones[precision], sentences))
        contestants.append(cold_contestant(f"{name}, cold", cold_ones[precision], sentences))
        flops[f"{name}, warm"] = lstm_flops(config, count_steps(sentences))
        flops[f"{name}, cold"] = cold_flops(config, sentences)
    timings = bench.race(*contestants, times=3)
    num_tokens = count_tokens(sentences)
    for name in timings:
        against = None if name == PEERS else PEERS
        yield make_row("d", timings, name, against, num_tokens=num_tokens, flops=flops[name])


def small_corpus(bench: Bench) -> Iterator[Row]:
    """e: `small` over a long text; each word is encoded when it first occurs."""
    sentences, config = bench.corpus("small"), CONFIGS["small"]
    elmore = "elmore f32, cold"
    timings = bench.race(
        peers_contestant(bench, "small", sentences),
        peers_contestant(bench, "small", sort_sentences(sentences), name=PEERS_SORTED),
        cold_contestant(elmore, Embedder(bench.model("small")), sentences),
    )
    flops = {
        PEERS: peers_flops(config, sentences),
        PEERS_SORTED: peers_flops(config, sort_sentences(sentences)),
        elmore: cold_flops(config, sentences),
    }
    num_tokens = count_tokens(sentences)
    for name in (PEERS, PEERS_SORTED):
        yield make_row("e", timings, name, num_tokens=num_tokens, flops=flops[name])
    for against in (LIMIT, PEERS, PEERS_SORTED):
        yield make_row("e", timings, elmore, against, num_tokens=num_tokens, flops=flops[elmore])


def character_cnn(bench: Bench) -> Iterator[Row]:
    """g: the convolution alone over distinct words, with one thread and with all.

    elmore's method leaves all threads to native code, as in training.
    """
    model, peers = bench.model("original"), bench.peers("original")
    words = choose_words(bench.sentences, num_words=NUM_DISTINCT_WORDS)
    char_ids = model.speller.spell(words).char_ids
    assert char_ids is not None
    ids_of_peers = char_ids + 1
    characters = model.bilm.token_encoder.characters
    flops_of_peers = convolution_flops(model.config, len(words))
    flops = table_flops(model.config, words)

    def run_natively() -> torch.Tensor:
        with for_native_calls():
            return characters(char_ids)  # type: ignore[no-any-return]

    all_threads = torch.get_num_threads()
    for threads in sorted({1, all_threads}):
        prepare = partial(torch.set_num_threads, threads)
        with torch.inference_mode():
            timings = take_turns(
                [
                    Contestant(
                        name=PEERS,
                        prepare=prepare,
                        run=partial(peers.token_encoder.characters, ids_of_peers),
                    ),
                    Contestant(name="elmore f32", prepare=prepare, run=run_natively),
                ],
                repeats=3 * bench.repeats,
            )
        torch.set_num_threads(all_threads)
        case, num_tokens = f"g threads: {threads}", len(words)
        yield make_row(case, timings, PEERS, num_tokens=num_tokens, flops=flops_of_peers)
        yield make_row(case, timings, "elmore f32", PEERS, num_tokens=num_tokens, flops=flops)


CASES: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "a": lstm_part,
    "b": original_corpus,
    "c": precisions,
    "d": one_sentence,
    "e": small_corpus,
    "f-original": partial(training, name="original"),
    "f-small": partial(training, name="small"),
    "g": character_cnn,
}
