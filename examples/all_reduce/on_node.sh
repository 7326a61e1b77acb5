# Runs on every node: $1 is ring.py, $2 is torch_gloo.py (as text). Everything else comes from /etc/clusterctl/env.
set -eu
set -a
. /etc/clusterctl/env
set +a
if [ -d /opt/torch ]; then
    [ "$NODE_RANK" != 0 ] || echo "by torchrun and gloo"
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    printf '%s' "$2" >"$work/torch_gloo.py"
    # Warnings of c10d are about peers' names, which a rehearsed network has no DNS to tell of ("err=-3"): errors remain.
    # torchrun logs a traceback where node 0's agent, at which all meet, is the first to be gone. A program that fails is
    # shown all the same, for that is raised and not logged (torch 2.13).
    export OMP_NUM_THREADS=1 TORCH_CPP_LOG_LEVEL=ERROR LOGLEVEL=CRITICAL
    python3 -m torch.distributed.run --nnodes "$NNODES" --node-rank "$NODE_RANK" \
        --master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT" --nproc-per-node 1 "$work/torch_gloo.py"
else
    [ "$NODE_RANK" != 0 ] || echo "by a ring in Python's standard library: these nodes have no torch"
    python3 -c "$1"
fi
