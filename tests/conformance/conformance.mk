# SPDX-License-Identifier: MIT
# make conformance: other projects' test programs in guests and containers (README.md here). Run manually, because it
# takes an hour and its programs are Debian sid's, which change.

.PHONY: conformance
conformance:
	tests/conformance/run
