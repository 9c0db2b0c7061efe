import socket

import pytest

from shared.listening import OWN_PORTS, PortTaken, free_port


def test_any_port_is_one_that_the_system_does_not_hand_out():
    assert free_port("127.0.0.1", 0) in OWN_PORTS


def test_a_port_that_is_free_is_left_free():
    port = free_port("127.0.0.1", 0)

    with socket.socket() as server:
        server.bind(("127.0.0.1", port))
        server.listen()
        assert server.getsockname()[1] == port


def test_a_taken_port_is_said_with_what_to_do():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]

        with pytest.raises(PortTaken, match=rf"Cannot listen on 127\.0\.0\.1:{port}: .* Try --port"):
            free_port("127.0.0.1", port)


def test_a_host_that_is_not_ours_is_said():
    with pytest.raises(PortTaken, match="192\\.0\\.2\\.1"):
        free_port("192.0.2.1", 0)
