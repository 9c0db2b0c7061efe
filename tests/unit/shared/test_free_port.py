import socket

import pytest

from shared.listen_socket import OWN_PORTS, PortTaken, bind, free_port, listen


def test_chosen_port_is_outside_the_ephemeral_range():
    assert free_port("127.0.0.1", 0) in OWN_PORTS


def test_free_port_is_not_left_bound():
    port = free_port("127.0.0.1", 0)

    with socket.socket() as server:
        server.bind(("127.0.0.1", port))
        server.listen()
        assert server.getsockname()[1] == port


def test_port_in_use_raises_an_error_with_advice():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]

        with pytest.raises(PortTaken, match=rf"Cannot listen on 127\.0\.0\.1:{port}: .* Try --port"):
            free_port("127.0.0.1", port)


def test_foreign_host_raises_port_taken():
    with pytest.raises(PortTaken, match="192\\.0\\.2\\.1"):
        free_port("192.0.2.1", 0)


def test_bound_port_is_taken_before_listening():
    with bind("127.0.0.1", 0) as first:
        port = first.getsockname()[1]

        with pytest.raises(PortTaken):
            bind("127.0.0.1", port)


def test_only_one_of_two_sockets_that_reuse_an_address_listens(left_behind):
    """Both can bind, because connections of an earlier server remain."""
    with bind("127.0.0.1", left_behind) as first, bind("127.0.0.1", left_behind) as second:
        listen(first, 1)

        with pytest.raises(PortTaken, match=rf"127\.0\.0\.1:{left_behind}: .* Try --port"):
            listen(second, 1)


def test_port_of_a_server_that_has_just_stopped_can_be_bound(left_behind):
    with bind("127.0.0.1", left_behind) as following:
        listen(following, 1)

        assert following.getsockname()[1] == left_behind


@pytest.fixture
def left_behind():
    """Port of a stopped server that closed a connection first."""
    with bind("127.0.0.1", 0) as server:
        listen(server, 1)
        client = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
        accepted.close()
        client.recv(1)
        client.close()
        return server.getsockname()[1]
