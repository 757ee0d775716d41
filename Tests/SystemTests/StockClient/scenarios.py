"""An unmodified public client (`maxapi-python==2.5.0`) against a running server, as dialogues.

    python scenarios.py HOST:PORT CODES_FILE [SCENARIO ...]      without names: all of them, one after the other
    python scenarios.py --list                                   their names

HOST:PORT is a server without TLS started with `--login-codes file:CODES_FILE`. Each scenario registers its own people. So the
scenarios are independent of each other and of the data on the server. All scenarios together need more login codes than
one address gets in an hour (limit `maxCodesPerAddressPerHour`). A scenario prints one line for each fact it verified. The
first fact that does not hold ends the scenario with a readable reason and exit status 1. A line `@restart` or `@kill` asks
the program that started the script to restart the server on the same port and the same data, gracefully or by SIGKILL.

What the library has no method for is sent with `app.invoke` or read with `on_raw`:

    opcode             what for                                                  scenario
    1   PING           to prove silence, and as the only request before login    all; without_methods
    5   LOG            telemetry (the library sends it after 15 to 90 s only)    without_methods
    8   LOGIN2         the library sends it only when a flag of LOGIN asks       without_methods
    16  PROFILE        a known number that is not served answers `proto.opcode`  without_methods
    19  LOGIN          `chatMarker` is dropped by the library: read by on_raw    relogin, chat_list
    48  CHAT_INFO      `get_chat` answers from its cache                         wherever a chat is looked at twice
    49  CHAT_HISTORY   to see that no new field is sent to a stock client        history
    50  CHAT_MARK      SET_AS_UNREAD, and a mark of one's own choice             read_marks
    53  CHATS_LIST     `count`, and the reply's `marker`                         relogin, chat_list
    55  CHAT_UPDATE    public names, JOIN_REQUEST                               channel, join_requests
    64  MSG_SEND       a channel                                                channel
    64  MSG_SEND       many groups or messages in flight; `userId`; attaches     history, relogin, chat_list,
                       CONTACT, LOCATION, SHARE; the same `cid` again            without_methods
    65  MSG_TYPING     the library only listens to 129                           typing
    66  MSG_DELETE     `failedMessageIds`                                        delete_for_all
    75  CHAT_SUBSCRIBE the library never sends it                                without_methods
    128 as a request   the acknowledgement another client sends                  without_methods
    303 MSG_DELIVERY   receipts of official apps                                 without_methods
    305 VOTERS_LIST…   who voted for an answer                                   poll
    306 GET_POLL_…     polls as they are now                                     poll
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import traceback

import signing_in  # noqa: F401
import second_factor  # noqa: F401
import chatting  # noqa: F401
import channels  # noqa: F401
import comments  # noqa: F401
import reading  # noqa: F401
import coming_back  # noqa: F401
import own_things  # noqa: F401
import other_clients  # noqa: F401
from harness import SCENARIOS, Failure, LoginCodes, World

#: How long one scenario may take, in seconds.
SCENARIO_DEADLINE = 240


async def run(name: str, address: str, codes: LoginCodes) -> bool:
    print(f"{name}: {(SCENARIOS[name].__doc__ or '').strip()}", flush=True)
    with tempfile.TemporaryDirectory(prefix="stock-client-") as directory:
        world = World(address, codes, directory, list(SCENARIOS).index(name))
        try:
            async with asyncio.timeout(SCENARIO_DEADLINE):
                await SCENARIOS[name](world)
            return True
        except Failure as failure:
            place = traceback.extract_tb(failure.__traceback__)
            lines = [f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}" for frame in place if "StockClient" in frame.filename]
            print(f"FAILED {name} at {' < '.join(reversed(lines))}: {failure}", flush=True)
        except Exception:
            print(f"FAILED {name}:\n{traceback.format_exc()}", flush=True)
        finally:
            await world.close()
    return False


def main(arguments: list[str]) -> int:
    if arguments == ["--list"]:
        print("\n".join(SCENARIOS))
        return 0
    if len(arguments) < 2 or (unknown := [name for name in arguments[2:] if name not in SCENARIOS]):
        print(f"unknown: {unknown}" if len(arguments) > 2 else __doc__, file=sys.stderr)
        return 2
    address, codes = arguments[0], LoginCodes(arguments[1])
    results = [asyncio.run(run(name, address, codes)) for name in arguments[2:] or SCENARIOS]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
