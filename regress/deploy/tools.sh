#!/bin/sh
# tools.sh DIR: promtool and haproxy of this Debian into DIR/bin, unpacked and not installed: their packages would start
# services. What the system has is left to it, what cannot be had leaves its reason in DIR/NAME.why and is skipped.
set -eu
umask 022
dir=$1
mkdir -p "$dir/bin"
chmod 755 "$dir"
dir=$(cd "$dir" && pwd -P)

# download PACKAGE...: into the current folder, by the system's lists, else by lists of our own.
download() {
	_options="-q -o APT::Sandbox::User= -o Dir::Cache=$PWD/cache"
	mkdir -p cache/archives/partial lists/partial
	timeout 300 apt-get $_options download "$@" ||
		{ timeout 300 apt-get $_options -o Dir::State::Lists="$PWD/lists" -o APT::Update::Error-Mode=any update &&
			timeout 300 apt-get $_options -o Dir::State::Lists="$PWD/lists" download "$@"; }
}

# fetch NAME PROGRAM PACKAGE...: a wrapper DIR/bin/NAME of the program, with the libraries that came with it.
fetch() {
	_name=$1 _program=$2
	shift 2
	rm -f "$dir/$_name.why"
	[ ! -x "$dir/bin/$_name" ] && ! PATH=$PATH:/usr/sbin command -v "$_name" >/dev/null || return 0
	_work=$(mktemp -d "$dir/new.XXXXXX")
	if (cd "$_work" && download "$@") > "$dir/log" 2>&1; then
		for _package in "$_work"/*.deb; do
			dpkg-deb --fsys-tarfile "$_package" | tar -x -C "$_work" --wildcards ".$_program" './usr/lib/*/*.so*' 2>> "$dir/log" || :
		done
	fi
	if [ -x "$_work$_program" ]; then
		rm -rf "${dir:?}/$_name" "$_work"/*.deb "$_work/cache" "$_work/lists"
		chmod -R a+rX "$_work"
		mv "$_work" "$dir/$_name"
		printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$(echo "$dir/$_name"/usr/lib/*)" "$dir/$_name$_program" > "$dir/bin/$_name"
		chmod 755 "$dir/bin/$_name"
	else
		{ grep -m 1 'Failed to fetch' "$dir/log" || grep . "$dir/log" | tail -n 1 | grep .; } > "$dir/$_name.why" || echo "it could not be downloaded" > "$dir/$_name.why"
		rm -rf "$_work"
	fi
}

fetch promtool /usr/bin/promtool prometheus
fetch haproxy /usr/sbin/haproxy haproxy liblua5.3-0 libopentracing-c-wrapper0 libopentracing1
