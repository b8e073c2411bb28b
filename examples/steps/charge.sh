#!/bin/sh
# A task that fails twice before it succeeds: any exit status but 0 and 100 is
# tried again by the step's retry policy, the last line on standard error says why.
# The instance's id is the key under which a provider would charge only once.
set -eu
context=$(cat)
total=$(printf '%s' "$context" | sed -n 's/.*"total"[[:space:]]*:[[:space:]]*\([0-9.]*\).*/\1/p')
if [ -z "$total" ]; then
	echo "the order has no total" >&2
	exit 100	# trying again would not help
fi
if [ "$WIGGLE_ATTEMPT" -lt 3 ]; then
	echo "the payment provider did not answer (attempt $WIGGLE_ATTEMPT)" >&2
	exit 75
fi
# The next context: this one and one member more.
printf '%s' "$context" | sed 's/}[[:space:]]*$/,"payment":{"charged":'"$total"',"key":"'"$WIGGLE_INSTANCE_ID"'"}}/'
