"""Texts that leave the process: names of files may hold bytes that are not UTF-8, which no reader of JSON takes."""

import json


def plain(text):
    """Bytes that are not UTF-8 become `�`."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:  # halves of characters that are of no file's name
        return text.encode("utf-8", "replace").decode()


def as_json(value):
    return plain(json.dumps(value, ensure_ascii=False, default=str))
