"""Run by an interpreter that has labgrid: holds one of its drivers open and obeys, a JSON line at a time.

``python labgrid_helper.py ENVIRONMENT TARGET PROTOCOL NAME``. Standard library and labgrid only.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def state_of(driver: Any) -> bool | None:
    """What the driver says of its port; None if it cannot say."""
    try:
        found = driver.get()
    except (AttributeError, NotImplementedError):
        return None
    return bool(found) if isinstance(found, (bool, int)) else None


def obey(driver: Any, action: str) -> bool | None:
    """on, off or get."""
    if action == "get":
        return state_of(driver)
    if hasattr(driver, "set"):
        driver.set(action == "on")
    else:
        getattr(driver, action)()
    return None


def main() -> None:
    out = sys.stdout
    sys.stdout = sys.stderr  # whatever a driver prints is not an answer
    environment, target, protocol, name = sys.argv[1:5]
    from labgrid import Environment

    driver = Environment(environment).get_target(target).get_driver(protocol, name=name or None)
    print(json.dumps({"ok": True, "driver": type(driver).__name__}), file=out, flush=True)
    for line in sys.stdin:
        try:
            answer: dict[str, Any] = {"ok": True, "state": obey(driver, json.loads(line)["do"])}
        except Exception as error:
            answer = {"ok": False, "why": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
