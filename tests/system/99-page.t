#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The page of Cockpit on a GPU host as it is: real Cockpit, polkit, vgpud and engines, and two VMs that use the GPU. Chromium
# runs outside. What the page shows is compared with sysfs, systemd, libvirt and the arbiter; tests/page has the rest.
# Rig: --packages tests/page/host-packages.txt
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Page;
use VGPU::Test;

my ($red, $blue) = baseline();
my %owner = (research => $red->{vgpu}{uuid}, render => $blue->{vgpu}{uuid});

VGPU::Page::install();
VGPU::Page::add_users(ada => '-G sudo', rita => '');
VGPU::Command::run([VGPU::Lab::rig('put', 'build/guest/vk-compute', '/usr/local/bin/')]);
VGPU::Lab::host("vgpuctl tenant set $_ && vgpuctl slice set $owner{$_} --tenant $_", timeout => 120) for sort keys %owner;
VGPU::Lab::host('vgpuctl tenant set lab --user rita --vram 64M', timeout => 120);

VGPU::Page::points($_) for qw(administrator.js tenant.js);

point('the vGPUs that came back with the GPU compute in their VMs', sub {
    for my $tenant ($red, $blue) {
        $tenant->{vgpu}->wait_engine;
        $tenant->attach($tenant->{vgpu});
    }
    return join "\n", map { computes($_) } $red, $blue;
});

done_testing();
