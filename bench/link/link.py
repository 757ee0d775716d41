"""A slow, lossy line between two network namespaces. This process forwards IP packets from one TUN device to the other.

    phone namespace            this process                    server namespace
    10.77.0.2  tambour0 ──▶ queue ─ rate ─ loss ─ delay ──▶ tambour0  10.77.0.1
                        ◀── delay ─ loss ─ rate ─ queue ◀──

Each direction has its own transmitter. A packet waits in the queue, takes its length divided by the rate to be sent, and then
is lost or arrives one delay later. The line loses IP packets, so TCP detects the loss itself and retransmits. Needs root and
/dev/net/tun; netem is not needed.
"""

import collections
import contextlib
import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import threading
import time

SERVER, PHONE = "10.77.0.1", "10.77.0.2"
UP, DOWN = 0, 1  # from the phone to the server, and back

_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNET = 0x40000000
_TUNSETIFF = 0x400454CA
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000


class Packet:
    """An IP packet on the line, with the fields of its TCP header."""

    __slots__ = ("arrived", "data", "direction", "length", "offered", "payload", "port", "seq")

    def __init__(self, raw, direction, offered):
        self.direction, self.offered, self.length = direction, offered, len(raw)
        self.arrived = None  # the time of arrival at the other end; None if it was lost
        self.payload, self.data, self.seq, self.port = 0, b"", 0, 0
        if raw[0] >> 4 != 4 or raw[9] != 6:
            return
        ip_header = (raw[0] & 15) * 4
        source, destination, self.seq = struct.unpack_from("!HHI", raw, ip_header)
        tcp_header = (raw[ip_header + 12] >> 4) * 4
        self.data = raw[ip_header + tcp_header :]
        self.payload = len(self.data)
        self.port = destination if direction == UP else source


class Link:
    """The line and its two namespaces, for as long as the `with` block lasts."""

    def __init__(self, bits_per_second=64_000, delay=0.3, loss=0.03, queue_bytes=32_768, seed=1):
        self.rate, self.delay, self.loss, self.queue_bytes = bits_per_second, delay, loss, queue_bytes
        self.random = random.Random(seed)
        self.is_up = True
        self.is_lossy = True
        self.packets = []
        self._lock = threading.Lock()
        self.phone, self.server = f"tambour-phone-{os.getpid()}", f"tambour-server-{os.getpid()}"
        self._running = True

    # Setting up the namespaces

    def __enter__(self):
        self._made = []
        try:
            ends = [
                self._make(self.phone, PHONE, SERVER),
                self._make(self.server, SERVER, PHONE),
            ]
        except BaseException:
            self._remove()
            raise
        self._ends = ends
        self._thread = threading.Thread(target=self._forward, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._running = False
        self._thread.join()
        for end in self._ends:
            os.close(end)
        self._remove()

    def _remove(self):
        for name in self._made:
            subprocess.run(["ip", "netns", "del", name], check=False)

    def _make(self, namespace, own, other):
        subprocess.run(["ip", "netns", "add", namespace], check=True)
        self._made.append(namespace)
        with inside(namespace):
            end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            request = struct.pack("16sH22x", b"tambour0", _IFF_TUN | _IFF_NO_PI)
            fcntl.ioctl(end, _TUNSETIFF, request)
        settings = [
            "ip link set lo up",
            f"ip addr add {own} peer {other} dev tambour0",
            "ip link set tambour0 mtu 1500 up",
            # The TCP metrics of one connection must not affect the next connection.
            "sysctl -qw net.ipv4.tcp_no_metrics_save=1",
            # IPv6 would add packets that are not part of the measurement.
            "sysctl -qw net.ipv6.conf.tambour0.disable_ipv6=1",
        ]
        for setting in settings:
            subprocess.run(["ip", "netns", "exec", namespace, *setting.split()], check=True)
        return end

    # Forwarding packets over the line

    def _forward(self):
        waiting = [collections.deque(), collections.deque()]
        queued = [0, 0]
        free_at = [0.0, 0.0]
        arriving = []
        count = 0
        while self._running:
            now = time.monotonic()
            for direction in (UP, DOWN):
                while waiting[direction] and free_at[direction] <= now:
                    packet, raw = waiting[direction].popleft()
                    queued[direction] -= len(raw)
                    begins = max(free_at[direction], packet.offered)
                    free_at[direction] = begins + len(raw) * 8 / self.rate
                    is_lost = self.is_lossy and self.random.random() < self.loss
                    if is_lost or not self.is_up:
                        continue
                    count += 1
                    at = free_at[direction] + self.delay
                    heapq.heappush(arriving, (at, count, packet, raw))
            while arriving and arriving[0][0] <= now:
                _, _, packet, raw = heapq.heappop(arriving)
                packet.arrived = now
                with contextlib.suppress(OSError):
                    os.write(self._ends[1 - packet.direction], raw)
            due = [free_at[d] for d in (UP, DOWN) if waiting[d]] + [a[0] for a in arriving[:1]]
            timeout = min([0.1] + [max(0.0, at - time.monotonic()) for at in due])
            for end in select.select(self._ends, [], [], timeout)[0]:
                direction = self._ends.index(end)
                with contextlib.suppress(BlockingIOError):
                    while True:
                        raw = os.read(end, 65_536)
                        packet = Packet(raw, direction, time.monotonic())
                        with self._lock:
                            self.packets.append(packet)
                        if queued[direction] + len(raw) <= self.queue_bytes:
                            queued[direction] += len(raw)
                            waiting[direction].append((packet, raw))

    def take(self):
        """Returns the packets put on the line since the last call."""
        with self._lock:
            taken, self.packets = self.packets, []
        return taken

    def settle(self, quiet=1.5):
        """Waits until the line has been silent for `quiet` seconds, at most a minute."""
        begin = time.monotonic()
        while time.monotonic() < begin + 60:
            with self._lock:
                last = self.packets[-1].offered if self.packets else begin
            pause = max(last, begin) + quiet - time.monotonic()
            if pause <= 0:
                return
            time.sleep(pause)


@contextlib.contextmanager
def inside(namespace):
    """Moves this thread into a namespace while the `with` block lasts. New sockets and devices of the thread belong there."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    there = os.open(f"/run/netns/{namespace}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _enter(there)
        yield
    finally:
        _enter(home)
        os.close(home)
        os.close(there)


def _enter(namespace):
    if _LIBC.setns(namespace, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")
