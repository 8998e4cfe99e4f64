"""Command lines as people type them: some with a secret, written §, and many without."""

from __future__ import annotations

import itertools

SECRETS = ("correct-horse", "Tr0ub4dor!3", "p4ss.w0rd_x", "q7Zt2LmX9vB4kR8sYw1H")

# Each stands for one shape of an ordinary command line, in the syntax of a shell; ⏎ is a line break.
WITH_SECRETS = r'''
python train.py --db-pass §
python train.py --db-pass=§
python train.py --dbpass §
python train.py --db_pw §
python train.py --pw=§
python train.py --password '§'
python train.py --passwd=§ --epochs 3
python train.py --db.password=§
python train.py --passphrase §
python train.py --creds §
python train.py --cred=me:§
python train.py --credentials §
python train.py --api-key §
python train.py --key §
python train.py --key=§ --lr 1e-4
KEY=§ python train.py
python train.py --otp §
python train.py --pin §
python train.py --mfa-code=§
python train.py --seed-phrase §
bash -c 'wallet --mnemonic "abandon § able" --dry-run'
python train.py --api-key=§ --lr 3
python train.py --api_key '§'
python train.py --apikey §
python train.py --hf-token § --lr 3e-4
python train.py --hf_token=§
python train.py --token § model
python train.py --auth-token §
python train.py --access-token=§
python train.py --secret §
python train.py --client-secret=§
python train.py --wandb-key §
python train.py --wandb_api_key=§
python train.py wandb.api_key=§ model=llama
python train.py +logger.api_key=§
python train.py --logger '{"api_key": "§", "project": "x"}'
python train.py --config '{"db": {"user": "me", "password": "§"}}'
python train.py --config "{'token': '§'}"
python train.py '{"password":"§"}'
env HF_TOKEN=§ python train.py
env DB_PASS=§ DB_HOST=h python train.py
env PASSWORD='§ and more' python train.py
env PGPASSWORD=§ psql -h db
bash -c 'DB_PASS=§ python train.py'
bash -c 'DB_PASS="§" python train.py'
bash -c 'export DB_PASS=§; python train.py'
bash -c "export HF_TOKEN='§' && torchrun train.py"
bash -c 'HF_TOKEN=§ WANDB_MODE=offline python train.py'
bash -lc 'python train.py --db-pass §'
bash -c 'python train.py --api-key "§" --lr 3'
bash -ec 'wandb login § && python train.py'
bash -c 'wandb login --relogin § > /dev/null'
bash -c "curl -u bob:§ https://host/file"
bash -c "curl -sSu 'bob:§' https://host/file | tar x"
bash -c "curl -H 'a: b; c' -u bob:§ https://host/file"
bash -c "sshpass -p § ssh host nvidia-smi"
bash -c "sshpass -p '§' scp a host:b"
bash -c 'cd /tmp; mysql -u root -p§ db < dump.sql'
bash -c 'mysqldump -uroot -p"§" db'
bash -c 'echo § | docker login -u me --password-stdin'
bash -c "echo '§' | sudo -S systemctl restart x"
bash -c "printf '%s' '§' | gh auth login --with-token"
bash -c "docker login --password-stdin <<< '§'"
bash -c "echo 'bob:§' | chpasswd"
bash -c 'redis-cli -h cache -a § ping'
bash -c 'for i in 1 2; do curl -u bob:§ host; done'
bash -c 'x=$(curl -u bob:§ host)'
bash -c "ssh host 'mysql -p§ db'"
bash -c 'ssh host "bash -c \"sshpass -p § ssh b\""'
bash -c "python -c 'import os; os.environ[\"HF_TOKEN\"] = \"§\"'"
bash -c "psql 'host=db user=me password=§ dbname=x'"
bash -c "psql -c \"ALTER USER me PASSWORD '§'\""
bash -c "mysql -e \"CREATE USER me IDENTIFIED BY '§'\""
bash -c 'echo "machine host login me password §" > ~/.netrc'
bash -c 'cat <<EOF⏎password: §⏎EOF'
sh -c 'exec python serve.py --api-key §'
sh -c "curl -H 'Authorization: Bearer §' https://host"
sh -c 'curl -H "X-Api-Key: §" https://host'
zsh -c 'DB_PASS=§ python train.py'
ssh host 'DB_PASS=§ python train.py'
ssh host 'mysql -p§ db'
ssh host curl -u bob:§ https://host
ssh host "bash -lc 'python train.py --db-pass §'"
srun bash -c 'python train.py --db-pass §'
srun --gpus=8 bash -c 'wandb login §; python train.py'
sbatch --wrap 'curl -u bob:§ https://host'
sbatch --wrap="mysql -p§ db"
sbatch --export=ALL,HF_TOKEN=§ job.sh
docker run -e HF_TOKEN=§ image python train.py
docker run --env HF_TOKEN=§ --gpus all image
docker run image bash -c 'curl -u bob:§ https://host'
docker exec box sh -c 'mysql -p§'
docker login -u me -p § registry
docker login --username me --password § registry
docker build --build-arg HF_TOKEN=§ .
podman login -u me -p§ registry
kubectl exec pod -- bash -c 'mysql -p§ db'
kubectl create secret generic x --from-literal=password=§
kubectl create secret generic x --from-literal=anything=§
kubectl config set-credentials me --token=§
helm install x --set db.password=§
helm registry login -u me -p § host
az login --service-principal -u me -p § --tenant t
aws configure set aws_secret_access_key §
aws configure set profile.x.aws_session_token §
gcloud auth login --access-token §
gh secret set HF_TOKEN --body §
git config --global gitlab.token §
git -c http.extraHeader='Authorization: Basic §' fetch
git clone https://me:§@host/repo.git
git clone https://oauth2:§@gitlab.com/x.git
pip install --index-url https://me:§@pypi.host/simple torch
pip install git+https://§@github.com/x/y.git
npm config set //registry.npmjs.org/:_authToken §
twine upload -u me -p § dist/x.whl
poetry publish -u me -p §
dvc remote modify store password §
rclone copy a b --sftp-pass §
rclone obscure §
wandb login §
wandb login --host=https://wandb.host §
python -m wandb login §
huggingface-cli login --token §
hf auth login --token=§
vault login §
ngrok authtoken §
tailscale up --authkey=§
tailscale up --auth-key §
redis-server --requirepass §
redis-server --port 1 --masterauth §
redis-cli -a § ping
redis-cli config set requirepass §
mysql -u root -p§ db
mysql -uroot -p'§'
mysql --password=§
mysqladmin -p§ status
mariadb -p§ db
mongosh -u me -p § host
mongodump --password=§
psql postgresql://me:§@db:5432/x
psql 'postgresql://db/x?user=me&password=§'
psql 'host=db password=§'
sqlcmd -S host -U sa -P §
curl -u bob:§ https://host
curl -ubob:§ https://host
curl --user bob:§ https://host
curl --user=bob:§ https://host
curl --proxy-user bob:§ https://host
curl -b 'session=§' https://host
curl --oauth2-bearer § https://host
curl -H 'Authorization: Bearer §' https://host
curl -H 'Authorization: token §' https://host
curl -H 'Private-Token: §' https://host
curl -H 'X-Auth-Token:§' https://host
curl -d 'user=me&password=§' https://host
curl -d user=me -d password=§ https://host
curl --data '{"user": "me", "pass": "§"}' https://host
curl --data-urlencode 'token=§' https://host
curl -F api_key=§ https://host
curl 'https://host/x?api_key=§&y=1'
curl 'https://host/x?access_token=§#frag'
curl https://hooks.slack.com/services/T00/B00/§
curl -d '<password>§</password>' https://host
wget --user=me --password=§ https://host
wget --header='Authorization: Bearer §' https://host
http -a me:§ https://host
openssl enc -aes-256-cbc -pass pass:§ -in a
openssl rsa -in k -passin pass:§
openssl pkcs12 -export -passout pass:§
openssl enc -k § -in a
sshpass -p § ssh -p 22 host
sshpass -p§ ssh host
ssh-keygen -t ed25519 -N '§' -f key
gpg --batch --passphrase § -d x
zip -P § a.zip b
unzip -P § a.zip
7z x -p§ a.7z
htpasswd -bc file bob §
ldapsearch -D cn=me -w § -b x
smbclient //host/x -U bob%§
mount -t cifs -o username=me,password=§,uid=0 //host/x /mnt
mosquitto_pub -h host -u me -P § -t x -m y
ipmitool -H host -U me -P § power status
mc alias set store https://host me §
lftp -u me,§ host
jupyter lab --IdentityProvider.token=§
jupyter notebook --NotebookApp.password=§
vllm serve model --api-key § --port 8000
python -m vllm.entrypoints.openai.api_server --api-key=§
litellm --master_key §
ray start --redis-password=§
mlflow server --backend-store-uri mysql://me:§@db/x
celery -A app worker -b redis://:§@cache:6379/0
airflow connections add x --conn-password §
label-studio start --password §
java -Djavax.net.ssl.keyStorePassword=§ -jar x.jar
java -Ddb.pass=§ -jar x.jar
python -c 'import os; os.environ["HF_TOKEN"] = "§"'
python -c "import os; os.environ['DB_PASS']='§'"
python -c 'import os; os.environ.setdefault("HF_TOKEN", "§")'
python -c 'import os; os.putenv("WANDB_API_KEY", "§")'
python -c 'from huggingface_hub import login; login(token="§")'
python -c 'connect(user="me", password="§")'
python -c 'connect(user="me", passwd=b"§")'
python -c 'PASSWORD = """§"""'
python -c 'api_key = SecretStr("§")'
python -c 'requests.get(url, auth=("me", "§"))'
python -c 'requests.get(url, headers={"Authorization": "Bearer §"})'
python -c 'create_engine("postgresql://me:§@db/x")'
dotnet run 'Server=db;User Id=sa;Password=§;Encrypt=no'
x 'DefaultEndpointsProtocol=https;AccountName=a;AccountKey=§;EndpointSuffix=x'
x --connection 'Endpoint=sb://x/;SharedAccessKeyName=a;SharedAccessKey=§'
x --sas 'sv=2022&sig=§'
docker run '--env=HF_TOKEN=§ x' image
docker run -eHF_TOKEN=§ image
bash -c 'curl \⏎  -u bob:§ \⏎  https://host'
bash -c 'curl -u "bob":"§" https://host'
bash -c "export DB_PASS=$'§'"
bash -c 'setenv HF_TOKEN §'
fish -c 'set -x HF_TOKEN §; python train.py'
tmux new-session -d 'curl -u bob:§ https://host'
xargs -I{} sh -c 'curl -u bob:§ {}'
watch 'mysql -p§ -e "show processlist"'
su - me -c 'wandb login §'
timeout 10 mysql -p§ db
nohup env DB_PASS=§ python train.py
ssh -o 'ProxyCommand=sshpass -p § ssh -W %h:%p b' host
curl -x http://me:§@proxy:3128 https://host
curl --proxy me:§@proxy:3128 https://host
python run.py '["mysql", "-p§", "db"]'
python -c 'import subprocess; subprocess.run(["mysql", "-p§", "db"])'
python -c 'import subprocess; subprocess.run(["x", "--password", "§"])'
python -c 'HF_TOKEN: str = "§"'
python -c 'os.environ.update({"HF_TOKEN": "§"})'
python -c 'os.environ.update(HF_TOKEN="§")'
python -c 'import openai; openai.api_key = "§"'
python -c 'boto3.client("s3", aws_secret_access_key="§")'
node -e 'process.env.TOKEN = "§"'
node -e "const apiKey = '§'"
perl -e '$ENV{DB_PASS} = "§"'
ruby -e 'ENV["DB_PASS"] = "§"'
plink -pw § me@host
keytool -storepass § -keypass x
ansible-playbook -e ansible_become_pass=§ site.yml
ansible-playbook --extra-vars 'user=me ansible_ssh_pass=§' site.yml
terraform apply -var 'db_password=§'
sqlplus system/§@db
nmcli dev wifi connect home password §
python train.py --basic-auth me:§
python train.py --smtp-pass=§
python train.py --userpass me:§
python train.py --registry.pass §
python train.py --secret-access-key §
python train.py --jdbc 'jdbc:mysql://h/db?user=a&password=§'
python train.py 'db: {user: me, password: §}'
echo '-----BEGIN RSA PRIVATE KEY-----⏎§⏎-----END RSA PRIVATE KEY-----'
'''

_PYTHON = (
    "python",
    "python3 -u",
    "/opt/conda/bin/python",
    "torchrun --nproc-per-node=8",
    "accelerate launch",
    "srun python",
)
_SCRIPTS = (
    "train.py --lr 1e-4 --weight-decay 0.01",
    "train.py --tokenizer meta-llama/Llama-3.1-8B --max-tokens 100",
    "finetune.py --model_name_or_path Qwen/Qwen2.5-7B-Instruct --max_new_tokens=256",
    "password_strength.py --passes 3 --compass north",
    "hf_finetune.py --hf-config config.yaml --pass-through",
    "train.py --key-frames 12 --num-key-value-heads 8",
    "train.py --eos-token '<|im_end|>' --pad_token_id 0",
    "train.py --two-pass true --one-pass fast --backward-pass fused",
    "train.py --image-key image --label_key=class --sort-key loss",
    "train.py --pass 2 --max-pass 12",
    "train.py --token-file /run/token --password-file=/run/secrets/db",
    "train.py --secret-name wandb-credentials --auth-type basic",
    "train.py --no-auth data.json",
    "train.py --use-auth-token true",
    "train.py --revision 0f3a9c1de57b24688ac0f3a9c1de57b24688ac01",
    "train.py --dataset s3://bucket/prefix/train-00001-of-01024.parquet",
    "train.py optimizer.lr=0.001 model.hidden=4096 data.tokens_per_batch=4096",
    "-m lightning run model train.py --devices 8 --strategy ddp",
    "-c 'import torch; print(torch.cuda.is_available())'",
    "-c 'import os; token = os.environ[\"HF_TOKEN\"]; print(len(token))'",
    "-c 'tokenizer(text, max_length=512, padding=True)'",
    "-c 'for key, value in d.items(): print(key)'",
    "-m vllm.entrypoints.openai.api_server --model mistralai/Mistral-7B-v0.1 --max-num-batched-tokens 8192",
    "train.py --out /scratch/runs/2026-11-15T10-22-31Z/checkpoint-1000",
    'train.py --config \'{"lr": 0.1, "max_tokens": 512, "key": "image"}\'',
)
_ENDINGS = (
    "",
    "--seed 42",
    "--resume /scratch/ckpt/last.pt",
    "--deepspeed ds_config.json --bf16",
    "--author me --signal 10",
)
_SHELLS = ("bash -c", "bash -lc", "srun --gpus 8 bash -c", "ssh node7", "docker exec box sh -c")
_SHELL_TEXTS = (
    "cd /data/run && python train.py --max-tokens 100",
    "OMP_NUM_THREADS=8 python train.py --passes 3",
    "nvidia-smi -L; python -m pip list | grep token",
    "export TOKENIZERS_PARALLELISM=false; torchrun train.py",
    "for key in a b c; do python eval.py --key $key; done",
    "echo done | tee log.txt; sort -S 1G log.txt",
    "tar xf data.tar -C /scratch && ls -la /scratch/passages",
    "curl -fsSL https://host/install.sh | sh",
    "docker run -u 1000:1000 -p 8080:80 -v /etc/passwd:/etc/passwd:ro image",
    "python train.py --hf-token $HF_TOKEN --lr 3",
    "mysql -u root -h db -P 3306 -e 'select 1'",
    "git commit -m 'fix: tokens per second; pass rate'",
    "conda activate base && python -u run.py --mode forward_pass",
    "source ~/.bashrc; ulimit -n 65536; exec ray start --head --port=6379",
    "while true; do gpulse --json; sleep 5; done",
)
_TOOLS = (
    "vllm serve Qwen/Qwen3-32B --port 8000 --gpu-memory-utilization 0.90",
    "vllm serve meta-llama/Meta-Llama-3.1-405B-Instruct-FP8 --enable-prefix-caching",
    "python -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 --tp 8",
    "text-generation-launcher --model-id bigscience/bloom --max-total-tokens 4096",
    "ollama serve",
    "llama-server -m /models/Qwen2.5-72B-Instruct-Q4_K_M.gguf -ngl 99 -c 32768",
    "trtllm-serve /engines/llama --max_num_tokens 8192",
    "tritonserver --model-repository=/models --http-port 8000",
    "jupyter lab --no-browser --port 8888 --ip 0.0.0.0",
    "tensorboard --logdir runs --bind_all",
    "ray start --address=10.0.0.1:6379 --num-gpus=8",
    "mpirun -np 16 -H node1:8,node2:8 -x NCCL_DEBUG=INFO python train.py",
    "nsys profile -o report --trace=cuda,nvtx python train.py",
    "git clone git@github.com:me/repo.git",
    "git clone ssh://git@github.com/me/repo.git",
    "git checkout 0f3a9c1de57b24688ac0f3a9c1de57b24688ac01",
    "git config --global credential.helper store",
    "git config user.name me",
    "ssh -p 22 -i ~/.ssh/id_ed25519 user@host",
    "scp -P 22 a.txt host:/tmp/token.txt",
    "rsync -a -e 'ssh -p 22' user@host:/data /scratch",
    "docker run -u 1000:1000 --gpus all -p 8080:80 pytorch",
    "docker run --rm -v /run/secrets/token:/token:ro image",
    "docker build -t repo/image@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 .",
    "docker login registry.host",
    "kubectl get secret my-secret -o yaml",
    "kubectl logs -f pod --tail 100",
    "aws s3 cp s3://bucket/key /tmp --region eu-central-1",
    "aws configure set region eu-central-1",
    "curl -sSL https://host/?page=2&sort=name -o out.json",
    'curl -H \'Content-Type: application/json\' -d \'{"max_tokens": 5, "prompt": "a"}\' http://localhost:8000/v1',
    "wget -qO- https://host/file.tar.gz",
    "pip install hf_transfer sk-learn passlib==1.7 tokenizers==0.20.3",
    "pip install -r requirements.txt --extra-index-url https://download.pytorch.org/whl/cu124",
    "wandb agent me/project/a1b2c3d4",
    "wandb sync runs/offline-run-20261115_102231-a1b2c3d4",
    "wandb offline",
    "mysql -u root -h db -P 3306 mydb",
    "psql postgresql://me@db:5432/x",
    "redis-cli -h cache -p 6379 ping",
    "redis-server --port 6379 --appendonly no",
    "openssl req -x509 -newkey rsa:4096 -keyout key.pem -out cert.pem -nodes",
    "openssl rsa -in k -passin env:PW -passout file:/run/pw",
    "ssh-keygen -t ed25519 -f key",
    "zip -r a.zip folder",
    "7z a out.7z folder",
    "ffmpeg -i in.mp4 -pass 1 -passlogfile x -f null /dev/null",
    "gcc -O2 -fpass-plugin=x.so a.c",
    "opt -passes=mem2reg a.ll",
    "java -Xmx8g -XX:+UseG1GC -jar server.jar",
    "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 --library-path /usr/lib",
    "/usr/bin/Xorg :0 -auth /run/user/1000/gdm/Xauthority -nolisten tcp",
    "/usr/bin/gnome-keyring-daemon --foreground --components=pkcs11,secrets",
    "/usr/bin/ssh-agent -D -a /run/user/1000/keyring/.ssh",
    "blender -b scene.blend --render-output //pass_ -f 1",
    "node server.js --max-old-space-size=4096 --keep-alive-timeout 5",
    "python train.py --img-key jpg --cap-key txt --json-key meta",
    "python train.py --bypass-check data --trespass 3",
    "python train.py --cookiecutter template --pattern '*.py'",
    "python manage.py runserver 0.0.0.0:8000",
)


def with_secrets() -> list[str]:
    """Return one command line of each shape, with § in place of the secret."""
    return [line.replace("⏎", "\n") for line in WITH_SECRETS.strip().splitlines()]


def without_secrets() -> list[str]:
    """Return more than a thousand different command lines that hold no secret."""
    programs = [
        f"{python} {script} {end}".strip() for python, script, end in itertools.product(_PYTHON, _SCRIPTS, _ENDINGS)
    ]
    shells = [f'{shell} "{text}"' for shell, text in itertools.product(_SHELLS, _SHELL_TEXTS)]
    prefixes = ("", "nohup ", "sudo -u me ", "env CUDA_VISIBLE_DEVICES=0,1 ", "timeout 3600 ")
    return [*programs, *shells, *(prefix + tool for prefix, tool in itertools.product(prefixes, _TOOLS))]
