"""Runs Prosody over the line with resumable streams (XEP-0198). The client does only what these streams require."""

import base64
import html
import pathlib
import re
import shutil
import socket
import subprocess
import time

from link import SERVER, inside
from tally import Tally

PORT = 5222
DOMAIN = "link.test"
CONFIGURATION = """
daemonize = false
run_as_root = true
pidfile = "{directory}/prosody.pid"
data_path = "{directory}/data"
log = {{ warn = "{directory}/prosody.log" }}
interfaces = {{ "{address}" }}
c2s_ports = {{ {port} }}
s2s_ports = {{}}
modules_enabled = {{ "roster", "saslauth", "disco", "ping", "smacks" }}
modules_disabled = {{ "s2s", "tls", "http" }}
c2s_require_encryption = false
s2s_require_encryption = false
allow_unencrypted_plain_auth = true
authentication = "internal_plain"
smacks_hibernation_time = 3600
smacks_max_queue_size = 1000
network_settings = {{ nagle = false }}
VirtualHost "{domain}"
"""


class Stream:
    """One connection of an account."""

    def __init__(self, namespace, user):
        with inside(namespace):
            self.socket = socket.socket()
        self.user, self.text, self._partial = user, "", b""
        #: The input since the stream became resumable. The client counts the server's stanzas in this input.
        self.counted = ""
        self.socket.settimeout(120)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.connect((SERVER, PORT))
        self._open()
        secret = base64.b64encode(f"\0{user}\0secret".encode()).decode()
        self.say(f"<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>{secret}</auth>")
        self.expect("<success[^>]*>")
        self._open()

    def _open(self):
        self.say(
            f"<?xml version='1.0'?><stream:stream to='{DOMAIN}' version='1.0' "
            "xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"
        )
        self.expect("</stream:features>")

    def say(self, text):
        self.socket.sendall(text.encode())

    def expect(self, pattern):
        """Waits until the input matches the pattern. Removes the input up to the end of the match, and returns the match."""
        expression = re.compile(pattern)
        while True:
            found = expression.search(self.text)
            if found:
                self.text = self.text[found.end() :]
                return found
            self._receive()

    def bodies(self, count):
        """Waits until at least `count` message bodies have arrived, and returns all bodies that have arrived."""
        while True:
            bodies = re.findall("<body>(.*?)</body>", self.text)
            if len(bodies) >= count:
                return bodies
            self._receive()

    def _receive(self):
        chunk = self.socket.recv(65_536)
        if not chunk:
            raise RuntimeError(f"prosody closed the stream behind {self.text[-300:]}")
        self._partial += chunk
        try:
            text, self._partial = self._partial.decode(), b""
        except UnicodeDecodeError as error:
            # The input ends in the middle of a character.
            text, self._partial = self._partial[: error.start].decode(), self._partial[error.start :]
        self.text += text
        self.counted += text

    def handled(self):
        """Returns the number of stanzas that the server has sent since the client began to count them."""
        return len(re.findall(r"<(?:message|presence|iq)[\s>]", self.counted))

    def bind(self):
        self.say("<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>")
        self.expect("</iq>")

    def fence(self):
        """Waits until the server has processed all earlier stanzas."""
        self.say(f"<iq type='get' id='p' to='{DOMAIN}'><ping xmlns='urn:xmpp:ping'/></iq>")
        self.expect("<iq[^>]*id='p'[^>]*>")

    def close(self):
        self.socket.close()


class Prosody:
    name = "prosody"

    def __init__(self, link, directory):
        self.link, self.directory = link, pathlib.Path(directory)

    def start(self):
        (self.directory / "data").mkdir(parents=True)
        file = self.directory / "prosody.cfg.lua"
        file.write_text(
            CONFIGURATION.format(directory=self.directory, address=SERVER, port=PORT, domain=DOMAIN)
        )
        for user in ("me", "friend"):
            subprocess.run(
                ["prosodyctl", "--root", "--config", str(file), "register", user, DOMAIN, "secret"],
                check=True,
                capture_output=True,
            )
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", self.link.server, shutil.which("prosody"), "--root", "-F", "--config", str(file)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 30
        while True:
            try:
                friend = Stream(self.link.server, "friend")
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        friend.close()
        self.stream = Stream(self.link.phone, "me")
        self.stream.bind()
        self.stream.say("<enable xmlns='urn:xmpp:sm:3' resume='true'/>")
        enabled = self.stream.expect("<enabled[^>]*>").group()
        self.id = re.search("id='([^']*)'", enabled).group(1)
        self.stream.counted = self.stream.text
        self.handled = 0
        self.stream.say("<presence/>")
        self.stream.fence()

    def stop(self):
        self.process.terminate()
        self.process.wait(60)

    def leave(self):
        """Closes the socket but does not end the stream, so the server keeps the stream."""
        self.handled += self.stream.handled()
        self.stream.close()

    def miss(self, texts):
        friend = Stream(self.link.server, "friend")
        friend.bind()
        for number, text in enumerate(texts):
            friend.say(f"<message to='me@{DOMAIN}' type='chat' id='m{number}'><body>{html.escape(text, quote=False)}</body></message>")
        friend.fence()
        friend.close()

    def come_back(self, texts):
        """Reconnects and waits until the last text has arrived.

        Returns the seconds since the start of the connection, and the tally.
        """
        begin = time.monotonic()
        stream = Stream(self.link.phone, "me")
        stream.say(f"<resume xmlns='urn:xmpp:sm:3' previd='{self.id}' h='{self.handled}'/>")
        stream.expect("<resumed[^>]*>")
        stream.counted = stream.text
        bodies = stream.bodies(len(texts))
        done = time.monotonic()
        if [html.unescape(body) for body in bodies] != texts:
            raise RuntimeError(f"{len(bodies)} messages, and not those that were sent")
        stream.say(f"<a xmlns='urn:xmpp:sm:3' h='{self.handled + stream.handled()}'/>")
        self.link.settle()
        self.stream = stream
        return done - begin, Tally(self.link.take(), PORT, done)

    def version(self):
        run = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "prosody"], capture_output=True, text=True, check=False)
        return "prosody " + run.stdout

