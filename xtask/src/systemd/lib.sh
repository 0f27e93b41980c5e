# The vocabulary of the checks: claims, waiting, and the properties of the service.

# All results go to the machine's second serial line.
results=/dev/ttyS1
stty -F "$results" raw -echo

fact() { printf 'FACT %s\n' "$*" > "$results"; }

# check CLAIM COMMAND...: runs the command and reports whether the claim holds; if not, also the command's output.
check() {
    local claim="$1" said
    shift
    if said="$("$@" 2>&1)"; then
        printf 'PASS %s\n' "$claim" > "$results"
    else
        { printf 'FAIL %s\n' "$claim"; { printf '%s\n' "$said"; look; } | sed 's/^/| /'; } > "$results"
    fi
}

# Prints why it failed, as far as the machine can tell.
look() {
    systemctl status --no-pager --full --lines=0 "$unit" || true
    journalctl --no-pager --quiet --output=cat --unit="$unit" --lines=12 || true
}

# The service under test.
unit=settled.service

of() { systemctl show --property="$1" --value "$unit"; }

is() {
    local found
    found="$(of "$1")"
    [ "$found" = "$2" ] || { echo "$1 is $found, not $2"; return 1; }
}

# The factor by which this machine is slower than a processor.
case "$(systemd-detect-virt)" in qemu) slow=4 ;; *) slow=1 ;; esac

# soon SECONDS COMMAND...: waits until the command succeeds.
soon() {
    local end=$((SECONDS + $1 * slow))
    shift
    until "$@" > /dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || { echo "in vain: $*"; "$@"; return 1; }
        sleep 0.2
    done
}

all() {
    local step
    for step in "$@"; do
        eval "$step" || { echo "this does not hold: $step"; return 1; }
    done
}

# as USER COMMAND...: runs a command as a user of the machine.
as() {
    local user="$1"
    shift
    runuser -u "$user" -- env "XDG_RUNTIME_DIR=/run/user/$(id -u "$user")" "HOME=/home/$user" "$@"
}

# question FROM TO ID: prints a message outside the reviews.
question() {
    printf 'id: %s\nfrom: %s\nto: %s\ntype: question\npriority: P2\n' "$3" "$1" "$2"
    printf 'created_at_utc: "2026-02-13T10:00:00Z"\nsubject: "?"\nbody: |\n  which?\n'
}

# post USER ROOT FROM TO ID: writes a question under a temporary name first, as an agent would.
post() {
    local box="$2/agents/$3/outbox"
    question "$3" "$4" "$5" | as "$1" sh -c "cat > '$box/$5.tmp' && mv '$box/$5.tmp' '$box/$5.yaml'"
}

status_says() {
    local said
    said="$(of StatusText)"
    case "$said" in *"$1"*) ;; *) echo "STATUS is: $said"; return 1 ;; esac
}
