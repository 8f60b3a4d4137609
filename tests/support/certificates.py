"""Certificates for tests, good and bad ones, made by the program ``openssl``."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

HOSTS = "DNS:localhost,IP:127.0.0.1"
OTHER_HOSTS = "DNS:other.example"
VALID_DAYS = 7
EXPIRED_DAYS = -1
"""The end of a certificate's validity, in days from today."""
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
_TIME = "%Y%m%d%H%M%SZ"
_SETTINGS = """
[ca]
default_ca = own
[own]
database = {folder}/signed.txt
new_certs_dir = {folder}
default_md = sha256
rand_serial = yes
policy = names
unique_subject = no
[names]
commonName = supplied
"""
"""Of `openssl ca`, the one command of all versions that dates a certificate back."""


class Certificates:
    """Files in PEM form. Each certificate stands beside its key; a key store has both.

    Parameters
    ----------
    folder
        An existing folder for the files.
    """

    def __init__(self, folder: Path) -> None:
        if shutil.which("openssl") is None:
            pytest.skip("certificates for the test are made by the program openssl, which is not installed")
        self._folder = folder
        self._settings = self._file("ca", "conf")
        self._settings.write_text(_SETTINGS.format(folder=folder))
        self._file("signed", "txt").touch()
        self.authority = self._authority("ca")
        self.other_authority = self._authority("other-ca")
        """It has signed nothing that the servers use."""

    def server(self, name: str = "server", hosts: str = HOSTS, days: int = VALID_DAYS) -> Path:
        """Make a server's certificate for some hosts; return its key store."""
        return self._key_store(name, name, hosts, days)

    def client(self, user: str, days: int = VALID_DAYS) -> tuple[Path, Path]:
        """Return a client's certificate and its key; make them at the first call."""
        name = f"client-{user}" if days == VALID_DAYS else f"client-{user}-{days}"
        if not self._file(name, "pem").exists():
            self._key_store(name, user, HOSTS, days)
        return self._file(name, "crt"), self._file(name, "key")

    def _file(self, name: str, ending: str) -> Path:
        return self._folder / f"{name}.{ending}"

    def _authority(self, name: str) -> Path:
        certificate, key = self._file(name, "crt"), self._file(name, "key")
        subject = ("-subj", f"/CN={name}", "-days", str(VALID_DAYS))
        _openssl("req", "-x509", *_NEW_KEY, *subject, "-keyout", str(key), "-out", str(certificate))
        return certificate

    def _key_store(self, name: str, subject: str, hosts: str, days: int) -> Path:
        """Make a key and its certificate, signed by the authority."""
        certificate, key, request, extensions, store = (
            self._file(name, ending) for ending in ("crt", "key", "csr", "ext", "pem")
        )
        _openssl(
            "req", "-new", *_NEW_KEY, "-subj", f"/CN={subject}", "-keyout", str(key), "-out", str(request)
        )
        extensions.write_text(f"basicConstraints=CA:FALSE\nsubjectAltName={hosts}\n")
        end = datetime.now(UTC) + timedelta(days=days)
        begin = min(datetime.now(UTC), end) - timedelta(days=1)
        times = ("-startdate", f"{begin:{_TIME}}", "-enddate", f"{end:{_TIME}}")
        signer = ("-cert", str(self.authority), "-keyfile", str(self._file("ca", "key")))
        _openssl(
            *("ca", "-batch", "-notext", "-config", str(self._settings), *signer, *times),
            *("-in", str(request), "-extfile", str(extensions), "-out", str(certificate)),
        )
        store.write_text(key.read_text() + certificate.read_text() + self.authority.read_text())
        return store


def _openssl(*arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"openssl {' '.join(arguments)} failed:\n{done.stderr}")
