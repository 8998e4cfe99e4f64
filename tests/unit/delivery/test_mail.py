"""Mail through a real server, encrypted and with a password, and through a program."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from gpulse.delivery.delivery import Failed
from gpulse.delivery.mail import Mailer, checked_address
from gpulse.errors import ConfigError
from tests.unit.delivery.mail_server import mail_server


def test_a_message_arrives_as_it_was_written() -> None:
    with mail_server() as box:
        mailer = Mailer({"server": f"127.0.0.1:{box.port}", "sender": "gpulse@node7"})
        mailer.send(["ada@example.org", "ops@example.org"], "GPU 3\r\nBcc: eve@example.org", "88 °C\n", "<p>88 °C</p>")
    (message,) = box.messages
    assert box.recipients == [["ada@example.org", "ops@example.org"]]
    assert message["From"] == "gpulse@node7"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["Bcc"] is None  # a subject is one line, whatever is in it
    assert "GPU 3" in message["Subject"]
    assert message.get_body(("plain",)).get_content().strip() == "88 °C"  # type: ignore[union-attr]
    assert "<p>88 °C</p>" in message.get_body(("html",)).get_content()  # type: ignore[union-attr]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate with")
def test_encryption_and_a_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=127.0.0.1"
    alt = ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(["openssl", *words.split(), *alt], cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    secret = tmp_path / "password"
    secret.write_text("hunter2\n")
    with mail_server(context, "gpulse", "hunter2") as box:
        settings = {
            "server": f"127.0.0.1:{box.port}",
            "tls": "starttls",
            "user": "gpulse",
            "password_file": str(secret),
        }
        with pytest.raises(Failed, match="certificate"):
            Mailer(settings).send(["ada@example.org"], "a", "b")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
        Mailer(settings).send(["ada@example.org"], "a", "b")
        assert box.encrypted == [True]
        secret.write_text("wrong\n")
        with pytest.raises(Failed) as error:
            Mailer(settings).send(["ada@example.org"], "a", "b")
    assert "535" in str(error.value)
    assert "wrong" not in str(error.value)


def test_a_refusal_says_what_the_server_said() -> None:
    with mail_server() as box:
        box.refuse = "554 no spam here"
        with pytest.raises(Failed, match="554 no spam here"):
            Mailer({"server": f"127.0.0.1:{box.port}"}).send(["ada@example.org"], "a", "b")


def test_without_a_server_the_program_is_given_the_message(tmp_path: Path) -> None:
    program, taken = tmp_path / "sendmail", tmp_path / "taken"
    program.write_text(f'#!/bin/sh\necho "$@" > {taken}\ncat >> {taken}\n')
    program.chmod(0o755)
    Mailer({"sendmail": str(program), "sender": "gpulse@node7"}).send(["ada"], "hot", "GPU 3 is hot\n")
    text = taken.read_text()
    assert text.startswith("-i -t -f gpulse@node7\n")
    assert "To: ada\n" in text
    assert text.endswith("GPU 3 is hot\n")
    with pytest.raises(Failed, match="cannot be run"):
        Mailer({"sendmail": str(tmp_path / "none")}).send(["ada"], "a", "b")


@pytest.mark.parametrize("address", ["-oQ/tmp", "a b", "a@b@c", "a,b", "", "ä@b", "<a>"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="a mail address"):
        checked_address(address)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"user": "ada"}, "belong together"),
        ({"server": "mail:x"}, "not HOST:PORT"),
        ({"server": "mail", "tls": "none", "user": "a", "password_file": "b"}, "unencrypted"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Mailer(settings)
