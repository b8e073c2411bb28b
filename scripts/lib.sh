# lib.sh: what the scripts share. Sourced by POSIX sh with $root set to the
# folder that holds scripts/.

say() { printf '%s\n' "$*"; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# The user that runs PostgreSQL (it refuses root) and everything around it.
run_user() {
	if [ "$(id -u)" -ne 0 ]; then id -un
	elif id postgres >/dev/null 2>&1; then echo postgres
	else echo nobody
	fi
}

# Run a command as that user, in a clean environment that finds the private
# installation first. Replaces the shell.
exec_as_run_user() {
	_home=$1; shift
	_path=$WIGGLE_PREFIX/bin:$WIGGLE_PGBIN:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
	set -- env -i ${LD_LIBRARY_PATH:+LD_LIBRARY_PATH="$LD_LIBRARY_PATH"} PATH="$_path" HOME="$_home" USER="$(run_user)" LOGNAME="$(run_user)" \
		LC_ALL=C.UTF-8 TZ="${TZ:-}" TERM="${TERM:-dumb}" CI="${CI:-}" \
		PROPERTY_SEED="${PROPERTY_SEED:-}" PROPERTY_ROUNDS="${PROPERTY_ROUNDS:-}" PROPERTY_SECONDS="${PROPERTY_SECONDS:-}" \
		PYTHON="${PYTHON:-/usr/bin/python3}" PYTHONDONTWRITEBYTECODE=1 \
		WIGGLE_PREFIX="$WIGGLE_PREFIX" WIGGLE_PGBIN="$WIGGLE_PGBIN" \
		WIGGLE_PGLIB="$WIGGLE_PGLIB" WIGGLE_PG_CONFIG="$WIGGLE_PG_CONFIG" "$@"
	cd "$_home" || die "cannot enter $_home"
	if [ "$(id -u)" -eq 0 ]; then
		_user=$(run_user)
		exec setpriv --reuid "$_user" --regid "$(id -g "$_user")" --init-groups "$@"
	fi
	exec "$@"
}

# A TCP port nobody listens on or holds, below the kernel's ephemeral range.
# The caller still has to expect a loser's race: bind, and ask again.
free_port() {
	while :; do
		_port=$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')
		_port=$((_port % 6000 + 20000))
		_hex=$(printf '%04X' "$_port")
		cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
			awk -v p=":$_hex" '$2 ~ p"$" { used = 1 } END { exit used }' && { echo "$_port"; return; }
	done
}

# wait_for SECONDS COMMAND...: poll until the command succeeds.
wait_for() {
	_until=$(($(date +%s) + $1)); shift
	while ! "$@" >/dev/null 2>&1; do
		[ "$(date +%s)" -lt "$_until" ] || return 1
		sleep 0.05
	done
}
