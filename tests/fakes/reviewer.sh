#!/bin/sh
# A reviewer with scripted behaviour instead of a model: `reviewer.sh BEHAVIOUR [WORD…]`. The daemon starts it like any
# agent's command; the environment gives its name, workspace and brief. Each start appends a line to $FAKE_NOTES, so
# that tests can count them.
set -u
# `silent` ignores requests to end.
[ "$1" != silent ] || trap '' TERM HUP INT
echo "$1 $$" >> "$FAKE_NOTES"

# The first value of a field of the brief.
asked() { sed -n "s/^$1: *//p" "$SETTLED_BRIEF" | head -n 1 | tr -d "'\""; }

# A blocking finding with a different title in each round.
finding() { printf 'findings:\n- {severity: P1, title: "%s", file: src/%s.rs, line: 1}\n' "$1" "$2"; }

case "$1" in
agree)
    # Standard input is the prompt, in which the daemon names the brief.
    grep -q "$SETTLED_BRIEF" || exit 8
    echo "Nothing is left to say."
    echo PASS ;;
schema)
    cat > /dev/null
    printf '%s\n' "$2" ;;
command)
    settled lgtm "$(asked pr)" > /dev/null ;;
argue)
    # Reports a finding in the first round and never withdraws it.
    if [ "$(asked round)" = 1 ]; then
        finding "the lock is never released" lock | settled feedback --findings -
    else
        settled feedback --action F-1-001=reply
    fi ;;
nag)
    # A new finding in each round.
    round=$(asked round)
    { finding "trouble number $round" "part$round"; echo 'threads: {F-1-001: escalate}'; } > "$FAKE_NOTES.$$"
    if [ "$round" = 1 ]; then sed -i '$d' "$FAKE_NOTES.$$"; fi
    settled feedback --findings "$FAKE_NOTES.$$" ;;
flip)
    # A different stance each time, so that none is ever repeated.
    if [ "$(asked round)" = 1 ]; then
        finding "the lock is never released" lock | settled feedback --findings -
    else
        stance=$(if [ $(($(asked round) % 2)) = 0 ]; then echo accepts; else echo seeks_change; fi)
        printf 'findings: []\nthreads: {F-1-001: {action: reply, stance: %s}}\n' "$stance" |
            settled feedback --findings - ||
            settled feedback --action F-1-001=escalate
    fi ;;
silent)
    while :; do sleep 1; done ;;
crash)
    kill -SEGV $$ ;;
code)
    echo PASS
    exit 3 ;;
print)
    # Prints one text on standard output and another on standard error, and exits with a code.
    printf '%s\n' "$2"
    printf '%b\n' "$3" >&2
    exit "$4" ;;
prose)
    echo "If you ask me, this can be merged. I would say PASS"
    echo "That is my verdict." ;;
done)
    echo DONE ;;
fail)
    echo FAIL ;;
flood)
    # More output than the keeper stores, with a verdict at its end.
    head -c 8500000 /dev/zero | tr '\0' 'x'
    echo; echo PASS ;;
endless)
    while :; do echo "still at it"; done ;;
turns)
    # A known stream format, with endless turns.
    n=0
    while :; do
        n=$((n + 1))
        echo "{\"type\":\"assistant\",\"message\":{\"id\":\"msg_$n\"},\"parent_tool_use_id\":null}"
        sleep 0.02
    done ;;
burn)
    # Reports this many tokens for each of endless answers.
    n=0
    while :; do
        n=$((n + 1))
        echo "{\"type\":\"assistant\",\"message\":{\"id\":\"msg_$n\",\"usage\":{\"input_tokens\":$2}},\"parent_tool_use_id\":null}"
        sleep 0.05
    done ;;
spoof)
    # An approval in another agent's name, in its own outbox and, if possible, in the other's inbox.
    name=$SETTLED_ROOT/agents/$SETTLED_AGENT/outbox/spoof.yaml
    sed "s/^from: .*/from: gemini/" "$2" > "$name.tmp"
    mv "$name.tmp" "$name"
    cp "$2" "$SETTLED_ROOT/agents/claude/inbox/spoof.yaml" ;;
half)
    # A message cut in the middle, in place.
    head -c 120 "$2" > "$SETTLED_ROOT/agents/$SETTLED_AGENT/outbox/half.yaml" ;;
outlive)
    # Children that leave the group and the session, close everything, lose their parent and ignore signals.
    for n in 1 2 3; do
        setsid sh -c 'trap "" TERM HUP INT; (trap "" TERM HUP INT; echo $$ >> "$0"; exec sleep 600) & exec sleep 600' \
            "$FAKE_NOTES.children" < /dev/null > /dev/null 2>&1 &
    done
    env -i sh -c '(trap "" TERM; echo $$ >> "$0"; setsid sleep 600 & wait) &' "$FAKE_NOTES.children" \
        < /dev/null > /dev/null 2>&1
    while [ "$(wc -l < "$FAKE_NOTES.children" 2> /dev/null || echo 0)" -lt 4 ]; do sleep 0.01; done
    if [ "$2" = hang ]; then sleep 600; fi
    echo PASS ;;
murder)
    # Kills its keeper, so that its child, in a session of its own, seems unowned.
    setsid sh -c 'trap "" TERM; echo $$ >> "$0"; for _ in $(seq 600); do sleep 1; done' "$FAKE_NOTES.children" \
        < /dev/null > /dev/null 2>&1 &
    while [ ! -s "$FAKE_NOTES.children" ]; do sleep 0.01; done
    kill -KILL $PPID
    sleep 600 ;;
wait)
    # Works until the file exists, at most a minute, so that nothing outlives the test.
    for _ in $(seq 6000); do
        if [ -e "$2" ]; then break; fi
        sleep 0.01
    done
    echo PASS ;;
*)
    echo "no such behaviour: $1" >&2
    exit 9 ;;
esac
