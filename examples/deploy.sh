#!/bin/bash
# Asks where to deploy, and leaves until somebody says.
set -e
region=$(adjourn ask "Deploy release 7 where?" --choice eu --choice us --key region)
echo "deploying release 7 to $region"
