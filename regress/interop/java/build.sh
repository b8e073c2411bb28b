#!/bin/sh
# build.sh DIR: build the scenarios here with Wiggle's own Java client of the 2.1 line
# into DIR/java-2.1, with the client and what it needs, from Maven Central or from the
# folder of jars that WIGGLE_JAVA_CLIENT names. What cannot be had leaves its reason in
# DIR/java-2.1.why. JAVA_HOME may name the JDK (21 or later).
set -u
dir=$1
out=$dir/java-2.1
here=$(cd "$(dirname "$0")" && pwd -P)
PATH=${JAVA_HOME:+$JAVA_HOME/bin:}$PATH

cannot() {
	rm -rf "$out"
	printf '%s\n' "$*" | tr '\n\t' '  ' > "$out.why"
	exit 0
}

rm -rf "$out" "$out.why"
mkdir "$out" || exit
command -v javac > /dev/null || cannot "there is no javac here, nor in JAVA_HOME"
major=$(javac -version 2>&1 | sed -n 's/^javac \([0-9]*\).*/\1/p')
[ "${major:-0}" -ge 21 ] || cannot "the JDK here is of release ${major:-?}; 21 or later is needed (JAVA_HOME)"
if [ -n "${WIGGLE_JAVA_CLIENT:-}" ]; then
	cp "$WIGGLE_JAVA_CLIENT"/*.jar "$out" 2> "$dir/log" || cannot "$(cat "$dir/log")"
else
	command -v mvn > /dev/null || cannot "Maven is not installed here"
	mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$out" > "$dir/log" 2>&1 ||
		cannot "$(grep ERROR "$dir/log" | head -n 1)"
fi
# Earlier releases of the line have the same classes in dev.wiggle.
package=com.wiggle
for jar in "$out"/wiggle-client*.jar; do
	! jar tf "$jar" | grep -q '^dev/wiggle/' || package=dev.wiggle
done
sed "s/^import com\.wiggle\./import $package./" "$here/Scenarios.java" > "$out/Scenarios.java"
javac -nowarn -d "$out" -cp "$out/*" "$out/Scenarios.java" > "$dir/log" 2>&1 || cannot "$(head -n 3 "$dir/log")"
command -v java > "$out/java.path"
