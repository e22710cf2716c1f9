"""Measure elmore's speed compared with the machine's peak and with the peers' method.

    python -m benchmarks.engine [--text FILE] [--cases a b ...] [--repeats 5] [--json PATH]

Prints a Markdown table. All contestants of a case run in turns in one process, and medians
are compared. Weights are random; without a text, so are the words. Tokens do not include markers,
but the work on the two markers of each sentence counts. Takes some minutes per repeat.

The cases are described in `benchmarks/engine_cases.py`, the peers' method in
`benchmarks/peers_method.py`. With --profile, case b is run once more to see where the time goes.
"""

import argparse
import json
import os
import shlex
import sys
from pathlib import Path

import torch

from benchmarks.bench import LIMIT, PEERS, Bench, Row, count_tokens
from benchmarks.engine_cases import CASES
from benchmarks.machine import GemmLimit, describe_machine
from benchmarks.profile_run import profile_embedding
from benchmarks.sentences import load_sentences

# (case, contestant, compared with): a fraction of the limit, or a speedup.
WANTED = {
    ("a", "elmore f32", LIMIT): 0.75,
    ("b", "elmore f32, cold", LIMIT): 0.60,
    ("b", "elmore f32, warm", LIMIT): 0.70,
    ("c", "elmore bf16", "elmore f32"): 1.7,
    ("c", "elmore int8", "elmore f32"): 3.0,
    ("d", "elmore f32, warm", PEERS): 5.0,
    ("d", "elmore f32, cold", PEERS): 5.0,
    ("d", "elmore bf16, warm", PEERS): 12.0,
    ("d", "elmore bf16, cold", PEERS): 12.0,
    ("d", "elmore int8, warm", PEERS): 25.0,
    ("d", "elmore int8, cold", PEERS): 25.0,
    ("e", "elmore f32, cold", PEERS): 10.0,
    ("f original", "elmore f32", PEERS): 2.5,
    ("f small", "elmore f32", PEERS): 6.0,
    ("g", "elmore f32", PEERS): 50.0,
}


def main() -> None:
    arguments = parse_arguments()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    load_before = os.getloadavg()[0]
    limit = GemmLimit()
    for _ in range(5):
        limit.look()
    most_tokens = max(arguments.original_tokens, arguments.small_tokens)
    bench = Bench(
        sentences=load_sentences(arguments.text, num_tokens=max(most_tokens, 20_000)),
        repeats=arguments.repeats,
        original_tokens=arguments.original_tokens,
        small_tokens=arguments.small_tokens,
        limit=limit,
    )
    rows = run_cases(bench, arguments.cases)
    command = shlex.join(["python", "-m", "benchmarks.engine", *sys.argv[1:]])
    facts = {
        **describe_machine(),
        "load before": f"{load_before:.1f}; above 0.5, others disturb what uses all cores",
        **describe_run(bench),
        "command": f"`{command}`",
    }
    print_report(facts, rows, bench)
    if arguments.json:
        write_json(arguments.json, facts, rows, bench)
    if arguments.profile:
        print(profile_embedding(bench.model("original"), bench.corpus("original")))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine")
    parser.add_argument("--text", type=Path, help="plain text; default: generated words")
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, help="threads of torch; default: its own choice")
    parser.add_argument("--original-tokens", type=int, default=3_000, help="corpus of b and c")
    parser.add_argument("--small-tokens", type=int, default=20_000, help="corpus of e")
    parser.add_argument("--json", type=Path, help="write the table and every sample here too")
    parser.add_argument("--profile", action="store_true", help="show where case b spends its time")
    return parser.parse_args()


def run_cases(bench: Bench, names: list[str]) -> list[Row]:
    rows = []
    for name in names:
        print(f"case {name} ...", file=sys.stderr, flush=True)
        rows += CASES[name](bench)
    return rows


def describe_run(bench: Bench) -> dict[str, str]:
    best = "; ".join(f"{name} {gflops:.0f}" for name, gflops in bench.limit.best.items())
    window = bench.window
    longest = max(map(len, window))
    return {
        "limit (fastest f32 product)": f"{bench.limit.gflops:.0f} GFLOP/s ({best})",
        "32 sentences (a, f)": f"{count_tokens(window)} tokens, the longest {longest}",
        "repeats": str(bench.repeats),
    }


def print_report(facts: dict[str, str], rows: list[Row], bench: Bench) -> None:
    for name, fact in facts.items():
        print(f"- {name}: {fact}")
    print()
    print(
        "| case | method | tokens | time, ms | tokens/s | GFLOP/s | compared with | ratio ", end=""
    )
    print("| target | met |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        print(format_row(row, bench.limit.gflops))
    if bench.notes:
        print()
    for note in bench.notes:
        print(f"- {note}")


def format_row(row: Row, limit_gflops: float) -> str:
    ratio, wanted = row.ratio(limit_gflops), find_wanted(row)
    cells = [
        row.case,
        row.contestant,
        f"{row.num_tokens:,}",
        f"{1000 * row.timing.median:,.1f}",
        f"{row.num_tokens / row.timing.median:,.0f}",
        f"{row.gflops:.1f}",
        row.against or "",
        "" if ratio is None else format_ratio(ratio, row.against),
        "" if wanted is None else format_ratio(wanted, row.against),
        "" if ratio is None or wanted is None else "yes" if ratio >= wanted else "no",
    ]
    return f"| {' | '.join(cells)} |"


def find_wanted(row: Row) -> float | None:
    case = "g" if row.case.startswith("g ") else row.case
    return WANTED.get((case, row.contestant, row.against or ""))


def format_ratio(ratio: float, against: str | None) -> str:
    return f"{ratio:.0%}" if against == LIMIT else f"{ratio:.2f}x"


def write_json(path: Path, facts: dict[str, str], rows: list[Row], bench: Bench) -> None:
    limit = bench.limit.gflops
    table = [
        {
            "case": row.case,
            "contestant": row.contestant,
            "tokens": row.num_tokens,
            "flops": row.flops,
            "median_seconds": row.timing.median,
            "seconds": row.timing.seconds,
            "against": row.against,
            "ratio": row.ratio(limit),
            "wanted": find_wanted(row),
        }
        for row in rows
    ]
    report = {"facts": facts, "limit_gflops": limit, "rows": table, "notes": bench.notes}
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
