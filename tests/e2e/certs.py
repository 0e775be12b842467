"""Self-signed certificates of a test run."""

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
