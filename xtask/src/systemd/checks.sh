# Checks the claims about the package and its service on a machine of its own. The power is cut from outside in the
# middle of the first boot; the second boot checks what is left, removes everything and powers off.
. /opt/checks/lib.sh

room=/var/lib/settled/mailroom
config="$room/settled.toml"
inbox="$room/agents/codex/inbox"
export PATH=/usr/sbin:/usr/bin:/sbin:/bin

main() {
    if [ ! -e /opt/checks/booted ]; then
        touch /opt/checks/booted
        first_boot
    else
        second_boot
        printf 'DONE\n' > "$results"
        systemctl poweroff
    fi
}

first_boot() {
    fact "machine: $(systemd-detect-virt), $(systemctl --version | head -1), Linux $(uname -r)"
    check "the package installs" dpkg --install /opt/checks/settled.deb
    check "installed, it is neither enabled nor started" untouched
    check "without a workspace it does not start, and is not tried again" without_workspace
    make_room
    check "it is ready when the config and the ledger are read, and not before" ready_late
    fact "from the start of the process to READY=1, an empty workspace: $(start_ms) ms"
    check "two agents with users of their own hold a review through it" review
    check "systemctl status says how things stand" soon 5 status_says "2 agents, 0 reviews open, 2 messages accepted"
    check "the daemon has no capability, no way to more, and a tree it cannot write" confined
    check "a reload applies a good config" reload_good
    check "a reload refuses a bad config whole, and says so" reload_bad
    check "a standing loop is ended by the watchdog and started again" watchdog
    check "killed three times under load, it loses nothing and delivers nothing twice" killed
    check "a damaged ledger ends it with 6, and it is not tried again" damaged
    check "metrics at a socket are read through a port that systemd holds" proxied
    check "settled service: installed, enabled, serving, and removed" installed
    check "a service that starts agents has its review held by one" agents
    check "a user's own manager runs it" own_manager
    power_cut
}

second_boot() {
    check "after a power cut under load it comes back by itself" soon 60 all 'is ActiveState active' 'is NRestarts 0'
    check "all that was there before the cut is there, and all that is in sent/ was delivered" survived
    check "an upgrade goes on with the new program" upgraded
    check "a removal stops it and leaves the mail" removed
    check "a purge leaves the mail and the user, and says so" purged
}

untouched() { all '! systemctl is-enabled --quiet "$unit"' 'is ActiveState inactive' 'id settled'; }

without_workspace() {
    systemctl start "$unit" && { echo "it started"; return 1; }
    sleep 7
    all 'is ActiveState inactive' 'is AssertResult no' 'is NRestarts 0'
}

make_room() {
    useradd --create-home --uid 1001 claude
    useradd --create-home --uid 1002 codex
    check "a workspace is made for agents with users of their own" \
        settled init "$room" --agents claude,codex --separate-users --daemon settled
    printf '[limits]\nmessages_per_hour = 10000\n' >> "$config"
    cp "$config" /root/good.toml
}

# A config that is a pipe blocks the start until someone writes to it.
ready_late() {
    rm "$config"
    mkfifo "$config"
    chown root:settled "$config"
    chmod 0640 "$config"
    systemctl start --no-block "$unit"
    soon 10 is ActiveState activating || return
    sleep 2
    is ActiveState activating || return
    timeout 10 cp /root/good.toml "$config.whole"
    chown root:settled "$config.whole"
    chmod 0640 "$config.whole"
    timeout 10 sh -c "cat /root/good.toml > $config" || return
    mv "$config.whole" "$config"
    soon 20 is ActiveState active || return
    # The figure is for an unblocked start.
    systemctl restart "$unit"
}

start_ms() { echo $((($(of ActiveEnterTimestampMonotonic) - $(of ExecMainStartTimestampMonotonic)) / 1000)); }

review() {
    as claude settled --root "$room" send review_request --agent claude --to codex --pr 86 --branch b \
        --body 'A parser.' --timeout $((30 * slow)) || return
    as codex settled --root "$room" lgtm 86 --agent codex --head abc1234 --timeout $((30 * slow)) || return
    settled status --root "$room" | grep approved
}

confined() {
    local pid
    pid="$(of MainPID)"
    all 'grep -q "^CapEff:.0*$" /proc/$(of MainPID)/status' \
        'grep -q "^CapBnd:.0*$" /proc/$(of MainPID)/status' \
        'grep -q "^NoNewPrivs:.1" /proc/$(of MainPID)/status' \
        'grep -q "^Seccomp:.2" /proc/$(of MainPID)/status' \
        '! nsenter --target $(of MainPID) --mount touch /usr/bin/of-somebody' \
        '! nsenter --target $(of MainPID) --mount touch /var/lib/settled/beside' \
        'nsenter --target $(of MainPID) --mount touch $room/.settled/probe' \
        'rm $room/.settled/probe' \
        '[ -z "$(nsenter --target $(of MainPID) --mount ls -A /home)" ]'
}

# The file keeps its owner and mode.
configure() { { cat /root/good.toml; printf '%s\n' "$@"; } > "$config"; }

reload_good() {
    grep -v -e limits -e messages_per_hour /root/good.toml > "$config"
    printf '[limits]\nmessages_per_hour = 1\n' >> "$config"
    systemctl reload "$unit" || return
    post claude "$room" claude codex r-1
    post claude "$room" claude codex r-2
    soon 20 ls "$room/agents/claude/dead_letter/r-2.report.yaml" || return
    grep rate_limited "$room/agents/claude/dead_letter/r-2.report.yaml" || return
    configure
    systemctl reload "$unit" || return
    post claude "$room" claude codex r-3
    soon 20 ls "$inbox/r-3.yaml"
}

reload_bad() {
    configure '[rounds]' 'max = 9'
    systemctl reload "$unit" || return
    soon 10 status_says "the old config still applies" || return
    is ActiveState active || return
    configure
    systemctl reload "$unit" || return
    soon 10 all '! status_says "still applies"'
}

# drop_in LINE...: adds settings of an operator to the section [Service].
drop_in() {
    mkdir -p "/run/systemd/system/$unit.d"
    printf '%s\n' '[Service]' "$@" > "/run/systemd/system/$unit.d/checks.conf"
    systemctl daemon-reload
}

watchdog() {
    local pid began
    drop_in WatchdogSec=$((4 * slow))s RestartSec=100ms
    systemctl restart "$unit"
    pid="$(of MainPID)"
    sleep $((6 * slow))
    is MainPID "$pid" || { echo "it was ended although it beats"; return 1; }
    began=$SECONDS
    kill -STOP "$pid"
    soon 60 all "! is MainPID $pid" 'is ActiveState active' || return
    fact "a loop that stands, WatchdogSec=$((4 * slow))s: serving again after $((SECONDS - began)) s"
    journalctl --quiet --output=cat --unit="$unit" | grep "Watchdog timeout"
}

# flood FIRST LAST: posts questions from claude to codex, one per file.
flood() {
    as claude bash -c '. /opt/checks/lib.sh; for ((n = $1; n <= $2; n++)); do
        question claude codex "q-$n" > "$3/.q-$n.tmp" && mv "$3/.q-$n.tmp" "$3/q-$n.yaml"
    done' flood "$1" "$2" "$room/agents/claude/outbox"
}

delivered() { find "$inbox" -name 'q-*' | wc -l; }

killed() {
    local pid turn
    flood 1 300 &
    for turn in 1 2 3; do
        soon 30 all "[ \$(delivered) -ge $((turn * 60)) ]" || return
        pid="$(of MainPID)"
        kill -KILL "$pid"
        soon 30 all "! is MainPID $pid" 'is ActiveState active' || return
    done
    wait
    soon 60 all '[ -z "$(ls "$room/agents/claude/outbox")" ]' '[ "$(delivered)" -ge 300 ]' || return
    all '[ "$(delivered)" = 300 ]' \
        '[ "$(cat "$inbox"/q-* | grep "^id: " | sort -u | wc -l)" = 300 ]' \
        '[ "$(of NRestarts)" -ge 3 ]' \
        'settled ledger verify --root "$room"'
}

damaged() {
    local ledger
    systemctl stop "$unit"
    ledger="$(ls "$room"/.settled/ledger/*.jsonl | head -1)"
    cp --archive "$ledger" /root/ledger
    # Other bytes in the same place, so the first record no longer matches its digest.
    printf 'x' | dd of="$ledger" bs=1 seek=40 conv=notrunc status=none
    systemctl start "$unit" && { echo "it started"; cp --archive /root/ledger "$ledger"; return 1; }
    sleep 3
    all 'is ActiveState failed' 'is ExecMainStatus 6' 'is NRestarts 0'
    local found=$?
    cp --archive /root/ledger "$ledger"
    systemctl start "$unit" && return "$found"
}

# asks PORT: prints the metrics, as a monitor reads them.
asks() {
    exec 3<> "/dev/tcp/127.0.0.1/$1" || return
    printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3
    grep '^settled_' <&3
}

proxied() {
    configure '[metrics]' 'listen = "unix:.settled/metrics.sock"'
    systemctl restart "$unit" || return
    cat > /etc/systemd/system/settled-metrics.socket <<'END'
[Socket]
ListenStream=127.0.0.1:9464
[Install]
WantedBy=sockets.target
END
    cat > /etc/systemd/system/settled-metrics.service <<'END'
[Service]
ExecStart=/usr/lib/systemd/systemd-socket-proxyd /var/lib/settled/mailroom/.settled/metrics.sock
User=settled
PrivateNetwork=yes
END
    systemctl daemon-reload
    systemctl start settled-metrics.socket && asks 9464
}

installed() {
    local unit=settled-room.service
    settled init /srv/room --agents claude,codex || return
    printf '[metrics]\nlisten = "127.0.0.1:9465"\n' > /srv/room/settled.toml
    chown -R settled: /srv/room
    settled service install /srv/room --system --name settled-room || return
    systemctl daemon-reload
    systemctl enable --now "$unit" || return
    settled service status /srv/room --system --name settled-room | grep "enabled; a daemon is serving" || return
    asks 9465 > /dev/null || return
    as settled settled --root /srv/room send question --agent claude --to codex --body 'which?' --timeout $((30 * slow)) || return
    settled service uninstall /srv/room --system --name settled-room
    [ $? = 6 ] || { echo "it was removed although it is enabled"; return 1; }
    systemctl disable --now "$unit" || return
    settled service uninstall /srv/room --system --name settled-room || return
    [ ! -e "/etc/systemd/system/$unit" ]
}

agents() {
    local unit=settled-agents.service
    useradd --create-home runner
    settled init /srv/agents --agents claude,codex || return
    printf '#!/bin/sh\ncat > /dev/null\ntouch "$HOME/was-here"\necho PASS\n' > /opt/checks/reviewer
    chmod 755 /opt/checks/reviewer
    printf '[agents.codex]\ncommand = ["/opt/checks/reviewer"]\n' > /srv/agents/settled.toml
    chown -R runner: /srv/agents
    settled service install /srv/agents --system --starts-agents --name settled-agents || return
    systemctl daemon-reload
    systemctl enable --now "$unit" || return
    as runner settled --root /srv/agents send review_request --agent claude --to codex --pr 9 --branch b \
        --body 'A parser.' --timeout $((30 * slow)) || return
    soon 30 all 'settled status --root /srv/agents | grep approved' || { settled status --root /srv/agents; look; return 1; }
    ls /home/runner/was-here || return
    systemctl disable --now "$unit"
}

own_manager() {
    local mine=/home/anna/mailroom
    useradd --create-home anna
    loginctl enable-linger anna
    soon 30 ls "/run/user/$(id -u anna)/systemd/private" || return
    as anna settled init "$mine" --agents claude,codex || return
    as anna settled service install "$mine" --user || return
    as anna systemctl --user daemon-reload || return
    as anna systemctl --user enable --now settled.service || return
    as anna settled service status "$mine" --user | grep "enabled; a daemon is serving" || return
    as anna settled --root "$mine" send question --agent claude --to codex --body 'which?' --timeout $((30 * slow)) || return
    as anna systemctl --user show --property=StatusText settled.service | grep "1 messages accepted" || return
    as anna systemctl --user kill --signal=KILL settled.service
    soon 20 all 'as anna systemctl --user is-active --quiet settled.service' || return
    as anna systemctl --user disable --now settled.service && as anna settled service uninstall "$mine" --user
}

power_cut() {
    systemctl enable "$unit"
    flood 2001 3000 &
    soon 60 all '[ "$(delivered)" -ge 400 ]'
    ls "$inbox" > /root/seen
    sync /root/seen /root
    fact "the power is cut after $(wc -l < /root/seen) deliveries"
    printf 'CUT\n' > "$results"
    wait
}

survived() {
    local file
    soon 60 all '[ -z "$(find "$room/agents/claude/outbox" -name "q-*")" ]' || return
    while read -r file; do
        [ -s "$inbox/$file" ] || { echo "$file was delivered and is gone"; return 1; }
    done < /root/seen
    for file in "$room"/agents/claude/sent/q-*; do
        cmp "$file" "$inbox/${file##*/}" || return
    done
    settled ledger verify --root "$room"
}

upgraded() {
    local pid
    pid="$(of MainPID)"
    dpkg --install /opt/checks/settled.deb || return
    all "! is MainPID $pid" 'is ActiveState active' 'systemctl is-enabled --quiet "$unit"'
}

removed() {
    dpkg --remove settled || return
    all '! systemctl is-active --quiet "$unit"' '[ ! -e /usr/bin/settled ]' '[ ! -e /usr/lib/systemd/system/$unit ]' \
        '! pgrep -x settled' '[ "$(delivered)" -ge 400 ]'
}

purged() {
    dpkg --purge settled 2>&1 | grep "was left" || return
    all '[ "$(delivered)" -ge 400 ]' 'id settled' \
        '[ ! -L /etc/systemd/system/multi-user.target.wants/$unit ]' '! dpkg --status settled'
}

main
