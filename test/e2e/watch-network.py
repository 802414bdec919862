"""
Watches a network namespace of its own: run by `unshare -n`. Every address leads back to it, so that whatever a program
tries to reach is seen and refused at once. Prints a line for each name that is asked for, and for each packet
to another address than the loopback's.
"""

import socket
import struct
import subprocess
import sys
import threading


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def route():
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["ip", "route", "add", "local", "default", "dev", "lo"], check=True)
    # Where there is no IPv6, nothing can leave by it.
    subprocess.run(["ip", "-6", "route", "add", "local", "default", "dev", "lo"], stderr=subprocess.DEVNULL)


def name_in(query):
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("latin-1"))
        at += 1 + query[at]
    return ".".join(labels)


def resolve(family, address):
    """Knows no name, and says so."""
    server = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET6:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    else:
        # The answer has to come from the address that was asked.
        server.setsockopt(socket.IPPROTO_IP, 8, 1)
    server.bind((address, 53))

    def serve():
        while True:
            query, ancillary, _, asker = server.recvmsg(4096, 256)
            say("name", name_in(query))
            answer = query[:2] + b"\x81\x83" + query[4:6] + bytes(6) + query[12:]
            server.sendmsg([answer], ancillary, 0, asker)

    threading.Thread(target=serve, daemon=True).start()


def is_query(head, header_length, protocol):
    return protocol == 17 and struct.unpack_from("!H", head, header_length + 2)[0] == 53


def watch():
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0003))
    say("ready")
    while True:
        head, (_, kind, direction, *_) = packets.recvfrom(128)
        if direction != socket.PACKET_OUTGOING or kind not in (0x0800, 0x86DD):
            continue
        if kind == 0x0800:
            length, protocol = (head[0] & 15) * 4, head[9]
            target = socket.inet_ntop(socket.AF_INET, head[16:20])
        else:
            length, protocol = 40, head[6]
            target = socket.inet_ntop(socket.AF_INET6, head[24:40])
        if target.startswith("127.") or target == "::1" or is_query(head, length, protocol):
            continue
        if protocol not in (6, 17) or struct.unpack_from("!H", head, length)[0] == 53:
            continue
        # Of a connection, the first packet alone: the others are answers, or answers to those.
        if protocol == 6 and head[length + 13] != 2:
            continue
        say("packet", "tcp" if protocol == 6 else "udp", target, struct.unpack_from("!H", head, length + 2)[0])


route()
resolve(socket.AF_INET, "0.0.0.0")
if socket.has_ipv6:
    try:
        resolve(socket.AF_INET6, "::")
    except OSError:
        pass
watch()
