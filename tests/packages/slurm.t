#!/bin/bash
# SPDX-License-Identifier: MIT
#
# TAP: Slurm's packages of build/deb/fleet are installed by apt beside the Slurm that they were built for, a cluster with what
# they installed does what the guide says, and purged they leave nothing. For a throwaway tree with Slurm: make check-deb.

set -u
. "$(dirname "$0")/../lib/steps.bash"
deb=$PWD/build/deb/fleet
export DEBIAN_FRONTEND=noninteractive VGPU_SLURM_PLUGINS=/usr/lib/mdev-vgpu/slurm

install_them() { apt-get -q install -y --no-install-recommends "$deb"/vgpu-slurm_*.deb "$deb"/vgpu-slurm-ctld_*.deb; }

# The same package as for a slurmctld of another day.
refused() {
    local other
    other=$(mktemp -d)
    dpkg-deb -R "$deb"/vgpu-slurm-ctld_*.deb "$other/tree" || return
    sed -i 's/slurmctld (>= [^)]*)/slurmctld (>= 99.05.1)/' "$other/tree/DEBIAN/control"
    dpkg-deb -b "$other/tree" "$other/vgpu-slurm-ctld.deb" || return
    ! apt-get -q install -y --no-install-recommends "$deb"/vgpu-slurm_*.deb "$other/vgpu-slurm-ctld.deb"
}

# A job that has slices on the node.
kept() {
    mkdir -p /run/vgpu/slurm && touch /run/vgpu/slurm/4711 /run/vgpu/slurm/lock
    ! sh /var/lib/dpkg/info/vgpu-slurm.prerm remove 2>/tmp/said && grep -q 'have slices here: 4711; drain the node' /tmp/said || return
    sh /var/lib/dpkg/info/vgpu-slurm.prerm upgrade 9 || return
    rm /run/vgpu/slurm/4711 && sh /var/lib/dpkg/info/vgpu-slurm.prerm remove
}

version_fits() { vgpu-slurm --version && dpkg-query -W slurmctld vgpu-slurm-ctld; }
# Except what a cluster's test makes itself.
files() { find / -xdev \( -path /src -o -path /tmp -o -path /run -o -path /proc -o -path /sys -o -path /dev -o -path /ccache \
    -o -path /etc/vgpu -o -path '/etc/sub?id-' -o -path /var/log -o -path /var/cache -o -path /var/lib/dpkg -o -path /var/lib/apt \) -prune -o -print | LC_ALL=C sort; }
nothing_left() { diff <(echo "$before") <(files); }

before=$(files)
echo "TAP version 13"
echo "1..8"
step "a plugin for another slurmctld is refused" refused
step "apt installs them" install_them
step "the program runs" version_fits
step "the guide's cluster" tests/fleet/alone tests/fleet/t-guide
step "what users submit" tests/fleet/alone tests/fleet/t-submit
step "it is not removed from under a job" kept
step "purged" apt-get -q purge -y vgpu-slurm vgpu-slurm-ctld
step "nothing is left" nothing_left
