#!/bin/sh
# build.sh DIR: build the scenarios here, and the client's own example, with the
# published wiggle-go, by its newest release (DIR/go-newest, DIR/go-newest-example)
# and by the oldest that they can be built with (DIR/go-oldest, ...). WIGGLE_GO_CLIENT
# names a checkout to take for the newest one instead. What cannot be had leaves its
# reason in DIR/NAME.why.
set -u
dir=$1
here=$(cd "$(dirname "$0")" && pwd -P)
module=github.com/hadielmougy/wiggle-go
PATH=$PATH:/usr/local/go/bin
export GOFLAGS='-p=2 -mod=mod -buildvcs=false'

cannot() {	# cannot NAME: the reason is what is read
	tr '\n\t' '  ' > "$dir/$1.why"
}

build() {	# build NAME VERSION
	_work=$dir/go-build
	rm -rf "$_work"
	mkdir "$_work" && cp "$here"/*.go "$here/go.mod" "$_work" && cd "$_work" || return
	case $2 in
	/*) go mod edit -require="$module@v0.0.0" -replace="$module@v0.0.0=$2" ;;
	*) go get "$module@$2" ;;
	esac && go build -o "$dir/$1-example" "$module/examples/order" && go build -o "$dir/$1" .
}

rm -f "$dir"/go-newest* "$dir"/go-oldest*
trap 'rm -rf "$dir/go-build"' EXIT
if ! command -v go > /dev/null; then
	for name in go-newest go-oldest; do echo "Go is not installed here" | cannot $name; done
	exit
fi
if [ -n "${WIGGLE_GO_CLIENT:-}" ]; then
	echo "only the checkout of WIGGLE_GO_CLIENT is taken" | cannot go-oldest
	build go-newest "$(cd "$WIGGLE_GO_CLIENT" && pwd -P)" > "$dir/log" 2>&1 || tail -n 3 "$dir/log" | cannot go-newest
	exit
fi
if ! releases=$(cd "$here" && go list -m -versions "$module" 2> "$dir/log"); then
	for name in go-newest go-oldest; do tail -n 2 "$dir/log" | cannot $name; done
	exit
fi
# The path, then the releases, the oldest first; without any it is what the main branch has.
releases=${releases#"$module"}
newest=${releases##* }
build go-newest "${newest:-latest}" > "$dir/log" 2>&1 || tail -n 3 "$dir/log" | cannot go-newest
for release in $releases; do
	[ "$release" != "$newest" ] || break
	! build go-oldest "$release" > "$dir/log" 2>&1 || exit 0
done
rm -f "$dir"/go-oldest*
echo "the scenarios can be built with no release before ${newest:-the first}" | cannot go-oldest
