"""Self-signed certificates of a test run."""

import base64
import hashlib
import shutil
import subprocess


def make_cert(folder, name="edge.test"):
    """A PEM file with a certificate for the name and its key."""
    assert shutil.which("openssl"), "the command `openssl` is missing: apt-get install openssl"
    key, crt, pem = folder / f"{name}.key", folder / f"{name}.crt", folder / f"{name}.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        + ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}", "-keyout", key, "-out", crt],
        check=True,
        capture_output=True,
    )
    pem.write_bytes(crt.read_bytes() + key.read_bytes())
    return pem


def spki_hash(pem):
    """SHA-256 of the certificate's public key as browsers name it, in base64."""
    key = subprocess.run(["openssl", "x509", "-in", pem, "-noout", "-pubkey"], check=True, capture_output=True)
    der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "DER"], input=key.stdout, check=True, capture_output=True)
    return base64.b64encode(hashlib.sha256(der.stdout).digest()).decode()


def openssl(*args):
    subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True)


def make_client_certs(folder):
    """An authority's ca.crt and, as .pem with key: good (its), expired (its), self (nobody's), and stranger (of an authority with the same name)."""
    ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-utf8"]
    for ca in ("ca", "other"):
        openssl("req", "-x509", *ec, "-days", 2, "-subj", "/CN=Clients", "-keyout", folder / f"{ca}.key", "-out", folder / f"{ca}.crt")
    openssl("req", "-x509", *ec, "-days", 2, "-subj", "/CN=self", "-keyout", folder / "self.key", "-out", folder / "self.crt")
    subject = '/C=AT/O=Acme, Inc. "x"+OU=a/CN=Zoë  client'
    for name, ca, days in (("good", "ca", 2), ("expired", "ca", 0), ("stranger", "other", 2)):
        key, request, crt = folder / f"{name}.key", folder / f"{name}.csr", folder / f"{name}.crt"
        openssl("req", *ec, "-subj", subject, "-keyout", key, "-out", request)
        signer = ["-CA", folder / f"{ca}.crt", "-CAkey", folder / f"{ca}.key", "-set_serial", 0x00A1B2C3D4]
        openssl("x509", "-req", "-in", request, *signer, "-days", days, "-out", crt)
    for name in ("good", "expired", "stranger", "self"):
        (folder / f"{name}.pem").write_bytes((folder / f"{name}.crt").read_bytes() + (folder / f"{name}.key").read_bytes())
    return folder
