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


class Reader:
    """Reads with the function's own reader, and keeps what it read: pure Python takes long to parse YAML."""

    def __init__(self, read):
        self.read = read
        self.fields = None

    def __call__(self, raw):
        self.fields = self.read(raw)
        return self.fields


reader = validate_message._load_message = Reader(validate_message._load_message)


def judged(path):
    reader.fields = None
    try:
        errors = validate_message.validate_message_file(path)
    except Exception as error:
        errors = [f"raised {type(error).__name__}"]
    if reader.fields is None:
        return {"errors": errors, "data": None}
    data = {name: texts(value) for name, value in reader.fields.items() if isinstance(name, str)}
    return {"errors": errors, "data": data}


def texts(value):
    if isinstance(value, list):
        return [item for item in value if isinstance(item, str)]
    return value if isinstance(value, str) else None


for name in sys.stdin.read().splitlines():
    # Lone surrogates, which escapes can make, become `?`, because a Rust string cannot contain them.
    told = json.dumps(judged(Path(name)), ensure_ascii=False)
    sys.stdout.buffer.write(told.encode("utf-8", "replace") + b"\n")
