# Runs on every node: $1 is ring.py, $2 is torch_gloo.py (as text). Everything else comes from /etc/clusterctl/env.
set -eu
set -a
. /etc/clusterctl/env
set +a
if [ -d /opt/torch ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    printf '%s' "$2" >"$work/torch_gloo.py"
    export PYTHONPATH=/opt/torch OMP_NUM_THREADS=1
    python3 -m torch.distributed.run --nnodes "$NNODES" --node-rank "$NODE_RANK" \
        --master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT" --nproc-per-node 1 "$work/torch_gloo.py"
else
    python3 -c "$1"
fi
