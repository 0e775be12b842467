"""Rows of the report from what was measured, as JSON lines and as the table of the README."""

import json
from statistics import median, quantiles

ROLES = ("proxy", "agent", "store", "launcher")
# The launcher only passes lines on: its CPU is shown, not added.
COUNTED = ("proxy", "agent", "store")


def ranged(values, digits=2):
    return {"median": round(median(values), digits), "min": round(min(values), digits), "max": round(max(values), digits)}


def cpu_us(one_round, roles=COUNTED):
    """CPU per request of these processes together."""
    return sum(one_round[part].get(role, 0) for part in ("user_us", "system_us") for role in roles)


def by_role(side, part, digits):
    return {role: ranged([r[part][role] for r in side.rounds], digits) for role in ROLES if role in side.pids}


def cpu_row(side, sides):
    row = {
        "row": side.row.id,
        "title": side.row.title,
        "requests_per_s": ranged([r["requests_per_s"] for r in side.rounds], 0),
        "requests_per_s_and_core": ranged([1e6 / cpu_us(r, ("proxy", "agent")) for r in side.rounds], 0),
        "cpu_us": {role: ranged([cpu_us(r, (role,)) for r in side.rounds], 1) for role in ROLES if role in side.pids},
        "cpu_us_total": ranged([cpu_us(r) for r in side.rounds], 1),
        "user_us": by_role(side, "user_us", 1),
        "system_us": by_role(side, "system_us", 1),
        "switches": by_role(side, "switches", 2),
        "cpu_of_others": ranged([r["others_cpu"] for r in side.rounds]),
        "cpu_ratio_to": {
            other: ranged([cpu_us(a) / cpu_us(b) for a, b in zip(side.rounds, sides[other].rounds)]) for other in side.row.over
        },
    }
    if "agent" in side.pids:
        plain = sides[side.row.over[0]].rounds
        row["agent_us_where_plain_costs_20"] = ranged([20 * cpu_us(a, ("agent",)) / cpu_us(b) for a, b in zip(side.rounds, plain)])
    return row


def latency_row(side, plain):
    times = [took for turn in side.turns_us for took in turn]
    row = {
        "row": f"latency-{side.row.id}",
        "title": side.row.title,
        "requests": len(times),
        "median_us": median(times),
        "p99_us": round(quantiles(times, n=100)[98]),
    }
    if side is not plain:
        base = [took for turn in plain.turns_us for took in turn]
        row["added_median_us"] = median(times) - median(base)
        row["added_p99_us"] = row["p99_us"] - round(quantiles(base, n=100)[98])
        row["added_median_by_turn_us"] = ranged([median(a) - median(b) for a, b in zip(side.turns_us, plain.turns_us)], 0)
    return row


def shown_ratio(row, kind):
    """Over the first row of that kind."""
    found = [ratio for other, ratio in row["cpu_ratio_to"].items() if other.startswith(kind)]
    return f"{found[0]['median']:.2f} ({found[0]['min']:.2f}-{found[0]['max']:.2f})" if found else ""


def print_cpu_table(rows):
    cpu = "CPU us/request: proxy | agent | Valkey | all | over plain HAProxy (range) | over nginx + Lua (range)"
    print(f"| | {cpu} | context switches a request: proxy, agent | requests/s | per core of proxy and agent |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        cpu = [row["cpu_us"][role]["median"] if role in row["cpu_us"] else "" for role in COUNTED]
        ratios = [shown_ratio(row, kind) for kind in ("plain", "nginx")]
        switches = ", ".join(f"{row['switches'][role]['median']:.2f}" for role in ("proxy", "agent") if role in row["switches"])
        speed = [f"{row[name]['median']:.0f}" for name in ("requests_per_s", "requests_per_s_and_core")]
        print("| " + " | ".join(map(str, [row["title"], *cpu, row["cpu_us_total"]["median"], *ratios, switches, *speed])) + " |")


def print_latency_table(rows):
    print("| at 300 requests/s on one connection | median | p99 | added median (range over turns) |")
    print("|---|---|---|---|")
    for row in rows:
        added = ""
        if "added_median_us" in row:
            by_turn = row["added_median_by_turn_us"]
            added = f"{row['added_median_us'] / 1000:.2f} ms ({by_turn['min'] / 1000:.2f}-{by_turn['max'] / 1000:.2f})"
        print(f"| {row['title']} | {row['median_us'] / 1000:.2f} ms | {row['p99_us'] / 1000:.2f} ms | {added} |")


def report(cpu_sides, latency_sides, plain_id, about, table):
    """cpu_sides, latency_sides: by row id."""
    cpu = [cpu_row(side, cpu_sides) for side in cpu_sides.values()]
    latency = [latency_row(side, latency_sides[plain_id]) for side in latency_sides.values()]
    for row in cpu + latency:
        print(json.dumps({**row, **about}))
    if not table:
        return
    programs = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    print(f"\n{about['date']}, {about['cores']} cores, {programs}, {about['rounds']} rounds of {about['seconds']} s\n")
    if cpu:
        print_cpu_table(cpu)
    if latency:
        print()
        print_latency_table(latency)
