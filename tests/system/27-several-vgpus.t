#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Two vGPUs in one guest: a program uses one of them, and the guest chooses which in each of the ways of docs/vms.md,
# with its lines. Which vGPU it was is what the host has counted.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Test;

my ($red) = baseline();
my $second = VGPU::Vgpu->new(7, $red->{vgpu}{type} =~ s/-half\z/-quarter/r);
my @vgpus = ($red->{vgpu}, $second);

# With systemd, as guests have it, and udev by it.
sub boot_with_systemd {
    local $VGPU::Lab::guest_init = '/sbin/init';
    $red->destroy;
    VGPU::Tenant::start($red);
    $red->wait_up;
    VGPU::Compute::install($red);
    $red->attach($_) for @vgpus;
    return;
}

# The line of the guide that begins with $begin, with the vGPU's node and its address in place of the guide's.
sub guide {
    my ($begin, $node, $address) = @_;
    open my $in, '<', "$FindBin::Bin/../../docs/vms.md" or die "docs/vms.md: $!\n";
    my $text = do { local $/ = undef; <$in> } =~ s/ \\\n +/ /gr;
    my @lines = $text =~ /^    (\Q$begin\E.*)$/mg;
    die 'the guide has ' . @lines . " lines that begin with \"$begin\"\n" if @lines != 1;
    return $lines[0] =~ s{/dev/dri/by-path/pci-0000:05:00\.0-render}{$node}gr =~ s/0000:05:00\.0/$address/gr =~ s/\bPROGRAM\b/%s/r;
}

# Computes in the guest by $command, which has %s in place of the program. Returns the number of the vGPU that did it.
sub user_of {
    my ($command) = @_;
    my @before = map { $_->attribute('requests') } @vgpus;
    my $said = $red->run(sprintf($command, 'vk-compute --device-name Venus'), timeout => 120);
    my @did = grep { $vgpus[$_]->attribute('requests') > $before[$_] } 0, 1;
    die "vGPUs @did have worked, and one should:\n$said" if @did != 1;
    VGPU::Compute::verdict($said);
    return $did[0];
}

sub must_be { my ($number, $did) = @_; die "it was vGPU $did\n" if $did != $number; return "it was vGPU $did" }

$second->start(VGPU::Lab::gpu());
$second->wait_engine;
boot_with_systemd();
my @addresses = map { $red->gpu_of($_) } @vgpus;
my @nodes = map { "/dev/dri/by-path/pci-$_-render" } @addresses;

point('of two vGPUs Vulkan lists one, and a program computes on it', sub {
    my $said = $red->run('vulkaninfo --summary 2>/dev/null', timeout => 120);
    my @devices = $said =~ /deviceName\s*=\s*.*Venus/g;
    die 'there are ' . @devices . " devices:\n$said" if @devices != 1;
    return 'it is number ' . user_of('%s');
});

for my $number (0, 1) {
    my @at = ($nodes[$number], $addresses[$number]);
    point("a user to whom udev gives vGPU $number", sub {
        my $rule = guide('SUBSYSTEM=="drm"', @at) =~ s/"batch"/"nobody"/r;
        $red->run("echo '$rule' >/etc/udev/rules.d/90-vgpu.rules && udevadm control --reload"
            . ' && udevadm trigger --settle -c add -s drm && ls -l /dev/dri', timeout => 120);
        return must_be($number, user_of('setpriv --reuid nobody --regid nogroup --clear-groups %s'));
    });
    point("a service that may use vGPU $number", sub {
        return must_be($number, user_of(guide('systemd-run', @at) . ' 2>&1'));
    });
    point("a program that sees vGPU $number", sub {
        return must_be($number, user_of(guide('node=', @at) . '; ' . guide('bwrap', @at)));
    });
}

point('the second one goes, and the first one computes', sub {
    $red->detach($second);
    $second->remove;
    return computes($red);
});

$red->destroy;
done_testing();
