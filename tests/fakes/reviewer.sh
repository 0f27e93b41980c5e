#!/bin/sh
# A reviewer with scripted behaviour, in place of a model: `reviewer.sh BEHAVIOUR [WORD…]`. The daemon starts it like
# any agent's command; it knows its name, its workspace and its brief from the environment. Each start leaves a line
# in $FAKE_NOTES, so that a test can count them.
set -u
# Not even a request to end moves this one.
[ "$1" != silent ] || trap '' TERM HUP INT
echo "$1 $$" >> "$FAKE_NOTES"

# The first value of a field of the brief.
asked() { sed -n "s/^$1: *//p" "$SETTLED_BRIEF" | head -n 1 | tr -d "'\""; }

# A finding that blocks, under a title of its own in each round.
finding() { printf 'findings:\n- {severity: P1, title: "%s", file: src/%s.rs, line: 1}\n' "$1" "$2"; }

case "$1" in
agree)
    # What is read on standard input is the prompt; that it names the brief is the daemon's word.
    grep -q "$SETTLED_BRIEF" || exit 8
    echo "Nothing is left to say."
    echo PASS ;;
schema)
    cat > /dev/null
    printf '%s\n' "$2" ;;
command)
    settled lgtm "$(asked pr)" > /dev/null ;;
argue)
    # Finds something in the first round and takes back nothing, whatever it is told.
    if [ "$(asked round)" = 1 ]; then
        finding "the lock is never released" lock | settled feedback --findings -
    else
        settled feedback --action F-1-001=reply
    fi ;;
nag)
    # Something new in each round.
    round=$(asked round)
    { finding "trouble number $round" "part$round"; echo 'threads: {F-1-001: escalate}'; } > "$FAKE_NOTES.$$"
    if [ "$round" = 1 ]; then sed -i '$d' "$FAKE_NOTES.$$"; fi
    settled feedback --findings "$FAKE_NOTES.$$" ;;
flip)
    # Another stance each time, so that none is ever held.
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
    # Prints this on standard output, and that on standard error, and ends with a code.
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
    # More than is ever kept, and a verdict at its end.
    head -c 8500000 /dev/zero | tr '\0' 'x'
    echo; echo PASS ;;
endless)
    while :; do echo "still at it"; done ;;
turns)
    # A form that is known, with turns that never end.
    n=0
    while :; do
        n=$((n + 1))
        echo "{\"type\":\"assistant\",\"message\":{\"id\":\"msg_$n\"},\"parent_tool_use_id\":null}"
        sleep 0.02
    done ;;
burn)
    # Says that each of its answers took so many tokens, without an end.
    n=0
    while :; do
        n=$((n + 1))
        echo "{\"type\":\"assistant\",\"message\":{\"id\":\"msg_$n\",\"usage\":{\"input_tokens\":$2}},\"parent_tool_use_id\":null}"
        sleep 0.05
    done ;;
spoof)
    # An approval in the name of another agent, in its own outbox and, where it can, in the other's inbox.
    name=$SETTLED_ROOT/agents/$SETTLED_AGENT/outbox/spoof.yaml
    sed "s/^from: .*/from: gemini/" "$2" > "$name.tmp"
    mv "$name.tmp" "$name"
    cp "$2" "$SETTLED_ROOT/agents/claude/inbox/spoof.yaml" ;;
half)
    # A message cut in the middle, in place.
    head -c 120 "$2" > "$SETTLED_ROOT/agents/$SETTLED_AGENT/outbox/half.yaml" ;;
outlive)
    # Children that leave the group and the session, close everything, lose their parent and hear no signal.
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
    # Kills whoever keeps it, so that its child, in a session of its own, seems to be nobody's.
    setsid sh -c 'trap "" TERM; echo $$ >> "$0"; for _ in $(seq 600); do sleep 1; done' "$FAKE_NOTES.children" \
        < /dev/null > /dev/null 2>&1 &
    while [ ! -s "$FAKE_NOTES.children" ]; do sleep 0.01; done
    kill -KILL $PPID
    sleep 600 ;;
wait)
    # At work until the file is there.
    # For a minute at most: nothing of a test outlives it.
    for _ in $(seq 6000); do
        if [ -e "$2" ]; then break; fi
        sleep 0.01
    done
    echo PASS ;;
*)
    echo "no such behaviour: $1" >&2
    exit 9 ;;
esac
