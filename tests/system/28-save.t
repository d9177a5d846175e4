#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# VMs with a vGPU that are saved, by virsh: save and restore, managedsave, snapshots with memory. An idle GPU's guest
# notices nothing; a picture is there again; programs that use the GPU lose it, and new ones compute.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Host;
use VGPU::Picture;
use VGPU::Test;

my ($red, $blue) = baseline();
my $uuid = $blue->{vgpu}{uuid};
my $display = "/sys/bus/mdev/devices/$uuid/vgpu/display";
my $file = '/var/lib/libvirt/images/blue.save';

sub host { return VGPU::Lab::host(@_) }

# blue's domain with its vGPU, which has a display, from power-on. $migration: QEMU's property of each VFIO device.
sub define_blue {
    my ($migration) = @_;
    my $xml = host('cat /run/blue.xml');
    $xml =~ s{<video>}{<graphics type='vnc' port='5921'/>
    <hostdev mode='subsystem' type='mdev' managed='no' model='vfio-pci' display='on' ramfb='on'>
      <source><address uuid='$uuid'/></source>
    </hostdev>
    <video>} or die $xml;
    $xml =~ s{<domain type='kvm'>}{<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>} or die $xml;
    $xml =~ s{</domain>}{<qemu:commandline>
  <qemu:arg value='-global'/>
  <qemu:arg value='vfio-pci.enable-migration=$migration'/>
</qemu:commandline>
</domain>} or die $xml;
    host('cat >/run/save.xml && virsh -q define /run/save.xml', stdin => $xml);
    return;
}

sub start_blue {
    $blue->destroy;
    define_blue('on');
    host('virsh -q start blue', timeout => 240);
    $blue->wait_up;
    VGPU::Compute::install($blue);
    patient();
    return $blue->find_gpu($blue->{vgpu});
}

# An emulated machine writes some MiB a second, and a frame buffer counts as written all the time.
sub patient {
    host(q{virsh qemu-monitor-command blue --hmp 'migrate_set_parameter downtime-limit 5000'});
    return;
}

sub boot { return $blue->run('cat /proc/sys/kernel/random/boot_id', timeout => 120) }

# The same boot of the guest as before.
sub is_back {
    my ($boot) = @_;
    VGPU::Lab::hang_up('blue');
    die "it has booted\n" if boot() ne $boot;
    patient();
    return 'up for ' . $blue->run('cut -d. -f1 /proc/uptime') =~ s/\s+\z/ s/r;
}

sub is_same { my ($one, $other) = @_; return $one->size eq $other->size && "@{ $one->{rows} }" eq "@{ $other->{rows} }" }

# Something to see that stays.
sub write_on_screen {
    my ($words) = @_;
    $blue->run("timeout 60 sh -c 'until [ -e /sys/class/graphics/fb0 ]; do sleep 0.3; done'; "
        . qq{printf '\\033c\\033[?25l$words' >/dev/tty1; sleep 1}, timeout => 80);
    return VGPU::Picture->take($blue, 'save-' . ($words =~ tr/ /-/r));
}

sub must_show {
    my ($picture, $name) = @_;
    my $seen;
    for (1 .. 40) {
        $seen = VGPU::Picture->take($blue, "save-$name");
        return $seen->size if is_same($seen, $picture);
        sleep 0.5;
    }
    die 'it shows ' . $seen->size . ', ' . keys(%{ $seen->colours }) . " colours: build/system/artefacts/save-$name.png\n";
}

sub no_complaints {
    my $said = $blue->run('dmesg --level=emerg,alert,crit,err,warn | grep -iE "virtio.?gpu|drm"', fail => 1);
    die $said if $said =~ /\S/;
    return;
}

point('a VM that QEMU was not told to save says so, and runs on', sub {
    $blue->destroy;
    host("echo 1 >$display");
    define_blue('auto');
    host('virsh -q start blue', timeout => 240);
    my $said = host("virsh save blue $file 2>&1", fail => 1, timeout => 180);
    die "it was saved\n" if $VGPU::Command::status == 0;
    die $said if $said !~ /dirty tracking/;
    die $blue->state if $blue->state ne 'running';
    return $said;
});

point('saved and restored: the guest runs on, its screen is there, and it computes', sub {
    start_blue();
    my $boot = boot();
    my $picture = write_on_screen('saved');
    host("virsh save blue $file", timeout => 300);
    die $blue->state if $blue->state ne 'shut off';
    VGPU::Host::wait_state($blue->{vgpu}, qr/device=closed/);
    my $size = host("stat -c %s $file");
    host("virsh restore $file", timeout => 300);
    my $up = is_back($boot);
    my $screen = must_show($picture, 'restored');
    no_complaints();
    return "$size bytes, $up, $screen, " . computes($blue);
});

point('paused and resumed beside a program that computes: it notices nothing', sub {
    my $job = VGPU::Compute::vulkan($blue, $blue->gpu_of($blue->{vgpu}), '--forever');
    keeps_computing($job, 2);
    host('virsh suspend blue; sleep 3; virsh resume blue', timeout => 60);
    keeps_computing($job, 2);
    return VGPU::Compute::stop_right($blue, $job);
});

point('saved while it computes: the program loses its GPU, and says so; the next one computes', sub {
    my $boot = boot();
    my $gpu = $blue->gpu_of($blue->{vgpu});
    $blue->run("setsid nohup sh -c 'on-gpu $gpu vk-compute --device-name Venus --forever; echo status \$?' </dev/null >/run/job 2>&1 &");
    $blue->run('timeout 100 sh -c "until grep -q OK.round.2 /run/job; do sleep 0.5; done"', timeout => 120);
    host("virsh save blue $file; virsh restore $file", timeout => 300);
    my $up = is_back($boot);
    my $next = computes($blue);
    my $end = $blue->run('timeout 100 sh -c "until grep -q ^status /run/job; do sleep 0.5; done"; tail -n 3 /run/job', timeout => 120);
    die $end if $end !~ /^status (?:1|134)$/m;
    return "$up\n$end$next";
});

point('virsh managedsave, and start', sub {
    my $boot = boot();
    my $picture = write_on_screen('managed');
    host('virsh managedsave blue', timeout => 300);
    host('virsh start blue', timeout => 300);
    my $up = is_back($boot);
    return "$up, " . must_show($picture, 'managed') . ', ' . computes($blue);
});

point('a snapshot with memory, and back to it', sub {
    my $boot = boot();
    my $picture = write_on_screen('snapshot');
    $blue->run('echo before >/run/mark');
    host('virsh snapshot-create-as blue one', timeout => 300);
    $blue->run('echo after >/run/mark');
    write_on_screen('later');
    host('virsh snapshot-revert blue one', timeout => 300);
    my $up = is_back($boot);
    my $mark = $blue->run('cat /run/mark');
    die $mark if $mark ne "before\n";
    my $screen = must_show($picture, 'reverted');
    host('virsh snapshot-delete blue one', timeout => 120);
    return "$up, $screen, " . computes($blue);
});

# The VM runs while its memory is written, as when it is migrated.
point('a snapshot while it runs and computes: the program does not notice, and the snapshot is one', sub {
    my $boot = boot();
    my $memory = '/var/lib/libvirt/images/blue-live.memory';
    my $picture = write_on_screen('live');
    my $job = VGPU::Compute::vulkan($blue, $blue->gpu_of($blue->{vgpu}), '--forever --pause 500');
    keeps_computing($job, 2);
    host("virsh snapshot-create-as blue live --live --memspec file=$memory,snapshot=external --diskspec vda,snapshot=external",
        timeout => 400);
    my $went_on = keeps_computing($job, 2);
    VGPU::Compute::stop_right($blue, $job);
    write_on_screen('later');
    host('virsh snapshot-revert blue live', timeout => 300);
    my $up = is_back($boot);
    my $screen = must_show($picture, 'live-reverted');
    host("virsh snapshot-delete blue live --metadata; rm -f $memory", timeout => 120);
    return "$went_on, $up, $screen, " . computes($blue);
});

point('a saved VM does not go on with a vGPU that has less memory, and goes on with the right one', sub {
    my $boot = boot();
    my $vram = "/sys/bus/mdev/devices/$uuid/vgpu/vram_bytes";
    my ($bytes) = host("cat $vram") =~ /^(\d+)/;
    host("virsh save blue $file", timeout => 300);
    host("echo 33554432 >$vram");
    my $said = host("virsh restore $file 2>&1", fail => 1, timeout => 300);
    die "it went on\n" if $VGPU::Command::status == 0;
    my $log = host('dmesg | grep "saved vGPU can" | tail -n 1');
    die $log if $log !~ /it has more memory/;
    host("echo $bytes >$vram; virsh restore $file", timeout => 300);
    return $said . $log . is_back($boot) . ', ' . computes($blue);
});

point('without a display all is as before', sub {
    $blue->destroy;
    host("rm -f $file; virsh -q define /run/blue.xml; echo 0 >$display");
    VGPU::Tenant::start($blue);
    $blue->wait_up;
    VGPU::Compute::install($blue);
    $blue->attach($blue->{vgpu});
    return computes($blue);
});

done_testing();
