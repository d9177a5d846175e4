#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# vgpuctl makes, changes and removes vGPUs through vgpud, with the real mdevctl, libvirt, polkit: its output
# matches the driver, mdevctl and libvirt; it notices changes by others; unauthorized callers are refused.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use JSON::PP;
use VGPU::Test;

my ($red, $blue) = baseline();
my $gpu = VGPU::Lab::gpu();
my ($driver) = $red->{vgpu}{type} =~ /^(.*)-vgpu-half$/;
my $uuid = 'a9e47000-0000-4000-8000-000000000001';
my $nobody = 'setpriv --reuid 65534 --regid 65534 --clear-groups';
my $work = VGPU::Compute::vulkan($red, $red->gpu_of($red->{vgpu}), '--forever --pause 1000');
$work->expect(qr/^OK round 1:/m, 120);

sub host { return VGPU::Lab::host(@_) }
sub ctl { return host("vgpuctl $_[0]") }
sub vgpus { return @{ decode_json(ctl('-o json vgpu list')) } }
sub vgpu { my ($id) = @_; return (grep { $_->{Uuid} eq $id } vgpus())[0] }
sub attribute { my ($name) = @_; my $text = host("cat /sys/bus/mdev/devices/$uuid/vgpu/$name"); chomp $text; return $text }

# Runs it and expects that exit status; returns its output.
sub says {
    my ($command, $status, $words) = @_;
    my $text = host("$command 2>&1", fail => 1);
    die "status $VGPU::Command::status, not $status:\n$text" if $VGPU::Command::status != $status;
    die "it says:\n$text" if $words && $text !~ $words;
    return $text;
}

# Waits for a condition, because vgpud learns of others' changes by events.
sub soon {
    my ($code, $why) = @_;
    for (1 .. 50) {
        return 1 if $code->();
        sleep 0.2;
    }
    die "$why:\n" . ctl('vgpu list');
}

point('vGPUs that mdevctl made are in the ledger', sub {
    soon(sub { vgpu($red->{vgpu}{uuid}) && vgpu($blue->{vgpu}{uuid}) }, 'not both');
    my ($seen) = grep { $_->{Address} eq $gpu } @{ decode_json(ctl('-o json gpu list')) };
    die "promised $seen->{PromisedVram}\n" if $seen->{PromisedVram} != (512 + 256) / 2 * 2**20;
    return ctl('vgpu list');
});

point('a vGPU is made, with its engine; mdevctl and libvirt have it as well', sub {
    my $said = ctl("vgpu create eighth --uuid $uuid --define --weight 33");
    my $list = host("mdevctl list --defined -u $uuid --dumpjson; virsh nodedev-list --cap mdev");
    die $list if $list !~ /"vgpu\/weight":\s*"33"/ || $list !~ /mdev_a9e47000/;
    die 'weight ' . attribute('weight') . "\n" if attribute('weight') != 33;
    host("timeout 90 sh -c 'until systemctl -q is-active vgpu-engine\@$uuid; do sleep 0.3; done'", timeout => 110);
    return $said;
});

my $job;
point('a vGPU computes in a VM, and is not removed while the VM has it', sub {
    my $vgpu = bless { uuid => $uuid, type => "$driver-vgpu-eighth", unit => "vgpu-engine\@$uuid.service" }, 'VGPU::Vgpu';
    $blue->detach($blue->{vgpu});
    $blue->attach($vgpu);
    $job = VGPU::Compute::vulkan($blue, $blue->gpu_of($vgpu), '--forever');
    $job->expect(qr/^OK round 1:/m, 120);
    my $said = says("vgpuctl slice remove $uuid", 6, qr/is open in a VM/);
    my $seen = keeps_computing($job, 1);
    return "$said$seen";
});

point('a vGPU is changed while it computes: driver and mdevctl have the change at once', sub {
    ctl("vgpu set $uuid --vram 128M --weight 77 --cap 60 --priority 3");
    my $now = join ' ', map { attribute($_) } qw(vram_bytes weight cap priority);
    die "$now\n" if $now ne '134217728 77 60 3';
    my $defined = host("mdevctl list --defined -u $uuid --dumpjson");
    die $defined if $defined !~ /"vgpu\/weight":\s*"77"/ || $defined =~ /"33"/ || $defined !~ /134217728/;
    my $said = says("vgpuctl slice set $uuid --vram 2G", 7, qr/cannot change vGPU/);
    die "vram_bytes\n" if attribute('vram_bytes') != 134217728;
    my $second = VGPU::Compute::vulkan($blue, $blue->gpu_of({ uuid => $uuid }), '--rounds 2');
    return $said . VGPU::Compute::verdict($second->wait(120)) . '; the first: ' . keeps_computing($job, 1);
});

point('a detached vGPU is removed from the driver, mdevctl and libvirt', sub {
    VGPU::Compute::stop_right($blue, $job);
    $blue->detach({ uuid => $uuid });
    ctl("vgpu remove $uuid");
    my $left = host("mdevctl list --defined; mdevctl list; ls /dev/vgpu");
    die $left if $left =~ /$uuid/;
    soon(sub { host('virsh nodedev-list --cap mdev') !~ /a9e47000/ }, 'libvirt has it still');
    $blue->attach($blue->{vgpu});
});

point('several at once: all, or none', sub {
    my $said = says('vgpuctl vgpu create sixteenth -n 5', 7, qr/there is room for 4 of 5/);
    my @before = vgpus();
    die scalar(@before) . " vGPUs\n" if @before != 2;
    my @made = @{ decode_json(ctl('-o json vgpu create sixteenth -n 4')) };
    die "they were made with " . join(' ', map { $_->{Device} } @made) . "\n" if grep { $_->{Device} ne 'closed' } @made;
    ctl("vgpu remove $_->{Uuid}") for @made;
    return $said;
});

point("a tenant's quota is held on every way in", sub {
    ctl('tenant set red --vram 48M --vgpus 1 --user nobody');
    my $said = says('vgpuctl vgpu create eighth --tenant red', 7, qr/may have 48 MiB/)
        . says('vgpuctl vgpu create sixteenth -n 2 --tenant red', 7, qr/tenant red would have/);
    ctl("vgpu create sixteenth --tenant red --uuid $uuid");
    $said .= says("vgpuctl slice set $uuid --vram 128M", 7, qr/may have 48 MiB/)
        . says("vgpuctl slice set $red->{vgpu}{uuid} --tenant red", 7, qr/tenant red would have/)
        . says('vgpuctl tenant set red --vram 16M', 7, qr/would have 32 MiB/)
        . says('vgpuctl tenant remove red', 6, qr/has 1 vGPUs/);
    return $said . ctl('tenant list');
});

point("a tenant's user has the tenant's vGPUs, and nobody else's", sub {
    my @mine = @{ decode_json(host("$nobody vgpuctl -o json vgpu list")) };
    die scalar(@mine) . " vGPUs\n" if @mine != 1 || $mine[0]{Uuid} ne $uuid;
    my $said = says("$nobody vgpuctl slice remove $red->{vgpu}{uuid}", 5, qr/administer/)
        . says("$nobody vgpuctl slice set $uuid --tenant ''", 5, qr/only an administrator/)
        . says("$nobody vgpuctl vgpu create eighth", 5, qr/administer/)
        . says("$nobody vgpuctl slice set $uuid --weight 9000", 5, qr/weight 9000 is at the cost of others/);
    host("$nobody vgpuctl slice set $uuid --weight 5");
    host("$nobody vgpuctl slice remove $uuid");
    $said .= says("$nobody vgpuctl vgpu create sixteenth --tenant red --priority 15", 5, qr/priority 15 is at the cost/);
    host("$nobody vgpuctl vgpu create sixteenth --tenant red --uuid $uuid && $nobody vgpuctl slice remove $uuid");
    ctl('tenant remove red');
    return $said;
});

point('a user without rights is refused on every method', sub {
    my $xml = host('cat /usr/share/dbus-1/interfaces/org.mdev_vgpu.Host1.xml');
    # The bus refuses what vgpud and its meter tell each other.
    my %at = (
        Manager => ['Host1', 'manager', qr/user nobody may not do this/],
        Gpu => ['Host1', 'gpu/' . ($gpu =~ tr/:./__/r), qr/user nobody may not do this/],
        Metering => ['Host1', 'metering', qr/Access denied/],
        Meter => ['Meter1', 'meter', qr/Access denied/],
    );
    my %value = (s => '""', 'a{sv}' => '0', 'aa{sv}' => '0', 'a{sat}' => '0', b => 'false', u => '0', t => '0', x => '0', as => '0');
    my ($count, $said) = (0, '');
    while ($xml =~ /<interface name="org\.mdev_vgpu\.Host1\.(\w+)">(.*?)<\/interface>/gs) {
        my ($interface, $body) = ($1, $2);
        my ($name, $path, $refusal) = @{ $at{$interface} // die "no object has $interface\n" };
        while ($body =~ /<method name="(\w+)"(?:\/>|>(.*?)<\/method>)/gs) {
            my ($method, $args) = ($1, $2 // '');
            my @types = $args =~ /<arg name="\w+" type="([^"]+)" direction="in"\/>/g;
            my $words = join ' ', (@types ? "'" . join('', @types) . "'" : ''), map { $value{$_} // die "no value of $_\n" } @types;
            my $text = host("$nobody busctl call org.mdev_vgpu.$name /org/mdev_vgpu/$path org.mdev_vgpu.Host1.$interface $method $words 2>&1", fail => 1);
            die "$interface.$method: $text" if $VGPU::Command::status == 0 || $text !~ $refusal;
            $count++;
        }
    }
    die "only $count methods\n" if $count < 15;
    return "$count methods";
});

point('what others make, define and remove is found', sub {
    host("mdevctl start -u $uuid -p $gpu -t $driver-vgpu-sixteenth");
    soon(sub { vgpu($uuid) }, 'not found');
    host("mdevctl stop -u $uuid");
    soon(sub { !vgpu($uuid) }, 'not forgotten');
    host("mdevctl define -u $uuid -p $gpu -t $driver-vgpu-sixteenth --auto");
    soon(sub { (vgpu($uuid) // { Device => '' })->{Device} eq 'stopped' }, 'definition not found');
    host("mdevctl undefine -u $uuid");
    soon(sub { !vgpu($uuid) }, 'definition not forgotten');
});

point('vgpuctl events prints what happens to a vGPU', sub {
    my $events = VGPU::Lab::host_job('vgpuctl events');
    sleep 3;
    ctl("vgpu create sixteenth --uuid $uuid");
    $events->expect(qr/vgpu-created: vGPU $uuid of type .*-vgpu-sixteenth was made on GPU $gpu/, 30);
    ctl("vgpu remove $uuid");
    $events->expect(qr/PromisedVram/, 30);
    $events->stop;
});

point('red has computed all the time, and blue computes', sub {
    return VGPU::Compute::stop_right($red, $work) . '; ' . computes($blue);
});

done_testing();
