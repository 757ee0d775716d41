"""Computes the cost of a reconnect from the packets on the line."""

from link import DOWN, UP


class Tally:
    """Counts the packets of one server's connections.

    `ip` counts every packet put on the line, including lost and retransmitted packets; `payload` counts each byte of a TCP
    stream once. `flights` is the number of times the phone had to wait for the server before it could continue: one for
    the connection, and one for each burst of requests that waited for the previous answer.

    `done` is the time of the expected result, by `time.monotonic()`; later requests do not count as flights.
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
        #: The seconds from the phone's first SYN until the last byte of the server arrives.
        self.seconds = max(answers) - begin if answers else None

    @staticmethod
    def _bursts(packets):
        heard = [p.arrived for p in packets if p.direction == DOWN and p.payload and p.arrived]
        said, bursts, last = set(), 0, -1
        for packet in packets:
            # A retransmission is not a new flight.
            if packet.direction != UP or not packet.payload or packet.seq in said:
                continue
            said.add(packet.seq)
            known = sum(at <= packet.offered for at in heard)
            bursts += known > last
            last = known
        return bursts


def _covered(segments):
    """Returns the number of bytes of a stream, counting each byte once."""
    end, total = None, 0
    for seq, length in sorted(segments):
        if end is None or seq > end:
            total, end = total + length, seq + length
        elif seq + length > end:
            total, end = total + seq + length - end, seq + length
    return total
