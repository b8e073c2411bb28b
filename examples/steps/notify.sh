#!/bin/sh
# An effect: prints nothing, so the context stays as it is.
set -eu
context=$(cat)
email=$(printf '%s' "$context" | sed -n 's/.*"email"[[:space:]]*:[[:space:]]*"\([^"]*\)".*/\1/p')
tracking=$(printf '%s' "$context" | sed -n 's/.*"tracking"[[:space:]]*:[[:space:]]*"\([^"]*\)".*/\1/p')
echo "to $email: your order is on its way, $tracking" >&2
