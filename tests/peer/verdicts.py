"""Judges many files with the function behind `oacp validate`, in one process: a line of JSON for each.

`errors` is what the function returns, or the exception that ends it, which ends the command as well; `data` is the
message as that function reads it, as far as it is texts and lists of texts, null if it cannot.
"""

import json
import os
import resource
import sys
from pathlib import Path

import oacp

sys.path.insert(0, os.path.join(os.path.dirname(oacp.__file__), "_scripts"))
import validate_message  # noqa: E402


# A few hundred bytes of aliases expand to gigabytes if they are printed, and the function's messages print them.
resource.setrlimit(resource.RLIMIT_AS, (512 * 1024 * 1024, resource.RLIM_INFINITY))


def errors(path):
    try:
        return validate_message.validate_message_file(path)
    except Exception as error:
        return [f"raised {type(error).__name__}"]


def data(path):
    try:
        fields = validate_message._load_message(path.read_bytes().decode("utf-8"))
        return {name: texts(value) for name, value in fields.items() if isinstance(name, str)}
    except Exception:
        return None


def texts(value):
    if isinstance(value, list):
        return [item for item in value if isinstance(item, str)]
    return value if isinstance(value, str) else None


for name in sys.stdin.read().splitlines():
    # Lone surrogates, which escapes can make, become `?`, because a Rust string cannot contain them.
    told = json.dumps({"errors": errors(Path(name)), "data": data(Path(name))}, ensure_ascii=False)
    sys.stdout.buffer.write(told.encode("utf-8", "replace") + b"\n")
