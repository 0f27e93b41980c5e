"""Packs a folder into a file whose bytes depend on nothing but the folder: `pack.py tar|zip FOLDER FILE SECONDS LEVEL`.

Names are sorted, owners are nobody, every date is SECONDS since 1970, and of the rights only "may be run" is kept.
LEVEL is that of zlib: 6 packs well, 9 takes four times as long for one percent, 0 only stores.
"""

import gzip
import os
import sys
import tarfile
import time
import zipfile


def files(folder):
    for directory, below, names in os.walk(folder):
        below.sort()
        for name in sorted(names):
            path = os.path.join(directory, name)
            yield path, os.path.relpath(path, folder).replace(os.sep, "/")


def mode(path):
    return 0o755 if os.access(path, os.X_OK) else 0o644


def tar(folder, out, seconds, level):
    with open(out, "wb") as raw, gzip.GzipFile("", "wb", level, raw, seconds) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for path, name in files(folder):
                entry = tarfile.TarInfo(name)
                entry.size = os.path.getsize(path)
                entry.mode = mode(path)
                entry.mtime = seconds
                with open(path, "rb") as content:
                    archive.addfile(entry, content)


def zip_(folder, out, seconds, level):
    # A zip knows no year before 1980.
    date = time.gmtime(max(seconds, 315532800))[:6]
    with zipfile.ZipFile(out, "w") as archive:
        for path, name in files(folder):
            entry = zipfile.ZipInfo(name, date)
            entry.create_system = 3
            entry.external_attr = (0o100000 | mode(path)) << 16
            with open(path, "rb") as content:
                archive.writestr(entry, content.read(), zipfile.ZIP_DEFLATED, level)


kind, folder, out, seconds, level = sys.argv[1:]
{"tar": tar, "zip": zip_}[kind](folder, out, int(seconds), int(level))
