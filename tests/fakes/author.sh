#!/bin/sh
# An author with scripted behaviour instead of a model: `author.sh BEHAVIOUR`. `settled pair` starts it like any
# author's command; the environment gives its name, workspace, task and mail. Each start appends a line to $FAKE_NOTES,
# so that tests can count them.
set -u
echo "author $1 $$" >> "$FAKE_NOTES"

case "$1" in
done)
    # Standard input is the prompt, in which the driver names the task.
    grep -q "$SETTLED_TASK" || exit 8
    echo DONE ;;
pass)
    # It cannot approve its own work.
    echo PASS ;;
never)
    echo "There is always more to do." ;;
fail)
    echo FAIL ;;
crash)
    kill -SEGV $$ ;;
once)
    # Crashes the first time only.
    if [ "$(grep -c '^author once' "$FAKE_NOTES")" = 1 ]; then exit 7; fi
    echo DONE ;;
review)
    # Requests a review, and answers all feedback by saying that everything is addressed.
    feedback=$(grep -l '^type: review_feedback' "$SETTLED_MAIL"/*.yaml 2> /dev/null | tail -n 1)
    ask() {
        settled send review_request --to codex --pr 86 --branch change --diff-summary "a change" \
            --max-turns-reviewer 8 --max-runtime-s-reviewer 60 --id "$1"
    }
    if [ -n "$feedback" ]; then
        round=$(sed -n 's/^ *round: *//p' "$feedback" | head -n 1)
        settled send review_addressed --to codex --pr 86 --commit-sha abc1234 --changes-summary "nothing was wrong" \
            --round "$round" --id "addressed-$round"
        ask "request-after-$round"
    elif [ "$(grep -c '^author review' "$FAKE_NOTES")" = 1 ]; then
        ask request-first
    fi
    echo "That is all for now." ;;
mail)
    # Prints the number of its messages.
    echo "mail: $(ls "$SETTLED_MAIL" | wc -l)"
    echo DONE ;;
wait)
    # Works until the file exists, at most a minute.
    for _ in $(seq 6000); do
        if [ -e "$2" ]; then break; fi
        sleep 0.01
    done
    echo DONE ;;
*)
    echo "no such behaviour: $1" >&2
    exit 9 ;;
esac
