import socket

import pytest

from shared.listen_socket import OWN_PORTS, PortTaken, bind, free_port, listen


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


def test_a_bound_port_is_taken_before_anything_listens():
    with bind("127.0.0.1", 0) as first:
        port = first.getsockname()[1]

        with pytest.raises(PortTaken):
            bind("127.0.0.1", port)


def test_of_two_sockets_that_reuse_an_address_one_listens(left_behind):
    """Connections of an earlier server are left, so that both may bind."""
    with bind("127.0.0.1", left_behind) as first, bind("127.0.0.1", left_behind) as second:
        listen(first, 1)

        with pytest.raises(PortTaken, match=rf"127\.0\.0\.1:{left_behind}: .* Try --port"):
            listen(second, 1)


def test_a_server_that_has_just_ended_leaves_its_port_to_the_next(left_behind):
    with bind("127.0.0.1", left_behind) as following:
        listen(following, 1)

        assert following.getsockname()[1] == left_behind


@pytest.fixture
def left_behind():
    """The port of a server that has ended and had closed a connection first."""
    with bind("127.0.0.1", 0) as server:
        listen(server, 1)
        client = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
        accepted.close()
        client.recv(1)
        client.close()
        return server.getsockname()[1]
