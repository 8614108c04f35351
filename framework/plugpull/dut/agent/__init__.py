"""The agent: what runs on the DUT. It needs python3 (3.9 or newer) and nothing else; fio for loads.

It is pushed as one zip file, speaks JSON Lines with the controller over whatever byte stream it is given
(virtio-serial, a pipe, ssh), and keeps no state on the DUT. When the stream ends, it ends what it started.

This package imports the standard library only, and pyudev when it travels with it in the zip.
"""

AGENT_VERSION = 1
