"""Tests that the egress process carries connections whole, keeps sessions apart, and never spins."""

import os
import resource
import select
import socket
import subprocess
import sys
import threading
import unittest

from harness import DRIVER, PATIENCE, SessionTest

MOST = 64
LARGE = 32 << 20
RUN = "import socket, sys\nfrom cuvette_driver import egress\negress.run(socket.socket(fileno=int(sys.argv[1])), sys.argv[2])"


class Inside:
    """What one session gives: a listener, and a pipe that stays open until `end`."""

    def __init__(self, test, buffer=None):
        with socket.create_server(("127.0.0.1", 0), backlog=2 * MOST) as listener:
            if buffer:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
            self.address = listener.getsockname()
            reader, self.writer = os.pipe()
            socket.send_fds(test.orders, [b"\n"], [listener.fileno(), reader])
        os.close(reader)
        self.is_open = True
        test.addCleanup(self.end)

    def end(self):
        if self.is_open:
            self.is_open = False
            os.close(self.writer)


class EgressTest(SessionTest):
    """Needs only the waiting and the folders of the harness: there is no zygote, and the test itself is the proxy."""

    def setUp(self):
        self.path = os.path.join(self.new_folder(), "proxy")
        self.listen()
        self.orders, theirs = socket.socketpair()
        command = [sys.executable, "-c", RUN, str(theirs.fileno()), self.path]
        self.process = subprocess.Popen(command, cwd=os.path.dirname(DRIVER), pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        self.addCleanup(self.stop)
        theirs.close()
        self.inside = Inside(self)

    def stop(self):
        self.orders.close()
        try:
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.wait()

    def listen(self):
        self.proxy = socket.socket(socket.AF_UNIX)
        self.addCleanup(self.proxy.close)
        self.proxy.bind(self.path)
        self.proxy.listen(2 * MOST)
        self.proxy.settimeout(PATIENCE)

    def connect(self, inside=None):
        client = socket.create_connection((inside or self.inside).address, PATIENCE)
        self.addCleanup(client.close)
        return client

    def accept(self):
        connection, _ = self.proxy.accept()
        connection.settimeout(PATIENCE)
        self.addCleanup(connection.close)
        return connection

    def pair(self, inside=None):
        """A client, and the proxy's end of its connection."""
        client = self.connect(inside)
        return client, self.accept()

    def descriptors(self):
        return [int(name) for name in os.listdir("/proc/%d/fd" % self.process.pid)]

    def assert_joined(self, client, server):
        for one, other in ((client, server), (server, client)):
            one.sendall(b"anyone?")
            self.assertEqual(other.recv(100), b"anyone?")

    def assert_closed(self, sock):
        try:
            self.assertEqual(sock.recv(1), b"")
        except ConnectionError:
            pass

    def assert_quiet(self):
        """It sleeps, and not between two turns of a loop: it is found asleep many times in a row."""
        asleep = 0

        def sleeps():
            nonlocal asleep
            with open("/proc/%d/stat" % self.process.pid, "rb") as file:
                asleep = asleep + 1 if file.read().rpartition(b")")[2].split()[0] == b"S" else 0
            return asleep == 20

        self.assert_soon(sleeps, "the egress process at rest")

    def assert_nobody_comes(self):
        self.assert_quiet()
        self.assertEqual(select.select([self.proxy], [], [], 0)[0], [])


class Transfers(EgressTest):
    def test_bytes_are_carried_in_both_directions(self):
        self.assert_joined(*self.pair())

    def assert_half_closed(self, first, second):
        """One side finishes sending, and the other can still send to it."""
        first.sendall(b"first")
        first.shutdown(socket.SHUT_WR)
        self.assertEqual(read_all(second), b"first")
        second.sendall(b"second")
        second.close()
        self.assertEqual(read_all(first), b"second")

    def test_answer_arrives_after_the_client_has_finished_sending(self):
        client, server = self.pair()
        self.assert_half_closed(client, server)

    def test_request_arrives_after_the_proxy_has_finished_sending(self):
        client, server = self.pair()
        self.assert_half_closed(server, client)

    def test_large_transfers_in_both_directions_at_once_arrive_whole(self):
        client, server = self.pair()
        data = os.urandom(1 << 20) * (LARGE >> 20)
        writers = [threading.Thread(target=send_all, args=(sock, data)) for sock in (client, server)]
        got = {}
        readers = [threading.Thread(target=lambda sock=sock: got.__setitem__(sock, read_all(sock))) for sock in (client, server)]
        for thread in writers + readers:
            thread.start()
        for thread in writers + readers:
            thread.join(PATIENCE * 3)
        self.assertTrue(got[client] == data and got[server] == data)

    def test_backpressure_stops_a_writer_whose_reader_does_not_read(self):
        for fast, slow in (self.pair(), reversed(self.pair())):
            sent = self.fill(fast)
            self.assertLess(sent, LARGE)
            self.assert_quiet()
            fast.close()
            self.assertEqual(len(read_all(slow)), sent)

    def test_one_direction_goes_on_while_the_other_is_full(self):
        client, server = self.pair()
        self.fill(server)
        client.sendall(b"still here")
        self.assertEqual(server.recv(100), b"still here")

    def test_slow_client_gets_everything_after_the_proxy_hung_up(self):
        client, server = self.pair(Inside(self, buffer=4096))  # So that the kernel does not take all of it in the end.
        sent = self.fill(server)
        server.close()
        self.assert_quiet()
        self.assertEqual(len(read_all(client)), sent)

    def test_early_answer_arrives_although_the_request_was_not_read(self):
        client, server = self.pair()
        self.fill(client)
        server.sendall(b"no")
        server.close()
        self.assertEqual(client.recv(100), b"no")

    def fill(self, sock):
        """Sends until nothing more is taken; how much that was."""
        sock.setblocking(False)
        sent = 0
        while sent < LARGE and select.select([], [sock], [], 0.3)[1]:
            sent += sock.send(bytes(1 << 16))
        sock.settimeout(PATIENCE)
        return sent


class ClosedConnections(EgressTest):
    def test_closed_client_closes_the_connection_to_the_proxy(self):
        client, server = self.pair()
        client.close()
        self.assert_closed(server)

    def test_client_reset_closes_the_connection_to_the_proxy(self):
        client, server = self.pair()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
        self.assert_closed(server)

    def test_closed_proxy_connection_closes_the_client(self):
        client, server = self.pair()
        server.close()
        self.assert_closed(client)
        self.assert_quiet()

    def test_ended_session_closes_only_its_own_listener_and_connections(self):
        other = Inside(self)
        mine, theirs = self.pair(), self.pair(other)
        self.inside.end()
        for sock in mine:
            self.assert_closed(sock)
        self.assert_soon(lambda: self.is_refused(self.inside), "the end of the listener")
        self.assert_joined(*theirs)
        self.assert_joined(*self.pair(other))

    def test_end_of_the_zygote_ends_the_egress_process_and_all_connections(self):
        pair = self.pair()
        self.orders.close()
        for sock in pair:
            self.assert_closed(sock)
        self.assertEqual(self.process.wait(PATIENCE), 0)

    def test_ended_connections_and_sessions_leave_no_descriptor_open(self):
        self.assert_joined(*self.pair())
        before = len(self.descriptors())
        other = Inside(self)
        for _ in range(3):
            client, server = self.pair(other)
            self.assert_joined(client, server)
            client.close()
            self.assert_closed(server)
        self.pair(other)
        other.end()
        self.assert_soon(lambda: len(self.descriptors()) == before, "as many descriptors as before")

    def is_refused(self, inside):
        try:
            self.connect(inside)
        except ConnectionRefusedError:
            return True
        return False


class ConnectionLimits(EgressTest):
    def test_connections_beyond_a_sessions_limit_wait(self):
        pairs = [self.pair() for _ in range(MOST)]
        late = self.connect()
        late.sendall(b"at last")
        self.assert_nobody_comes()
        self.assert_joined(*self.pair(Inside(self)))
        for sock in pairs[0]:
            sock.close()
        self.assertEqual(self.accept().recv(100), b"at last")

    def test_connections_that_the_proxy_closed_do_not_count_while_clients_keep_them_open(self):
        pairs = [self.pair() for _ in range(MOST)]
        for client, server in pairs:
            server.shutdown(socket.SHUT_WR)
            self.assert_closed(client)
            server.close()
        self.assert_joined(*self.pair())

    def test_client_waits_until_a_descriptor_is_free(self):
        self.assert_joined(*self.pair())
        before = resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, (1 + max(self.descriptors()), before[1]))
        late = self.connect()
        late.sendall(b"at last")
        self.assert_nobody_comes()
        resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, before)
        self.assertEqual(self.accept().recv(100), b"at last")

    def test_order_without_its_descriptors_is_ignored(self):
        with socket.socket() as alone:
            socket.send_fds(self.orders, [b"\n"], [alone.fileno()])
        self.orders.sendall(b"\n")
        self.assert_joined(*self.pair(Inside(self)))

    def test_client_is_closed_while_the_proxy_is_away_and_served_when_it_is_back(self):
        self.proxy.close()
        self.assert_closed(self.connect())
        os.unlink(self.path)
        self.assert_closed(self.connect())
        self.listen()
        self.assert_joined(*self.pair())


def send_all(sock, data):
    sock.sendall(data)
    sock.shutdown(socket.SHUT_WR)


def read_all(sock):
    parts = []
    while data := sock.recv(1 << 18):
        parts.append(data)
    return b"".join(parts)


if __name__ == "__main__":
    unittest.main()
