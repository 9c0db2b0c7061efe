import asyncio
import ipaddress
import ssl
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from infrastructure.egress.client import EgressClient
from infrastructure.egress.ip_policy import IpPolicy
from infrastructure.egress.ssrf_guard import SsrfGuard
from tests.support.scripted_server import ScriptedServer

LOOPBACK = IpPolicy(https_only=False, ports=None, allowed=(ipaddress.ip_network("127.0.0.0/8"),))


async def to_loopback(host, port):
    del host, port
    return ["127.0.0.1"]


@pytest.fixture
async def server():
    async with ScriptedServer() as server:
        yield server


@pytest.fixture
async def client_of():
    """Returns a function that creates a client with the given resolver."""
    clients = []

    def make(resolve=to_loopback, policy=LOOPBACK, **options):
        clients.append(EgressClient(SsrfGuard(policy, resolve), **options))
        return clients[-1]

    yield make
    for client in clients:
        await client.close()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """Self-signed certificate for hooks.example: paths of the certificate and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hooks.example")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("hooks.example")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("certificate")
    encoding = serialization.Encoding.PEM
    (folder / "certificate.pem").write_bytes(made.public_bytes(encoding))
    (folder / "key.pem").write_bytes(
        key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder / "certificate.pem", folder / "key.pem"


@pytest.fixture
async def encrypted(certificate):
    """TLS server for hooks.example: its port and the received SNI name and request head."""
    async with _encrypted(*certificate) as (port, names):
        yield port, names


@asynccontextmanager
async def _encrypted(certificate, key):
    names = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.sni_callback = lambda _, name, __: names.append(name)

    async def answer(reader, writer):
        names.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 204 Scripted\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1], names
