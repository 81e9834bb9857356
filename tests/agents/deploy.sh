#!/bin/sh
# Asks a question, then wants approval, then does its work.
echo "start $ADJOURN_RUN_ID" >> starts
region=$(adjourn ask "Which region?" --key region --choice eu --choice us) || exit $?
echo "plan for $region"
[ "$AUTO_APPROVAL" ] || exit 90
echo "deployed to $region with $AUTO_APPROVAL" | tee -a effects
