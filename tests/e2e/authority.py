"""A certificate authority of a test run, for servers and clients of any name."""

import datetime
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


def common_name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


class Authority:
    """pem: the file with its own certificate."""

    def __init__(self, folder, name="Test Authority"):
        self.folder, self.name, self.issued = folder, common_name(name), 0
        self.key = ec.generate_private_key(ec.SECP256R1())
        certificate = self.builder(self.name, self.key, DAY).add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        self.pem = folder / f"{name.lower().replace(' ', '-')}.pem"
        self.pem.write_bytes(certificate.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def builder(self, subject, key, valid):
        now = datetime.datetime.utcnow()
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 3 * DAY)
            .not_valid_after(now + valid)
        )

    def issue(self, *names, subject="server", valid=DAY):
        """A PEM file with a certificate for these names, addresses among them, and its key. valid: from now on, may be negative."""
        key = ec.generate_private_key(ec.SECP256R1())
        entries = []
        for name in names:
            try:
                entries.append(x509.IPAddress(ipaddress.ip_address(name)))
            except ValueError:
                entries.append(x509.DNSName(name))
        builder = self.builder(common_name(subject), key, valid).add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        if entries:
            builder = builder.add_extension(x509.SubjectAlternativeName(entries), False)
        self.issued += 1
        pem = self.folder / f"{self.pem.stem}-{self.issued}.pem"
        encoded = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        pem.write_bytes(builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM) + encoded)
        return pem
