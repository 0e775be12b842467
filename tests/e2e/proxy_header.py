"""What a balancer writes ahead of a connection: PROXY protocol headers, version 1 and 2."""

import ipaddress
import struct

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
LOCAL, PROXY = 0x20, 0x21


def v1(client, edge="192.0.2.80"):
    family = 4 if ipaddress.ip_address(client).version == 4 else 6
    return b"PROXY TCP%d %s %s 40000 80\r\n" % (family, client.encode(), (edge if family == 4 else "2001:db8::80").encode())


def v2(client, command=PROXY, extra=b""):
    """extra: further fields (TLVs). client None: no addresses, as LOCAL has them."""
    family, body = 0, b""
    if client is not None:
        address = ipaddress.ip_address(client)
        family = 0x11 if address.version == 4 else 0x21
        body = address.packed + ipaddress.ip_address("192.0.2.80" if address.version == 4 else "2001:db8::80").packed + struct.pack("!HH", 40000, 80)
    return SIGNATURE + bytes([command, family]) + struct.pack("!H", len(body + extra)) + body + extra
