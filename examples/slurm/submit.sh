#!/bin/bash
# Submits a check that needs no GPU and, behind it, the training job, which starts only if the check succeeds:
#
#   CARD=a100-80g ./submit.sh train.py --batch-size 64
#
# Flags of your cluster (partition, account) go into the two .sbatch files or into SBATCH_PARTITION, SBATCH_ACCOUNT …
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${CARD:?set CARD, e.g. CARD=a100-80g}"
export CARD

check=$(sbatch --parsable "$here/check.sbatch" "$@")
check=${check%%;*} # a federation answers "id;cluster"
# Without --kill-on-invalid-dep a job whose check failed would wait in the queue for ever.
train=$(sbatch --parsable --dependency="afterok:$check" --kill-on-invalid-dep=yes "$here/train.sbatch" "$@")
echo "check $check, then train ${train%%;*}"
