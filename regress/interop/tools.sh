#!/bin/sh
# tools.sh DIR: install the published tools that the checks run into DIR, each at
# one version. What cannot be had leaves its reason in DIR/NAME.why and is skipped.
set -u
PYTHON=${PYTHON:-/usr/bin/python3}
dir=$1
mkdir -p "$dir"
chmod 755 "$dir"

# A registry that hangs costs this much altogether.
until=$(($(date +%s) + 360))

# attempt NAME COMMAND...: once; a reason from an earlier time is not kept.
attempt() {
	_name=$1
	shift
	rm -f "$dir/$_name.why"
	[ ! -e "$dir/$_name" ] || return 0
	_rc=0
	_left=$((until - $(date +%s)))
	[ "$_left" -ge 20 ] || _left=20
	timeout "$_left" "$@" > "$dir/log" 2>&1 || _rc=$?
	[ "$_rc" -ne 0 ] || return 0
	# Half of a folder would be taken for the whole the next time.
	rm -rf "${dir:?}/$_name"
	[ "$_rc" -ne 124 ] || echo "it was not installed within $_left s" >> "$dir/log"
	tail -n 1 "$dir/log" | grep . > "$dir/$_name.why" || echo "it could not be installed" > "$dir/$_name.why"
}

gotool() {	# gotool NAME PACKAGE@VERSION
	if command -v go >/dev/null || [ -x /usr/local/go/bin/go ]; then
		attempt "$1" env PATH="$PATH:/usr/local/go/bin" GOBIN="$dir" GOFLAGS=-p=2 go install "$2"
	else
		echo "Go is not installed here" > "$dir/$1.why"
	fi
}

gotool grpcurl github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4
gotool grpc-health-probe github.com/grpc-ecosystem/grpc-health-probe@v0.4.63
gotool ghz github.com/bojand/ghz/cmd/ghz@v0.93.0
gotool h2spec github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible

# gRPC's own Python packages, of the release that Debian's grpcio has.
grpcio=$("$PYTHON" -c 'import grpc; print(grpc.__version__)' 2>/dev/null)
if "$PYTHON" -m pip --version >/dev/null 2>&1; then pip="$PYTHON -m pip"; else pip="pip3"; fi
attempt python $pip install --quiet --no-deps --target "$dir/python" \
	"grpcio-reflection==$grpcio" "grpcio-health-checking==$grpcio" "grpcio-status==$grpcio" \
	googleapis-common-protos==1.59.1

# Wiggle's own Python client, with the grpcio that it asks for.
attempt wiggle-client $pip install --quiet --target "$dir/wiggle-client" wiggle-client==0.1.1

# The schemas of Kubernetes' releases.
attempt kubernetes-validate $pip install --quiet --target "$dir/kubernetes-validate" kubernetes-validate==1.37.0

# Node's gRPC.
if command -v npm >/dev/null; then
	attempt node npm install --silent --no-audit --no-fund --prefix "$dir/node" \
		@grpc/grpc-js@1.14.7 @grpc/proto-loader@0.8.1
else
	echo "Node is not installed here (Debian: nodejs, npm)" > "$dir/node.why"
fi

"$(dirname "$0")/go/build.sh" "$dir"
"$(dirname "$0")/java/build.sh" "$dir"

if h2load=$(command -v h2load); then
	ln -sf "$h2load" "$dir/h2load"
else
	echo "h2load is not installed here (Debian: nghttp2-client)" > "$dir/h2load.why"
fi
chmod -R a+rX "$dir"
