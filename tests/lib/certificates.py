# SPDX-License-Identifier: GPL-2.0-only
"""Makes certificates for tests."""

import datetime
import ipaddress
import os
import tempfile

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

NOW = datetime.datetime.utcnow()


class Authority:
    """An authority, whose files are in a folder."""

    def __init__(self, folder, name):
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        self.path = os.path.join(folder, name + ".ca.pem")
        self.write(self.path, self.sign(self.name, self.key, True, []))

    @staticmethod
    def write(path, certificate, key=None):
        """Write PEM files."""
        with open(path, "wb") as file:
            file.write(certificate.public_bytes(serialization.Encoding.PEM))
        if key:
            with open(path + ".key", "wb") as file:
                file.write(key.private_bytes(serialization.Encoding.PEM,
                                             serialization.PrivateFormat.PKCS8,
                                             serialization.NoEncryption()))

    def sign(self, subject, key, is_ca, names, days=1):
        """Return a certificate."""
        builder = (x509.CertificateBuilder().subject_name(subject).issuer_name(self.name)
                   .public_key(key.public_key()).serial_number(x509.random_serial_number())
                   .not_valid_before(NOW - datetime.timedelta(days=3))
                   .not_valid_after(NOW + datetime.timedelta(days=days))
                   .add_extension(x509.BasicConstraints(is_ca, None), True))
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), False)
        return builder.sign(self.key, hashes.SHA256())

    def make(self, name, names=(), days=1):
        """Make a certificate with its key; returns the paths of both."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        path = os.path.join(tempfile.mkdtemp(dir=self.folder), "pem")
        self.write(path, self.sign(subject, key, False, list(names), days), key)
        return path, path + ".key"


def local_names():
    """Names of a server on this machine."""
    return [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
