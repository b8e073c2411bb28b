# cluster.sh: private PostgreSQL clusters. Sourced after lib.sh by scripts that
# run as the unprivileged user with the private installation on their PATH.
#
# A cluster is a folder DIR: DIR/data, DIR/log, DIR/port, DIR/socket (a link to
# a short private folder under /tmp, since a socket's path is limited to about
# 100 bytes). Its superuser is "wiggle", trusted on the socket; over TCP, which
# listens on 127.0.0.1 only, it needs the password of DIR/password.

# cluster_init DIR SETTING...: make the cluster, or fail.
cluster_init() {
	_dir=$1; shift
	rm -rf "$_dir"
	mkdir -p -m 700 "$_dir"
	od -An -N16 -tx1 /dev/urandom | tr -d ' \n' > "$_dir/password"
	initdb -D "$_dir/data" -U wiggle -A scram-sha-256 --auth-local=trust \
		--pwfile="$_dir/password" --no-sync --locale=C.UTF-8 -E UTF8 \
		> "$_dir/initdb.log" 2>&1 || { cat "$_dir/initdb.log" >&2; return 1; }
	{
		echo "shared_preload_libraries = 'wiggle'"
		echo "listen_addresses = '127.0.0.1'"
		echo "cluster_name = '${_dir##*/}'"
		for _setting in "$@"; do printf '%s\n' "$_setting"; done
	} >> "$_dir/data/postgresql.conf"
}

# cluster_copy DIR PRIMARY: make a streaming standby of the running cluster PRIMARY.
cluster_copy() {
	_dir=$1
	rm -rf "$_dir"
	mkdir -p -m 700 "$_dir"
	cp "$2/password" "$_dir/password"
	pg_basebackup -D "$_dir/data" -R -X stream -c fast --no-sync \
		-d "host=$(readlink "$2/socket") port=$(cat "$2/port") user=wiggle application_name=${_dir##*/}" \
		> "$_dir/initdb.log" 2>&1 || { cat "$_dir/initdb.log" >&2; return 1; }
	echo "cluster_name = '${_dir##*/}'" >> "$_dir/data/postgresql.conf"
}

# cluster_start DIR: start it on a free port and wait until it answers.
cluster_start() {
	_dir=$1
	cluster_stop "$_dir"
	rm -rf "$(readlink "$_dir/socket" 2>/dev/null || echo "$_dir/socket")" "$_dir/socket"
	_socket=$(mktemp -d /tmp/wiggle.XXXXXX)
	ln -s "$_socket" "$_dir/socket"
	for _try in 1 2 3 4 5; do
		_port=$(free_port)
		echo "$_port" > "$_dir/port"
		if pg_ctl -D "$_dir/data" -l "$_dir/log" -w -t 60 -s \
			-o "-p $_port -k $_socket" start > "$_dir/start.log" 2>&1; then
			return 0
		fi
		# Only a port taken in between is worth another try.
		grep -q 'Address already in use' "$_dir/log" || break
	done
	cat "$_dir/start.log" >&2
	tail -n 20 "$_dir/log" >&2
	return 1
}

# cluster_stop DIR: stop it when it runs; never fails.
cluster_stop() {
	[ ! -f "$1/data/postmaster.pid" ] || pg_ctl -D "$1/data" -m fast -w -s stop >/dev/null 2>&1 ||
		pg_ctl -D "$1/data" -m immediate -w -s stop >/dev/null 2>&1 || :
	if [ -L "$1/socket" ]; then
		rm -rf "$(readlink "$1/socket")" "$1/socket"
	fi
}

# cluster_psql DIR DATABASE ARGUMENT...
cluster_psql() {
	_dir=$1 _db=$2
	shift 2
	psql -h "$(readlink "$_dir/socket")" -p "$(cat "$_dir/port")" -U wiggle -d "$_db" -X -v ON_ERROR_STOP=1 "$@"
}
