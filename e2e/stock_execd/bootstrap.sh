#!/bin/sh
# What the server makes the entrypoint of every sandbox: start the daemon, then
# run the requested entrypoint as the main process. The daemon is a background
# job of a shell without job control, so SIGINT (in busybox also SIGQUIT) is
# ignored in it and in everything it starts. That is the point of this script.
EXECD=${EXECD:-/opt/opensandbox/execd}
EXECD_ENVS=${EXECD_ENVS:-/opt/opensandbox/.env}
export EXECD_ENVS

mkdir -p "$(dirname "$EXECD_ENVS")" 2>/dev/null
[ -e "$EXECD_ENVS" ] || : >"$EXECD_ENVS" || echo "cannot make $EXECD_ENVS" >&2

echo "starting OpenSandbox Execd daemon at $EXECD."
"$EXECD" &

if command -v bash >/dev/null 2>&1; then SHELL_PROGRAM="bash"; else SHELL_PROGRAM="sh"; fi

if [ -n "${BOOTSTRAP_CMD:-}" ]; then
	set -- "$SHELL_PROGRAM" -c "$BOOTSTRAP_CMD"
elif [ $# -eq 0 ]; then
	set -- "$SHELL_PROGRAM"
elif [ "$1" = -c ]; then
	set -- "$SHELL_PROGRAM" "$@"
fi

"$@" &
main=$!
trap 'kill -TERM $main 2>/dev/null' TERM
# wait returns early when the trap ran; ask again until the program has ended.
while :; do
	wait $main
	code=$?
	kill -0 $main 2>/dev/null || exit $code
done
