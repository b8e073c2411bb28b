#!/bin/sh
# A task: hands the parcel to the courier and keeps the tracking number.
set -eu
number=$(printf '%s' "$WIGGLE_INSTANCE_ID" | cksum | cut -d ' ' -f 1)
sed 's/}[[:space:]]*$/,"tracking":"PW'"$number"'DE"}/'
