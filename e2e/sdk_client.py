"""Run by the virtual environment that has the official SDK: write, read and run in a sandbox by its means.

    sdk_client.py DOMAIN KEY direct|proxy SANDBOX DO...

DO is `write PATH HEX`, `read PATH` (prints hex), or `run LINE` (prints the result as JSON).
"""
import asyncio
import json
import sys

from opensandbox import Sandbox
from opensandbox.config import ConnectionConfig
from opensandbox.models import WriteEntry


async def main(domain, key, route, sandbox, verb, *args):
    config = ConnectionConfig(domain=domain, api_key=key, use_server_proxy=route == "proxy")
    box = await Sandbox.connect(sandbox, connection_config=config)
    try:
        if verb == "write":
            await box.files.write_files([WriteEntry(path=args[0], data=bytes.fromhex(args[1]), mode=644)])
        elif verb == "read":
            print((await box.files.read_bytes(args[0])).hex())
        else:
            ran = await box.commands.run(args[0])
            print(json.dumps({
                "stdout": [m.text for m in ran.logs.stdout], "stderr": [m.text for m in ran.logs.stderr],
                "error": ran.error.value if ran.error else None}))
    finally:
        await box.close()


asyncio.run(main(*sys.argv[1:]))
