# One of several concurrent writers of `cargo xtask bench oacp`: waits for a line on standard input, writes its
# messages, and prints how many it wrote. Both forms use OACP's own code to make the text.
#
# arguments: the peer's scripts, `send` or `drop`, its home or our outbox, this writer's first number, how many
import sys
from pathlib import Path

scripts, form, place, first, count = sys.argv[1:6]
sys.path.insert(0, scripts)
import send_inbox_message as peer

PROSE = "  What was changed, why it was, and where a reviewer should look at first.\n" * 9


def parts(number):
    body = f"pr: {number}\nbranch: claude/change-{number}\ndiff_summary: |\n{PROSE}max_turns_reviewer: 8\n"
    return dict(sender="claude", recipient="codex", msg_type="review_request",
                subject=f"change {number}", body=body, priority="P1", related_pr=str(number))


def send(number):
    peer.send_message(project="demo", oacp_dir=Path(place), **parts(number))


# The writer makes the id itself, because two of OACP's may be equal, and Settled refuses the second.
def drop(number):
    message = peer.build_message_dict(**parts(number))
    message["id"] = f"msg-{number}"
    with open(f"{place}/{number:06}.yaml", "x", encoding="utf-8") as file:
        file.write(peer.render_yaml(message))


write = {"send": send, "drop": drop}[form]
print("ready", flush=True)
sys.stdin.readline()
written = 0
for number in range(int(first), int(first) + int(count)):
    write(number)
    written += 1
print(written, flush=True)
