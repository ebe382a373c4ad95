# sh flows/slurm/job.sh OPTIONS …: the flow run that Prefect's worker starts here, as a job of Slurm, until it has ended; the options are srun's.
# Told to end, srun would kill at once. So the job is told, by the comment that it bears, and saves a checkpoint.
set -u
end() {
    squeue --me --noheader --format='%i %k' | while read -r job comment; do
        if [ "$comment" = "$PREFECT__FLOW_RUN_ID" ]; then scancel --state=PENDING "$job"; scancel --signal=TERM "$job"; fi
    done
}
trap end TERM INT
srun --comment="$PREFECT__FLOW_RUN_ID" --ntasks=1 --kill-on-bad-exit=1 --signal=TERM@120 "$@" sh flows/own_clone.sh python -m flows.engine &
while kill -0 $! 2>/dev/null; do # a signal ends a wait too
    wait $!
    status=$?
done
exit $status
