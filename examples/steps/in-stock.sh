#!/bin/sh
# A gate: exit status 0 says true, 1 says false.
grep -Eq '"in_stock"[[:space:]]*:[[:space:]]*true'
