"""What gives a secret away: the name that it is given to, its own shape, and the tool that it is handed to."""

from __future__ import annotations

import itertools


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Names are split into their words: --wandb-key, WANDB_API_KEY and wandb.apiKey are all lists of words.
_PASSWORDS = ("password", "passwd", "passphrase", "passcode", "passwort")  # anywhere in a name, whatever the value
_SECRETS = (
    *("secret", "credential", "apikey", "accesskey", "privatekey", "secretkey", "authkey", "accountkey"),
    *("authtoken", "accesstoken", "masterauth"),
)
# The words that restore a wallet or an account. They may follow as several arguments.
_PHRASES = ("mnemonic", "seedphrase", "seedwords", "recoveryphrase", "secretphrase", "backupphrase")
_EXACT = _set(
    "auth authorization authentication pwd pw dbpw userpw rootpw adminpw bindpw cred creds psk pat sas sig signature jwt"
    " cookie bearer"
)
_KEY_OWNERS = _set(
    "access account admin aes anthropic api app auth aws azure cerebras cipher client cohere comet dd decryption deepseek deploy"
    " encryption fireworks gcp gemini gh github gitlab google groq hf hmac huggingface hub ingestion instrumentation jwt langchain"
    " langsmith license login master minio mistral neptune ngc nvidia openai openrouter pinecone preshared private recovery replicate s3"
    " secret sendgrid service session shared signing slack ssh storage stripe subscription tavily together unseal vault wallet wandb x"
)
# One-time codes, and whose code or PIN it is. Such a secret is a number; one of few digits is not: --pin 3 is a core or a wire.
_CODES = _set("otp totp hotp mfa 2fa tfa")
_CODE_OWNERS = _set(
    "2fa access auth authentication authenticator backup card login mfa otp pin recovery security sim sms tfa totp user verification"
)
# The word before `token` that makes it a token of a language model.
_TEXT_TOKENS = _set(
    "add audio begin blank continuation cursor bos class cls control decoder draft encoder end eos eot fim first forced image img last"
    " latent mask max min mm multimodal new newline next num pad page per placeholder pooling prefix prompt query register reserved sep"
    " soft special speech start stop suffix text think tool trigger type unk video vision visual"
)
# The word before `pass`, or the start of its own word, that makes it a passage.
_PASSAGES = _set(
    "all backward band by com dry encom fast final first forward full high last loss low main max min multi n num one over"
    " per post pre prefill render second single slow sur third tres two under"
)
# The last word of a name that describes a secret instead of holding it.
_ABOUT = _set(
    "backend cache check count dim dir directory dropout endpoint env expiry field file files folder format header helper"
    " length level limit manager method mode name names optional path policy prefix prompt provider ratio required size"
    " source stdin strength timeout ttl type types url usage"
)
_SWITCHES = _set("no disable enable skip without with allow require ask show print has is")  # first in a name
_PLAIN = _set(
    "true false none null auto yes no on off any basic bearer digest env iam jwt kerberos ldap ntlm oauth oauth2 optional"
    " peer prompt required saml stdin token trust"
)
_PLACES = ("id=", "env:", "file:", "fd:")  # say where a secret is
_PREFIXES = (
    *("sk-", "sk_live_", "sk_test_", "rk_live_", "pk_live_", "hf_", "nvapi-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    *("github_pat_", "glpat-", "gldt-", "xoxb-", "xoxp-", "xoxa-", "xoxs-", "xapp-", "wandb_v1_", "pypi-AgE", "npm_"),
    *("dckr_pat_", "r8_", "gsk_", "tskey-", "lin_api_", "dop_v1_", "AKIA", "ASIA", "AIza", "ya29.", "SG.", "hvs."),
    *("whsec_", "shpat_", "sq0atp-", "figd_", "pat-na1-", "glsa_", "glc_", "ATATT3", "tgp_v1_", "fw_", "lsv2_pt_"),
)
_NAMES_IN_PREFIX = ("hf_", "npm_", "fw_")  # whose keys hold no further underscore, unlike the names of programs
_NOT_KEYS = (
    *("hf_transfer", "hf_xet", "hf_hub", "hf_model", "hf_home", "hf_cache", "hf_dataset", "hf_train", "hf_token"),
    *("hf_config", "hf_repo", "hf_path", "hf_overrides", "hf_eval", "hf_trainer", "hf_generate", "hf_finetune"),
    *("sk-learn", "sk-image", "sk-learn-contrib", "npm_config"),
)
_FILES = (".py", ".sh", ".yaml", ".yml", ".json", ".toml", ".txt", ".ipynb", ".js", ".ts")
_KEY_FILES = (".pem", ".key", ".crt", ".cer", ".der", ".p12", ".pfx", ".pub", ".asc", ".gpg")
_LONG = 20  # characters from which a run of letters and digits can be told to be random
_PIN = 4  # digits from which a number can be a password

# What each tool is handed as a secret, also inside the text of a shell. A sign is `-p` (the word after -p),
# `-p+` (the rest of a word that begins with -p), `+2` (every word after two others), or one of these after a word: `login:-p`.
_LOGIN = "login:-p login:-p+"
TOOLS = {
    **dict.fromkeys(("docker", "podman", "nerdctl", "buildah", "helm", "oras", "crane", "az"), _LOGIN),
    **dict.fromkeys(("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mariadb", "mariadb-dump"), "-p+"),
    **dict.fromkeys(("mongo", "mongosh", "mongodump", "mongorestore", "mongoexport", "cqlsh", "ncftpput"), "-p -p+"),
    **dict.fromkeys(("ldapsearch", "ldapadd", "ldapmodify", "ldapdelete", "ldapwhoami"), "-w -w+"),
    **dict.fromkeys(("sqlcmd", "bcp", "ipmitool", "mosquitto_pub", "mosquitto_sub", "zip", "unzip"), "-P -P+"),
    **dict.fromkeys(("7z", "7za", "7zz", "7zr", "rar", "unrar"), "-p+ -hp+"),
    **dict.fromkeys(("http", "https", "xh"), "-a --auth --auth=+"),
    **dict.fromkeys(("ssh", "scp", "sftp", "rsync"), ""),  # what follows is theirs, also after sshpass
    "skopeo": f"{_LOGIN} --creds --creds=+ --src-creds --src-creds=+ --dest-creds --dest-creds=+",
    "curl": "-u -u+ --user --user=+ -U -U+ --proxy-user --proxy-user=+ --pass -b --cookie",
    "sshpass": "-p -p+",
    "redis-cli": "-a --pass requirepass",
    "wandb": "login:+0",
    "vault": "login:+0",
    "ngrok": "authtoken:+0 add-authtoken:+0",
    "openssl": "-k -K",
    "ssh-keygen": "-N -P",
    "htpasswd": "+2",
    "wpa_passphrase": "+1",
    "mc": "set:+2",
    "twine": "-p",
    "poetry": "-p",
    "lftp": "-u -u+",
    "smbclient": "-U -U+",
    "influx": "-t",
    "gh": "secret:-b secret:--body secret:--body=+",
    "kubectl": "secret:--from-literal secret:--from-literal=+",
    "rclone": "obscure:+0",
    "xfreerdp": "/p:+",
    "sqlplus": "+0",
    "beeline": "-p",
    "rdesktop": "-p -p+",
    "kadmin": "-w",
    "bw": "unlock:+0",
    "nmcli": "password wifi-sec.psk",
    "machine": "password",  # a line of ~/.netrc
    "identified": "by",  # SQL
}
SETTERS = _set("set modify config --set --add --global setenv")  # followed by a name and a value
ECHOES = frozenset({"echo", "printf"})
READERS = frozenset({"chpasswd", "--with-token", "-S"})  # read a secret from standard input, as all that ends in -stdin
# the rest of such an address is a key
WEBHOOKS = ("hooks.slack.com/services/", "/api/webhooks/", "api.telegram.org/bot")


def name_of_secret(name: str, value: str) -> bool:
    """Return whether a value with this name is a secret; numbers and paths are, only if the name is that of a password."""
    words = _words(name)
    if not words or not value or words[-1] in _ABOUT or (words[0] in _SWITCHES and name.startswith("-")):
        return False
    joined = "".join(words)
    if any(word in joined for word in _PASSWORDS):
        return words[-1] != "passwordless"
    if value.lower() in _PLAIN or _is_path(value) or value[0] in "<[" or value.startswith(_PLACES):
        return False
    if _is_pass(words) or _is_code(words):
        return _is_pin(value) if _is_number(value.replace(",", "")) else True
    if _is_number(value):
        return False
    return is_phrase(name) or _holds_secret(words, joined) or (words[-1] == "key" and _is_key(words, name, value))


def is_phrase(name: str) -> bool:
    """Return whether a name is that of a list of words that is a secret as a whole: --seed-phrase, --mnemonic."""
    joined = "".join(_words(name))
    return any(word in joined for word in _PHRASES)


def shape_of_secret(word: str) -> bool:
    """Return whether a word is a secret by itself: a known format, or a long run of random letters and digits."""
    if word.startswith(_PREFIXES):
        further = word.startswith(_NAMES_IN_PREFIX) and not set("_-.").isdisjoint(word.partition("_")[2])
        return not (further or word.startswith(_NOT_KEYS) or "/" in word or word.endswith(_FILES))
    if word.startswith("eyJ") and word.count(".") >= 1 and len(word) >= _LONG:
        return True  # a JSON web token
    return len(word) >= _LONG and any(_is_random(run) for run in _runs(word))


def _is_pass(words: list[str]) -> bool:
    """Return whether a name is that of a password: db_pass, dbpass, passin; not one_pass and not compass."""
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last in ("passin", "passout"):
        return True
    return last.endswith("pass") and (last.removesuffix("pass") or before) not in _PASSAGES


def _is_code(words: list[str]) -> bool:
    """Return whether a name is that of a one-time code or a PIN: --otp, --mfa-code, --card-pin; not --cpu-pin and not --exit-code."""
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    return last in _CODES or words == ["pin"] or (last in ("code", "codes", "pin") and before in _CODE_OWNERS)


def _is_key(words: list[str], name: str, value: str) -> bool:
    """Return whether the value of a name that ends in `key` is a secret: any of --key and KEY, else a long one with digits.

    In other names a key is mostly that of a table or a dictionary: --sort-key loss, sorted(runs, key=len).
    """
    if words == ["key"] and (name.startswith("-") or name == "KEY"):
        return not value.endswith(_KEY_FILES)
    return len(value) >= _LONG and any(map(str.isdigit, value))


def _is_pin(value: str) -> bool:
    return value.isdecimal() and len(value) >= _PIN


def _holds_secret(words: list[str], joined: str) -> bool:
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last in ("id", "value") and before.endswith("token"):
        last, before = before, words[-3] if len(words) > 2 else ""
    if last.endswith("token"):
        return before not in _TEXT_TOKENS and last.removesuffix("token") not in _TEXT_TOKENS
    if last in ("key", "keys") or (last == "tokens" and before != "x"):
        return before in _KEY_OWNERS
    return last in _EXACT or any(word in joined for word in _SECRETS)


def _words(name: str) -> list[str]:
    """Split a name at its punctuation and where a lower-case letter is followed by an upper-case one."""
    spaced = []
    for before, letter in zip(" " + name, name, strict=False):
        if letter.isupper() and before.islower():
            spaced.append(" ")
        spaced.append(letter.lower() if letter.isalnum() else " ")
    return "".join(spaced).split()


def _is_number(value: str) -> bool:
    return value.replace(".", "", 1).replace("e-", "", 1).replace("-", "", 1).replace("_", "").isdecimal()


def _is_path(value: str) -> bool:
    named = value.endswith(_FILES) and not any(map(str.isdigit, value))
    return (named or value.startswith(("/", "./", "../", "~/", "$"))) and not any(
        _is_random(run) for run in _runs(value)
    )


def _runs(word: str) -> list[str]:
    return "".join(letter if letter.isalnum() or letter in "+=" else " " for letter in word).split()


def _is_random(run: str) -> bool:
    """Return whether upper case, lower case and digits alternate as in a random text; in names they come in groups.

    In random letters and digits 62 % of the neighbors are of different kinds, in names of classes and models under 35 %.
    Hexadecimal hashes and UUIDs have only two kinds.
    """
    run = run.rstrip("=")
    kinds = ["d" if letter.isdigit() else "u" if letter.isupper() else "l" for letter in run]
    if len(run) < _LONG or len(set(kinds)) < 3:
        return False
    return sum(a != b for a, b in itertools.pairwise(kinds)) >= 0.42 * len(run)
