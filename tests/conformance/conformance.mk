# SPDX-License-Identifier: MIT
# make conformance: programs of others judge what guests and containers get (README.md here). By hand, for it takes an hour
# and its programs are Debian sid's, which change.

.PHONY: conformance
conformance:
	tests/conformance/run
