#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The operator's guide by task, and other tools of vms.md: commands are run as they are written, in their order, and
# leave the host as it was.
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

# A page's section: its parts in their order, each with its blocks of commands and files.
sub parts_of {
    my ($page, $heading) = @_;
    open my $in, '<', $page or die "$page: $!\n";
    my ($section) = do { local $/ = undef; <$in> } =~ /^## \Q$heading\E\n(.*?)(?=^## |\z)/ms or die "$page has no section \"$heading\"\n";
    my @parts;
    for my $part (split /^### /m, $section) {
        my ($title) = $part =~ /^(.+)$/m;
        my @blocks = $part =~ /((?:^    .*\n|^\n(?=    ))+)/mg;
        push @parts, [$title, map { s/^    //mgr =~ s/\A\n+//r } @blocks] if @blocks;
    }
    return @parts;
}

# Of other tools, what names our types.
sub tasks {
    my @tools = grep { $_->[0] =~ /^(?:Incus|KubeVirt|Nova)$/ } parts_of('docs/vms.md', 'Other tools');
    return (parts_of('docs/operator.md', 'By task'), @tools);
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
    'KubeVirt' => sub {
        my ($kubevirt) = @_;
        my ($name) = $kubevirt =~ /mdevNameSelector: (\S+)/;
        die "KubeVirt would remove the vGPUs\n" if $kubevirt !~ /mediatedDevicesConfiguration: \{enabled: false\}/;
        return VGPU::Lab::host("grep -lx '$name' /sys/class/mdev_bus/$gpu/mdev_supported_types/*/name");
    },
    'Nova' => sub {
        my ($nova) = @_;
        my ($type) = $nova =~ /enabled_mdev_types = (\S+)/;
        my ($address) = $nova =~ /device_addresses = (\S+)/;
        die "the section of $type is missing\n" if $nova !~ /^\[mdev_$type\]$/m;
        return VGPU::Lab::host("cat /sys/class/mdev_bus/$address/mdev_supported_types/$type/name");
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
