#!/bin/sh
# An effect: prints nothing, so the context stays as it is. Standard error is the worker's log, no place for addresses.
set -eu
context=$(cat)
email=$(printf '%s' "$context" | sed -n 's/.*"email"[[:space:]]*:[[:space:]]*"\([^"]*\)".*/\1/p')
tracking=$(printf '%s' "$context" | sed -n 's/.*"tracking"[[:space:]]*:[[:space:]]*"\([^"]*\)".*/\1/p')
: "mail to $email would be sent here"
echo "the customer is told: your order is on its way, $tracking" >&2
