#!/bin/sh
# Starts another task under adjourn, and goes on when that is done.
echo "parent $ADJOURN_RUN_ID" >> starts
adjourn run -- ./approved.sh || exit $?
echo "parent is done" >> effects
