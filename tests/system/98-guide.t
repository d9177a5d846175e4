#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The operator's guide by task: its commands are run as they are written, in their order, and leave the host as it was.
# Files are put at the paths that they name; names for other programs are looked up.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Host;
use VGPU::Test;
use VGPU::Whole;

my ($red, $blue) = baseline();
my $gpu = VGPU::Lab::gpu();

# The section "By task": tasks in their order, each with its blocks of commands and files.
sub tasks {
    open my $in, '<', 'docs/operator.md' or die "docs/operator.md: $!\n";
    my ($section) = do { local $/ = undef; <$in> } =~ /^## By task\n(.*?)^## /ms or die "the guide has no section by task\n";
    my @tasks;
    for my $part (split /^### /m, $section) {
        my ($title) = $part =~ /^(.+)$/m;
        my @blocks = $part =~ /((?:^    .*\n|^\n(?=    ))+)/mg;
        push @tasks, [$title, map { s/^    //mgr =~ s/\A\n+//r } @blocks] if @blocks;
    }
    return @tasks;
}

# A file whose first line is its path; text after an empty line that is not a section of it is commands again.
sub put_file {
    my ($path, $block) = @_;
    my ($text, $commands) = $block =~ /\A# \S+\n(.*?)(?:\n\n((?:vgpuctl|mdevctl|virsh|systemctl) .*))?\z/s;
    VGPU::Lab::host("cat >$path", stdin => "$text\n");
    return $commands // '';
}

sub run_blocks {
    my $said = '';
    for my $block (@_) {
        my ($path) = $block =~ m{\A# (/\S+)\n};
        my $commands = $path ? put_file($path, $block) : $block;
        $said .= VGPU::Lab::host("set -ex\n$commands", timeout => 300) if $commands =~ /\S/;
    }
    return $said;
}

# Both VMs without a vGPU, and room for the guide's.
for my $tenant ($red, $blue) {
    $tenant->detach($tenant->{vgpu});
    VGPU::Lab::host("mdevctl stop -u $tenant->{vgpu}{uuid}");
}
my $free = VGPU::Host::ledger();

my %check = (
    'Share a card between two VMs' => sub {
        my ($attach, $detach) = @_;
        my @before = map { [$_->gpus] } $red, $blue;
        my $said = run_blocks($attach);
        my @found = map { ($_->wait_gpus(@{ shift @before }))[0] } $red, $blue;
        my @jobs = (VGPU::Compute::vulkan($red, $found[0]), VGPU::Compute::vulkan($blue, $found[1]));
        $said .= VGPU::Compute::verdict($_->wait(180)) . "\n" for @jobs;
        return $said . run_blocks($detach);
    },
    'Pass a card through, and take it back' => sub {
        my $said = run_blocks(@_);
        VGPU::Whole::until_mode($gpu, 'shared', 1);
        die $said if $said !~ /goes to vfio-pci/;
        return $said;
    },
    'Serve by day, train by night' => sub {
        my $said = run_blocks(@_);
        VGPU::Lab::host('rm /etc/vgpu/schedule.conf && vgpuctl reload');
        die $said if $said !~ /passthrough/ || $said !~ /shared/;
        return $said;
    },
    # 34-incus runs it, with Incus; here there is none.
    'Incus' => sub {
        my ($address, $type) = $_[0] =~ /gputype=mdev pci=(\S+) mdev=(\S+)/;
        return VGPU::Lab::host("cat /sys/class/mdev_bus/$address/mdev_supported_types/$type/name");
    },
    'KubeVirt and Nova' => sub {
        my ($kubevirt, $nova) = @_;
        my ($name) = $kubevirt =~ /mdevNameSelector: (\S+)/;
        my ($type) = $nova =~ /enabled_mdev_types = (\S+)/;
        my ($address) = $nova =~ /device_addresses = (\S+)/;
        my $found = VGPU::Lab::host("cat /sys/class/mdev_bus/$address/mdev_supported_types/$type/name");
        chomp $found;
        die "KubeVirt would remove the vGPUs\n" if $kubevirt !~ /mediatedDevicesConfiguration: \{enabled: false\}/;
        die "$type is '$found', not $name\n" if $found ne $name || $nova !~ /^\[mdev_$type\]$/m;
        return "$type: $found";
    },
);

for my $task (tasks()) {
    my ($title, @blocks) = @$task;
    my $check = delete $check{$title};
    point($title, sub { return ($check // die "nobody checks this task\n")->(@blocks) });
}

point('all tasks were there, and the host is as before', sub {
    die join(', ', keys %check) . "\n" if %check;
    my $now = VGPU::Host::ledger();
    die "there is room for $now->{free}, and was for $free->{free}\n" if $now->{free} != $free->{free};
    for my $tenant ($red, $blue) {
        VGPU::Lab::host("mdevctl start -u $tenant->{vgpu}{uuid}");
        $tenant->{vgpu}->wait_engine;
        $tenant->attach($tenant->{vgpu});
    }
    return join "\n", map { computes($_) } $red, $blue;
});

VGPU::Lab::host('rm -f /var/lib/vgpu/gpus.conf');
done_testing();
