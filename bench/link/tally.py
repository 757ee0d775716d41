"""What a return cost on the line."""

from link import DOWN, UP


class Tally:
    """Counts the packets of one server's connections.

    `ip` counts every packet that was put on the line, those that got lost and those sent again included; `payload` counts
    each byte of a TCP stream once. `flights` is how often the phone had to hear from the server before it could go on
    speaking: a connection is one, and so is each burst of requests that waited for an answer to the one before.

    `done` is when what was waited for was there, by `time.monotonic()`: what is asked later is no flight.
    """

    def __init__(self, packets, port, done):
        packets = [packet for packet in packets if packet.port == port]
        if not packets:
            raise RuntimeError("nothing was said on the line")
        self.ip = sum(packet.length for packet in packets)
        self.packets = len(packets)
        self.lost = sum(packet.arrived is None for packet in packets)
        streams = [[], []]
        for packet in packets:
            if packet.payload:
                streams[packet.direction].append((packet.seq, packet.payload))
        self.payload_up, self.payload_down = (_covered(stream) for stream in streams)
        self.payload = self.payload_up + self.payload_down
        self.first_data = next((p.data for p in packets if p.direction == UP and p.payload), b"")
        self.flights = 1 + self._bursts([p for p in packets if p.offered < done])
        begin = packets[0].offered
        answers = [p.arrived for p in packets if p.direction == DOWN and p.payload and p.arrived]
        #: From the first SYN until the server's last byte is there, seconds.
        self.seconds = max(answers) - begin if answers else None

    @staticmethod
    def _bursts(packets):
        heard = [p.arrived for p in packets if p.direction == DOWN and p.payload and p.arrived]
        said, bursts, last = set(), 0, -1
        for packet in packets:
            # What is said again was not waited for.
            if packet.direction != UP or not packet.payload or packet.seq in said:
                continue
            said.add(packet.seq)
            known = sum(at <= packet.offered for at in heard)
            bursts += known > last
            last = known
        return bursts


def _covered(segments):
    """Bytes of a stream, each counted once."""
    end, total = None, 0
    for seq, length in sorted(segments):
        if end is None or seq > end:
            total, end = total + length, seq + length
        elif seq + length > end:
            total, end = total + seq + length - end, seq + length
    return total
