"""Two machines on one: network namespaces joined by a cable, each with its own torchrun.

    unshare -rnm python -m tests.lm.two_machines SCENARIO SETTINGS CORPUS OUT

Runs `elmore pretrain` on both, kills something, and prints what happened as JSON.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

MOST_SECONDS = 150.0
# How soon a lost machine is noticed: 3 missed signs of life, 2 seconds apart.
RENDEZVOUS = "join_timeout=30,keep_alive_interval=2,keep_alive_max_attempt=3,read_timeout=20"


def lay_cable() -> None:
    """Make two network namespaces with an address each."""
    commands = ["mount -t tmpfs tmpfs /run", "ip link set lo up"]
    commands += ["ip link add cable1 type veth peer name cable2"]
    for number in (1, 2):
        node = f"node{number}"
        commands += [
            f"ip netns add {node}",
            f"ip link set cable{number} netns {node}",
            f"ip -n {node} link set lo up",
            f"ip -n {node} addr add 10.0.0.{number}/24 dev cable{number}",
            f"ip -n {node} link set cable{number} up",
        ]
    for command in commands:
        subprocess.run(command.split(), check=True)


class Machine:
    """A namespace in which torchrun is started."""

    def __init__(self, number: int, arguments: list[str], log: Path, *, restarts: int) -> None:
        self.log = log
        command = [
            *("ip", "netns", "exec", f"node{number}"),
            *(sys.executable, "-m", "torch.distributed.run", "--nnodes", "2"),
            *("--nproc-per-node", "1", "--max-restarts", str(restarts)),
            *("--rdzv-backend", "c10d", "--rdzv-endpoint", "10.0.0.1:29400"),
            *(
                "--rdzv-conf",
                f"{RENDEZVOUS},is_host={int(number == 1)}",
                "--local-addr",
                f"10.0.0.{number}",
            ),
            *("-m", "elmore", "pretrain", *arguments),
        ]
        variables = {
            "GLOO_SOCKET_IFNAME": f"cable{number}",
            "OMP_NUM_THREADS": "1",
            # Otherwise a machine that replaces another one waits in vain (torch 2.13): the others
            # do not publish the address of the first process again.
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        }
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                command,
                stdout=file,
                stderr=file,
                env={**os.environ, **variables},
                start_new_session=True,
            )

    def find_worker(self) -> int | None:
        """Return the process that trains."""
        listed = subprocess.run(
            ["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True
        ).stdout
        rows = [line.split(maxsplit=2) for line in listed.splitlines()]
        family = {self.process.pid}
        for _ in range(4):
            family |= {int(row[0]) for row in rows if int(row[1]) in family}
        workers = [
            int(row[0])
            for row in rows
            if int(row[0]) in family and "pretrain" in row[2] and "distributed.run" not in row[2]
        ]
        return workers[0] if workers else None

    def pull_plug(self) -> None:
        """Kill every process of the machine."""
        worker = self.find_worker()
        os.killpg(self.process.pid, signal.SIGKILL)
        if worker is not None:
            os.kill(worker, signal.SIGKILL)

    def wait(self, seconds: float = MOST_SECONDS) -> int | None:
        """Return the exit status; None if it is still running then."""
        try:
            return self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None


def last_step(out: Path) -> int:
    path = out / "metrics.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return max((json.loads(line)["step"] for line in lines if line.endswith("}")), default=0)


def wait_for_step(out: Path, step: int) -> None:
    end = time.monotonic() + MOST_SECONDS
    while last_step(out) < step:
        if time.monotonic() > end:
            sys.exit(f"waited {MOST_SECONDS:.0f} seconds for step {step}")
        time.sleep(0.05)


def main(scenario: str, settings: str, corpus: str, out: Path) -> None:
    """Play a scenario; print the statuses of both machines and the seconds since the kill."""
    lay_cable()
    arguments = [settings, "--corpus", corpus, "--out", str(out)]
    logs = [out.with_name(f"{out.name}-node{number}.log") for number in (1, 2)]

    def start(number: int) -> Machine:
        return Machine(number, arguments, logs[number - 1], restarts=3)

    machines = [start(1), start(2)]
    started = time.monotonic()
    try:
        if scenario != "undisturbed":
            wait_for_step(out, 3)
        started = time.monotonic()
        killed_at = last_step(out)
        match scenario:
            case "worker":
                worker = machines[1].find_worker()
                assert worker is not None
                os.kill(worker, signal.SIGKILL)
            case "machine, replaced":
                machines[1].pull_plug()
                time.sleep(3)
                machines[1] = start(2)
            case "machine":
                machines[1].pull_plug()
            case "rendezvous":
                machines[0].pull_plug()
        if scenario == "machine":
            statuses = [machines[0].wait(), None]
        elif scenario == "rendezvous":
            statuses = [None, machines[1].wait()]
        else:
            statuses = [machine.wait() for machine in machines]
        facts = {"statuses": statuses, "seconds": time.monotonic() - started, "step": killed_at}
        if scenario in ("machine", "rendezvous"):  # rerun the commands to resume
            machines += [start(1), start(2)]
            facts["resumed"] = [machine.wait() for machine in machines[2:]]
        print(json.dumps(facts))
    finally:
        for machine in machines:
            if machine.process.poll() is None:
                machine.pull_plug()


if __name__ == "__main__":
    main(*sys.argv[1:4], Path(sys.argv[4]))
