"""Two tables: command lines whose secret must not be shown, and command lines that must be shown as they are."""

from __future__ import annotations

import pytest

from gpulse.sources.secrets import MASK, mask

HEX = "0f3a9c1de57b24688ac0f3a9c1de57b24688ac01"  # a W&B key looks like a git hash: only its name tells
RANDOM = "q7Zt2LmX9vB4kR8sYw1HdN5c"
SECRET = "correct-horse"

MASKED = [
    ["train.py", "--wandb-key", HEX],
    ["train.py", f"--wandb-key={HEX}"],
    ["train.py", f"--wandb_key={HEX}"],
    ["wandb", "login", HEX],
    ["/opt/bin/wandb", "login", "--relogin", "--key", HEX],
    ["x", "--passphrase", SECRET],
    ["x", f"--passphrase={SECRET}"],
    ["x", "--password", "12345678"],
    ["x", "--password", "/etc/notapath"],
    ["x", f"--db.password={SECRET}"],
    ["x", f"--dbPassword={SECRET}"],
    ["x", f"--authorization-token={SECRET}"],
    ["x", "--authorization-token", SECRET],
    ["x", "--auth", SECRET],
    ["x", "--auth-token", SECRET],
    ["x", "--hf-token", SECRET],
    ["x", "--hf_token", SECRET],
    ["x", "--token", SECRET],
    ["x", "--token-id", SECRET],
    ["x", "--accessToken", SECRET],
    ["x", "--access-token", SECRET],
    ["x", "--client-secret", SECRET],
    ["x", "--clientSecret", SECRET],
    ["x", "--aws-secret-access-key", SECRET],
    ["x", "--apikey", SECRET],
    ["x", "--api-key", SECRET],
    ["x", "--openai-key", SECRET],
    ["x", "--license-key", SECRET],
    ["x", "--private-key", SECRET],
    ["x", "--key", RANDOM],
    ["x", "--key", SECRET],
    ["x", f"--key={SECRET}"],
    ["x", "-key", SECRET],
    [f"KEY={SECRET}", "python", "train.py"],
    ["bash", "-c", f"export KEY={SECRET}; python train.py"],
    ["bash", "-c", f"python train.py --key '{SECRET}' --lr 1"],
    ["x", "--otp", "12345678"],
    ["x", "--otp=12345678"],
    ["x", "--otp", SECRET],
    ["x", "--totp", "12345678"],
    ["x", "--totp-secret", SECRET],
    ["x", "--mfa", "12345678"],
    ["x", "--mfa-code", "12345678"],
    ["x", "--2fa", "12345678"],
    ["x", "--2fa-code=12345678"],
    ["x", "--verification-code", "12345678"],
    ["x", "--recovery-code", SECRET],
    ["x", "--backup-codes", SECRET],
    ["x", "--pin", "12345678"],
    ["x", "--pin=12345678"],
    ["x", "--card-pin", "12345678"],
    ["x", "--pin-code", "12345678"],
    ["x", "--passcode", "12345678"],
    ["x", '{"pin": "12345678"}'],
    ["OTP=12345678", "x"],
    ["x", "--seed-phrase", f"abandon {SECRET} able"],
    ["x", f"--seed-phrase={SECRET}"],
    ["x", "--seed_phrase", SECRET],
    ["x", f"--seedPhrase=abandon {SECRET}"],
    ["x", "--mnemonic", f"abandon ability {SECRET}"],
    ["x", "--recovery-phrase", SECRET],
    ["x", "--wallet-key", SECRET],
    ["x", "--decryption-key", SECRET],
    ["x", "--hmac-key", SECRET],
    ["x", "--unseal-key", SECRET],
    ["x", f"access_key={SECRET}"],
    ["x", f"api_key={SECRET}"],
    ["x", f"--credentials={SECRET}"],
    ["x", f"wandb.api_key={SECRET}"],
    ["x", f"+logger.apiKey={SECRET}"],
    [f"WANDB_API_KEY={HEX}", "python"],
    [f"HF_TOKEN={SECRET}", "python"],
    [f"HUGGING_FACE_HUB_TOKEN={SECRET}", "python"],
    [f"PGPASSWORD={SECRET}", "psql"],
    [f"MYSQL_PWD={SECRET}", "mysql"],
    ["bash", "-c", f"WANDB_API_KEY={HEX} python train.py"],
    ["bash", "-c", f"export HF_TOKEN='{SECRET}'; python train.py"],
    ["sh", "-c", f'cd /srv/train && OPENAI_API_KEY="{SECRET}" exec python train.py'],
    ["bash", "-c", f"python train.py --wandb-key {HEX} --lr 1e-4"],
    ["bash", "-c", f"python train.py --password {SECRET}"],
    ["curl", f"https://h/?a=1&token={SECRET}"],
    ["curl", f"https://h/?token={SECRET}&a=1"],
    ["curl", f"https://h/x?se=2030&sig={SECRET}"],
    ["curl", f"https://h/x?X-Amz-Signature={SECRET}"],
    ["curl", f"https://h/x?api_key={SECRET}#part"],
    ["curl", "-H", f"X-Api-Key: {SECRET}"],
    ["curl", "-H", f"x-api-key:{SECRET}"],
    ["curl", "-H", f"Authorization: Bearer {SECRET}"],
    ["curl", "-H", f"Authorization: Basic {SECRET}"],
    ["curl", "-H", f"Cookie: {SECRET}"],
    ["curl", f"--header=Authorization: token {SECRET}"],
    ["curl", "-u", f"me:{SECRET}"],
    ["sshpass", "-p", SECRET, "ssh", "host"],
    ["redis-cli", "-a", SECRET],
    ["x", f'{{"lr": 0.1, "token": "{SECRET}"}}'],
    ["x", f'{{"api_key":"{SECRET}","lr":0.1}}'],
    ["x", f"{{'password': '{SECRET} and more', 'lr': 1}}"],
    ["x", f'{{\\"secret\\": \\"{SECRET}\\"}}'],
    ["x", f"{{token: {SECRET}, lr: 1}}"],
    ["x", f'--config-json={{"wandb": {{"api_key": "{SECRET}"}}}}'],
    ["git", "clone", f"https://me:{SECRET}@host/repo.git"],
    ["git", "clone", f"https://{SECRET}@host/repo.git"],
    ["bash", "-c", f"git clone https://me:{SECRET}@host/a && git clone https://host/b"],
    ["x", f"--dsn=postgresql://me:{SECRET}@db:5432/x"],
    ["x", f"nvapi-{RANDOM}"],
    ["x", f"hf_{RANDOM}"],
    ["x", f"ghp_{RANDOM}"],
    ["x", f"github_pat_{RANDOM}"],
    ["x", f"glpat-{RANDOM}"],
    ["x", f"sk-{RANDOM}"],
    ["x", f"sk-proj-{RANDOM}"],
    ["x", f"xoxb-1234-{RANDOM}"],
    ["x", f"AKIA{RANDOM.upper()}"],
    ["x", f"AIza{RANDOM}"],
    ["x", f"--arg=gsk_{RANDOM}"],
    ["x", f"eyJhbGciOiJIUzI1NiJ9.{RANDOM}.{RANDOM}"],
    ["python", "-c", f"login('hf_{RANDOM}')"],
    ["x", RANDOM],
    ["x", f"--anything={RANDOM}=="],
    ["x", "--sas", f"sv=2022-11-02&ss=b&sig={SECRET}"],
]

SHOWN = [
    "python train.py --lr 1e-4 --weight-decay 0.01",
    "python train.py --learning-rate=3e-05",
    "python train.py --max-tokens 100",
    "python train.py --max_new_tokens=100",
    "python train.py --tokens-per-batch 4096",
    "python train.py --tokenizer foo",
    "python train.py --tokenizer-path=/models/foo",
    "python train.py --tokenizer.name=gpt2",
    "python train.py --eos-token </s>",
    "python train.py --bos_token=<s>",
    "python train.py --pad-token-id 0",
    "python train.py --image-token-id=151655",
    "python train.py --mask_token [MASK]",
    "python train.py --num-token 4",
    "python train.py --token-dropout 0.1",
    "python train.py --token-type bpe",
    "python train.py --token-file /run/token",
    "python train.py --hf-token-path ~/.token",
    "python train.py --no-auth",
    "python train.py --auth-type basic",
    "python train.py --use-auth-token true",
    "python train.py --author me",
    "python train.py --password-file /run/secret",
    "python train.py --secret-name wandb-credentials",
    "python train.py --key-frames 3 --num-keys 8 --primary-key id --group-key=run",
    "python train.py --pin-memory --pin_memory true --pin_memory=True --no-pin-memory",
    "python train.py --seed 42 --seed=1234567 --data-seed 12345678",
    "taskset --cpu-pin 0,1,2,3 --pin 3 --pin=17 --pin 0,1,2,3",
    "gpio --gpio-pin BCM17 --led-pin 1234",
    "python train.py --error-code E1234 --country-code DE --exit-code 1234",
    "python train.py --trigger-phrase sks --wake-phrase hello",
    "rebar3 --otp 26 --otp-version 26.2.1",
    "openssl req -key server.pem -out server.csr",
    "gpulse serve --cert box.pem --key box.key",
    "python -c sorted(runs, key=len)",
    "python train.py key=loss data.key=image",
    'python train.py {"key": "loss", "pin": true, "otp": false}',
    "python train.py --sort-key loss",
    "python train.py --label_key=class",
    "python train.py --key-length 128",
    "python train.py --num-key-value-heads 8",
    "python train.py --keyboard us --monkey banana",
    "python train.py --passes 3 --compass north",
    "python train.py --seed 1234567890123456789012",
    f"python train.py --revision {HEX}",
    f"git checkout {HEX}",
    "git show 3f2a91c",
    "git log --author me",
    "docker run repo/image@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "docker run -u 1000:1000 --gpus all pytorch",
    "vllm serve Qwen/Qwen3-32B --port 8000 --gpu-memory-utilization 0.90",
    "vllm serve meta-llama/Meta-Llama-3.1-405B-Instruct-FP8",
    "vllm serve RedHatAI/Qwen3-32B-A3B-FP8-W8A8-GPTQ",
    "vllm serve hf_models/Llama",
    "pip install hf_transfer hf_xet",
    "pip install sk-learn",
    "python hf_train.py",
    "python -m torch.distributed.run --nproc-per-node=8 train.py",
    "python -m http.server https://host/path@v2",
    "curl https://host/?page=2&sort=name",
    "curl http://localhost:8000/v1/chat/completions",
    "ssh user@host",
    "rsync -a user@host:/data/imagenet /scratch",
    "python /home/me/projects/Qwen2ForConditionalGeneration/train.py",
    "python train.py --model-class Qwen2ForConditionalGenerationWithLMHead",
    "python train.py --run 550e8400-e29b-41d4-a716-446655440000",
    "python train.py --gpu GPU-5b0c3e1a-7d4f-4c19-9a43-1f2e3d4c5b6a",
    "python train.py --out /scratch/runs/2026-11-15T10-22-31Z/checkpoint-1000",
    "python train.py --data /nix/store/0c5v9m2k1q8x7w6z5y4b3n2l1j0h9g8f-imagenet",
    "python train.py --dataset s3://bucket/prefix/train-00001-of-01024.parquet",
    "python train.py --betas 0.9,0.999 --eps 1e-08",
    'python train.py {"lr": 0.1, "max_tokens": 512}',
    "python train.py optimizer.lr=0.001 model.hidden=4096",
    "bash -c OMP_NUM_THREADS=8 python train.py",
    "CUDA_VISIBLE_DEVICES=0,1,2,3 python train.py",
    "NCCL_DEBUG=INFO torchrun --rdzv-endpoint=node001:29500 train.py",
    "python -c import torch; print(torch.cuda.is_available())",
    "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 --library-path /usr/lib",
    "wandb agent me/project/a1b2c3d4",
    "python train.py --signal 10 --design cnn --assign 3",
]


def test_both_tables_are_long() -> None:
    assert len(MASKED) >= 60
    assert len(SHOWN) >= 60


@pytest.mark.parametrize("arguments", MASKED, ids=" ".join)
def test_a_secret_is_not_shown(arguments: list[str]) -> None:
    shown = mask(arguments)
    assert MASK in shown
    for secret in (HEX, RANDOM, SECRET, "12345678", "/etc/notapath"):
        assert secret not in shown


@pytest.mark.parametrize("command", SHOWN)
def test_what_is_no_secret_is_shown(command: str) -> None:
    assert mask(command.split(" ")) == command
    assert mask([command]) == command


def test_what_follows_a_secret_stays_readable() -> None:
    assert mask(["bash", "-c", f"WANDB_API_KEY={HEX} python train.py"]) == "bash -c WANDB_API_KEY=*** python train.py"
    assert mask([f"https://h/?token={SECRET}&a=1"]) == "https://h/?token=***&a=1"
    assert mask([f'{{"token": "{SECRET}", "lr": 0.1}}']) == '{"token": "***", "lr": 0.1}'


@pytest.mark.parametrize("number", ["1234", "123456", "00000000"])
@pytest.mark.parametrize(
    "name", ["--pin", "--otp", "--totp", "--mfa", "--2fa", "--pin-code", "--auth-code", "--passcode"]
)
def test_a_code_is_a_secret_although_it_is_a_number(name: str, number: str) -> None:
    assert mask(["x", name, number]) == f"x {name} ***"
    assert mask(["x", f"{name}={number}"]) == f"x {name}=***"


def test_all_words_of_a_seed_phrase_are_masked_up_to_the_next_option() -> None:
    words = ["wallet", "--seed-phrase", "abandon", "ability", "able", "--epochs", "3"]
    assert mask(words) == "wallet --seed-phrase *** *** *** --epochs 3"
    assert mask(["wallet", "--mnemonic", "abandon ability able", "run.py"]) == "wallet --mnemonic *** run.py"
