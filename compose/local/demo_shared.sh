#!/bin/bash
# The demo of a shared limit: two agents decide in turn, one Valkey counts. Sourced by demo.sh.
#
# Each login is made alone, so that the agents' counters tell which of them decided it. What is shown is also checked: a
# limit that was not shared ends the demo with a failure.

VALKEY=${EDGE_VALKEY:-$ROOT/.deps/valkey-8/valkey-server}
VALKEY_PID=
LOGINS=6
# What the rule two-logins of compose/demo/policy.json lets through.
BURST=2
# Set by login.
AGENT=
STATUS=

valkey_answers() {
    local answer
    (exec 3<>"/dev/tcp/127.0.0.1/$((PORT + 3))" && printf 'PING\r\n' >&3 && read -r -t 1 answer <&3 &&
        [[ $answer == +PONG* ]]) 2>/dev/null
}

start_valkey() {
    [ -x "$VALKEY" ] || die "there is no Valkey yet; \`make demo VALKEY=1\` fetches it"
    mkdir -p "$STATE/valkey"
    start "$STATE/valkey.log" "$VALKEY" --bind 127.0.0.1 --port $((PORT + 3)) --save '' --appendonly no --dir "$STATE/valkey"
    VALKEY_PID=$!
    wait_for 10 valkey_answers || die "Valkey does not answer; see $STATE/valkey.log"
}

# Sum of a family of counters of agent $1.
counter() {
    curl -sf "http://127.0.0.1:$((PORT + 1010 + $1))/metrics" |
        awk -v name="$2" '{ split($1, family, "{") } family[1] == name { n += $2 } END { printf "%d\n", n }'
}

# Finds the agent whose number of decisions is no longer $1 or $2: it is counted when the request's record has come.
asked() {
    if [ "$(counter 0 edge_decisions_total)" != "$1" ]; then
        AGENT=0
    elif [ "$(counter 1 edge_decisions_total)" != "$2" ]; then
        AGENT=1
    else
        return 1
    fi
}

login() {
    local before0 before1
    before0=$(counter 0 edge_decisions_total)
    before1=$(counter 1 edge_decisions_total)
    STATUS=$(curl -s -o /dev/null -w '%{http_code}' -X POST "http://127.0.0.1:$PORT/api/login")
    wait_for 5 asked "$before0" "$before1" || die "no agent decided a login (answer $STATUS); see $STATE/edge.log"
}

# Makes the logins and prints a line for each. Sets PASSED, and BY0 and BY1: how many each agent decided.
logins() {
    local i
    PASSED=0 BY0=0 BY1=0
    printf '\n  login   decided by   answer\n'
    for ((i = 1; i <= LOGINS; i++)); do
        login
        printf '  %5d   agent %d      %s\n' "$i" "$AGENT" "$STATUS"
        if [ "$AGENT" = 0 ]; then BY0=$((BY0 + 1)); else BY1=$((BY1 + 1)); fi
        if [ "$STATUS" = 200 ]; then PASSED=$((PASSED + 1)); fi
    done
    printf '\n'
}

failed_open() { echo $(($(counter 0 edge_ratelimit_failed_open_total) + $(counter 1 edge_ratelimit_failed_open_total))); }

# Four in a row: each of two agents asked in turn has found its Valkey again.
limited_again() {
    local i
    for i in 1 2 3 4; do
        login
        [ "$STATUS" = 429 ] || return 1
    done
}

show_shared() {
    local before
    say "$LOGINS logins of one client. The rule two-logins lets $BURST through; both agents decide, Valkey counts:"
    logins
    if [ "$BY0" = 0 ] || [ "$BY1" = 0 ]; then die "one agent decided all of them: this shows nothing"; fi
    [ "$PASSED" = "$BURST" ] || die "$PASSED logins passed where $BURST may: the agents do not share the limit"
    say "$PASSED passed in all, although agent 0 decided $BY0 and agent 1 decided $BY1"
    before=$(failed_open)
    kill -STOP "$VALKEY_PID"
    say "Valkey is frozen now (SIGSTOP); the rule says fail_mode open, so the same client's logins pass:"
    logins
    [ "$PASSED" = "$LOGINS" ] || die "only $PASSED of $LOGINS logins passed while Valkey was frozen"
    say "$PASSED passed; edge_ratelimit_failed_open_total went up by $(($(failed_open) - before))"
    kill -CONT "$VALKEY_PID"
    wait_for 20 limited_again || die "Valkey runs again, but logins are still let through"
    say "Valkey runs again (SIGCONT), what it had counted still holds: the client's logins are refused, by both agents"
}
