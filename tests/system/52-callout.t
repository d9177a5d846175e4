#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# mdevctl and libvirt's node devices with our callout: they report refusals by vgpud's ledger and quotas, show a vGPU's
# attributes, and change a vGPU while a VM computes with it. Without vgpud all goes on.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use JSON::PP;
use VGPU::Host;
use VGPU::Test;

my ($red, $blue) = baseline();
my $before = VGPU::Host::ledger();
my $gpu = VGPU::Lab::gpu();
my ($driver) = $red->{vgpu}{type} =~ /^(.*)-vgpu-half$/;
my $uuid = 'ca110000-0000-4000-8000-000000000001';
my $sixteenth = "$driver-vgpu-sixteenth";

sub host { return VGPU::Lab::host(@_) }
sub attribute { my ($id, $name) = @_; my $text = host("cat /sys/bus/mdev/devices/$id/vgpu/$name"); chomp $text; return $text }
sub shown { my ($id) = @_; return decode_json(host("mdevctl list -u $id --dumpjson")) }

# Runs it and expects that exit status; returns its output.
sub says {
    my ($command, $status, $words) = @_;
    my $text = host("$command 2>&1", fail => 1);
    die "status $VGPU::Command::status, not $status:\n$text" if $VGPU::Command::status != $status;
    die "it says:\n$text" if $words && $text !~ $words;
    return $text;
}

# Changes a running vGPU by mdevctl's description of it, with these attributes replaced.
sub modify_live {
    my ($id, $options, $status, $words, %new) = @_;
    my $json = shown($id);
    for my $attribute (@{ $json->{attrs} }) {
        my ($name) = keys %$attribute;
        $attribute->{$name} = "$new{$name}" if exists $new{$name};
    }
    my $text = encode_json($json);
    return says("echo '$text' >/run/vgpu-live.json; mdevctl modify --live $options -u $id --jsonfile /run/vgpu-live.json", $status, $words);
}

host('systemctl start vgpud; vgpuctl slice list >/dev/null');

point('what a running vGPU has is shown, and makes a definition that can be started', sub {
    my $seen = host("mdevctl list -u $red->{vgpu}{uuid} --dumpjson");
    my %has = map { %$_ } @{ decode_json($seen)->{attrs} };
    for my $name (qw(vram_bytes window_bytes weight cap priority display)) {
        my $value = attribute($red->{vgpu}{uuid}, $name);
        die "$name is $value\n$seen" if ($has{"vgpu/$name"} // '') ne $value;
    }
    host("mdevctl start -u $uuid -p $gpu -t $sixteenth; cd /sys/bus/mdev/devices/$uuid/vgpu; echo 77 >weight; echo burstable >class; echo 4096 >oversubscribe_bytes");
    my $before = host("mdevctl list -u $uuid --dumpjson");
    host("mdevctl define -u $uuid && mdevctl stop -u $uuid && mdevctl start -u $uuid");
    my $after = host("mdevctl list -u $uuid --dumpjson");
    die "$before\n$after" if $before ne $after || $after !~ /"vgpu\/weight": "77"/;
    die $after if $after !~ /"vgpu\/class": "burstable"/ || $after !~ /"vgpu\/oversubscribe_bytes": "4096"/ || $after =~ /vgpu\/tenant/;
    host("mdevctl stop -u $uuid && mdevctl undefine -u $uuid");
    return $after;
});

point('what there is no room for is refused with the reason, and nothing is left of it', sub {
    my $said = says("mdevctl define --auto -u $uuid -p $gpu -t $driver-vgpu-full", 1, qr/no room for vGPU $uuid: on GPU \Q$gpu\E .* are free/);
    my $list = host('mdevctl list --defined');
    die $list if $list =~ /$uuid/;
    return $said . says("mdevctl start -u $uuid -p $gpu -t $driver-vgpu-full", 1, qr/no room/);
});

# Red has a half, blue a quarter. mdevctl looks at available_instances, and then makes a vGPU before it writes attributes.
# With the class best-effort, or with --compute, the type's half of the time is not promised, which is not free.
point('one that is smaller than its type needs only its own memory', sub {
    my $half = "$driver-vgpu-half";
    my $available = sub { my $text = host("cat /sys/class/mdev_bus/$gpu/mdev_supported_types/$half/available_instances"); return 0 + $text };
    die 'another half fits: ' . $available->() if $available->();
    says("mdevctl start -u $uuid -p $gpu -t $half", 1, qr/no room/);
    host("mdevctl define -u $uuid -p $gpu -t $half && mdevctl modify -u $uuid --addattr vgpu/vram_bytes --value 8388608 && mdevctl modify -u $uuid --addattr vgpu/class --value best-effort && mdevctl start -u $uuid");
    die attribute($uuid, 'vram_bytes') if attribute($uuid, 'vram_bytes') != 8388608;
    my $said = says("mdevctl stop -u $uuid && systemctl stop vgpud && mdevctl start -u $uuid", 0, qr/were not checked/);
    die 'another half fits: ' . $available->() if $available->();
    host("mdevctl stop -u $uuid; mdevctl undefine -u $uuid; systemctl start vgpud; vgpuctl vgpu create half --vram 8M --compute 10 --uuid $uuid >/dev/null");
    die attribute($uuid, 'vram_bytes') if attribute($uuid, 'vram_bytes') != 8388608;
    host("vgpuctl slice remove $uuid");
    return $said;
});

point('so is what a tenant may not have', sub {
    host("vgpuctl tenant set callout --vgpus 1 --vram 16M; mdevctl define -u $uuid -p $gpu -t $sixteenth");
    host("mdevctl modify -u $uuid --addattr vgpu/vram_bytes --value 8388608");
    host("timeout 30 sh -c 'until vgpuctl slice set $uuid --tenant callout; do sleep 0.3; done'");
    # A definition is for the next start. That is checked also if vgpud has not heard of the stop yet.
    host("mdevctl start -u $uuid && mdevctl modify -u $uuid --addattr vgpu/vram_bytes --value 33554432");
    my $said = says("mdevctl stop -u $uuid && mdevctl start -u $uuid", 1, qr/tenant callout would have 32 MiB/);
    host("mdevctl undefine -u $uuid; timeout 30 sh -c 'until vgpuctl tenant remove callout; do sleep 0.3; done'");
    return $said;
});

point('a tenant that the definition names is held to its quota, and vgpud has the vGPU down for it', sub {
    host("vgpuctl tenant set callout --vgpus 1 --vram 16M; mdevctl define -u $uuid -p $gpu -t $sixteenth");
    my $said = says("mdevctl modify -u $uuid --addattr vgpu/tenant --value ghost", 1, qr/there is no tenant ghost/);
    $said .= says("mdevctl modify -u $uuid --addattr vgpu/tenant --value 'two words'", 1, qr/vgpu\/tenant must be/);
    host("mdevctl modify -u $uuid --addattr vgpu/tenant --value callout");
    $said .= says("mdevctl start -u $uuid", 1, qr/tenant callout would have/);
    host("mdevctl modify -u $uuid --addattr vgpu/vram_bytes --value 8388608; mdevctl modify -u $uuid --addattr vgpu/class --value best-effort");
    host("mdevctl start -u $uuid");
    die attribute($uuid, 'tenant') . "\n" if attribute($uuid, 'tenant') ne 'callout' || attribute($uuid, 'class') ne 'best-effort';
    my $shows = sub { my ($words) = @_; return host("timeout 20 sh -c 'until vgpuctl -o json vgpu show $uuid | grep \"$words\"; do sleep 0.2; done'") };
    $said .= $shows->('Tenant. : .callout') . $shows->('Class. : .best-effort');
    host("systemctl restart vgpud; vgpuctl slice list >/dev/null");
    $said .= $shows->('Tenant. : .callout');
    $said .= modify_live($uuid, '', 1, qr/tenant callout would have/, 'vgpu/vram_bytes' => 33554432);
    host("vgpuctl tenant set callout2; vgpuctl slice set $uuid --tenant callout2");
    die attribute($uuid, 'tenant') . "\n" if attribute($uuid, 'tenant') ne 'callout2';
    my $defined = host("mdevctl list --defined -u $uuid --dumpjson");
    die $defined if $defined !~ /"vgpu\/tenant": "callout2"/;
    modify_live($uuid, '', 0, undef, 'vgpu/tenant' => 'callout');
    $said .= $shows->('Tenant. : .callout\b');
    host("mdevctl stop -u $uuid; mdevctl undefine -u $uuid");
    host("for t in callout callout2; do timeout 30 sh -c \"until vgpuctl tenant remove \$t; do sleep 0.3; done\"; done");
    return $said;
});

point('a vGPU with a tenant that is started while vgpud is down is found with it', sub {
    host("vgpuctl tenant set callout; mdevctl define -u $uuid -p $gpu -t $sixteenth; mdevctl modify -u $uuid --addattr vgpu/tenant --value callout");
    host('systemctl stop vgpud');
    my $said = says("mdevctl start -u $uuid", 0, qr/vgpud can't be reached/);
    host('systemctl start vgpud');
    $said .= host("vgpuctl -o json vgpu show $uuid | grep Tenant");
    host("mdevctl stop -u $uuid; mdevctl undefine -u $uuid; timeout 30 sh -c 'until vgpuctl tenant remove callout; do sleep 0.3; done'");
    die $said if $said !~ /callout"/;
    return $said;
});

my $job = VGPU::Compute::vulkan($blue, $blue->gpu_of($blue->{vgpu}), '--forever');
$job->expect(qr/^OK round 1:/m, 120);

point('a vGPU is changed while its guest computes', sub {
    my $id = $blue->{vgpu}{uuid};
    my $before = attribute($id, 'weight');
    modify_live($id, '', 0, undef, 'vgpu/weight' => '123');
    die 'weight ' . attribute($id, 'weight') . "\n" if attribute($id, 'weight') != 123;
    my $seen = host("timeout 20 sh -c 'until vgpuctl -o json vgpu show $id | grep \"Weight. : 123\"; do sleep 0.2; done'");
    my $defined = host("mdevctl list --defined -u $id --dumpjson");
    die $defined if $defined =~ /123/;
    modify_live($id, '', 1, qr/together have/, 'vgpu/weight' => '5', 'vgpu/vram_bytes' => 2**40);
    modify_live($id, '', 1, qr/window_bytes/, 'vgpu/weight' => '5', 'vgpu/window_bytes' => 2**20);
    die "half of it was taken\n" if attribute($id, 'weight') != 123;
    modify_live($id, '', 1, qr/a VM has the vGPU open/, 'vgpu/weight' => '5', 'vgpu/display' => 1 - attribute($id, 'display'));
    says("vgpuctl slice set $id --display " . (attribute($id, 'display') ? 'off' : 'on'), 6, qr/its display can't change/);
    die "half of it was taken\n" if attribute($id, 'weight') != 123;
    modify_live($id, '--defined', 0, undef, 'vgpu/weight' => $before);
    $defined = host("mdevctl list --defined -u $id --dumpjson");
    die $defined if $defined !~ /"vgpu\/weight": "$before"/;
    return $seen . keeps_computing($job);
});

point('without vgpud, and with one that does not answer, vGPUs come up all the same', sub {
    host('systemctl stop vgpud');
    my $seen = says("mdevctl start -u $uuid -p $gpu -t $sixteenth", 0, qr/vgpud can't be reached/);
    die "vgpud was started\n" if host('systemctl is-active vgpud', fail => 1) =~ /^active/;
    host("mdevctl stop -u $uuid; systemctl start vgpud; vgpuctl slice list >/dev/null; systemctl kill -s STOP vgpud");
    my $begin = time;
    $seen .= eval { says("mdevctl start -u $uuid -p $gpu -t $sixteenth", 0, qr/vgpud does not answer/) } // $@;
    my $took = time - $begin;
    host("systemctl kill -s CONT vgpud; mdevctl stop -u $uuid");
    die sprintf "it took %.0f s:\n%s", $took, $seen if $took > 20 || $seen !~ /does not answer/;
    return $seen;
});

point('a GPU is registered, as at boot: its vGPUs are there when the registrar is done', sub {
    my $type = 'vgpu-soft-vgpu-half';
    host("cp /etc/vgpu/gpus.conf /run/gpus.conf.kept; printf '\\n[gpu soft:callout]\\nmode=shared\\nvram=64M\\n' >>/etc/vgpu/gpus.conf");
    my $seen = eval {
        host("systemctl restart vgpu-registrar && mdevctl define --auto -u $uuid -p callout -t $type", timeout => 60);
        host("vgpu-registrar remove soft:callout && systemctl restart vgpu-registrar && mdevctl list -u $uuid", timeout => 60);
    };
    my $error = $@;
    host("mdevctl stop -u $uuid; mdevctl undefine -u $uuid; vgpu-registrar remove soft:callout; mv /run/gpus.conf.kept /etc/vgpu/gpus.conf; vgpuctl reload", fail => 1);
    die $error || "it is not there\n" if ($seen // '') !~ /$uuid callout \Q$type\E auto/;
    return $seen;
});

point('Proxmox\' calls: a UUID without a newline, plain QEMU at once, "remove"; a drained GPU refuses', sub {
    my $id = '00000000-0000-0000-0000-000000000101';
    my $type = "/sys/bus/pci/devices/$gpu/mdev_supported_types/$sixteenth";
    my $seen = host("cat $type/name $type/description $type/available_instances; printf %s $id >$type/create; "
        . "ls -d /sys/bus/pci/devices/$gpu/$id");
    die $seen if $seen !~ /^[1-9][0-9]*$/m;
    host("echo quit | timeout 100 qemu-system-x86_64 -S -nodefaults -nographic -machine pc -m 64 -uuid $id -monitor stdio "
        . "-device vfio-pci,sysfsdev=/sys/bus/mdev/devices/$id,id=hostpci0,bus=pci.0,addr=0x10", timeout => 120);
    $seen .= host("vgpuctl vgpu list | grep $id");
    host("echo 1 >/sys/bus/mdev/devices/$id/remove; ! [ -e /sys/bus/pci/devices/$gpu/$id ]");
    host("vgpuctl gpu drain $gpu");
    $seen .= says("(printf %s $id >$type/create)", 1, qr/busy/i);
    host("vgpuctl gpu resume $gpu");
    return $seen;
});

point('mdevctl: attributes in any order and one twice, of a definition and without one', sub {
    my $json = encode_json({ mdev_type => $sixteenth, start => 'manual',
        attrs => [{ 'vgpu/cap' => '50' }, { 'vgpu/weight' => '150' }, { 'vgpu/weight' => '200' }] });
    my @seen;
    host("echo '$json' >/run/vgpu-any.json; mdevctl define -u $uuid -p $gpu --jsonfile /run/vgpu-any.json");
    for my $start ("mdevctl start -u $uuid", "mdevctl start -u $uuid -p $gpu --jsonfile /run/vgpu-any.json") {
        host($start);
        push @seen, "$start: weight " . attribute($uuid, 'weight') . ', cap ' . attribute($uuid, 'cap');
        host("mdevctl stop -u $uuid");
        host("mdevctl undefine -u $uuid", fail => 1);
    }
    die "@seen" if (grep { !/weight 200, cap 50$/ } @seen);
    return join "\n", @seen;
});

point('libvirt defines, starts, updates and shows one with attributes', sub {
    # Of the UUID above libvirt may still be told that it came and went.
    my $uuid = 'ca110000-0000-4000-8000-000000000002';
    my $parent = 'pci_' . ($gpu =~ s/[:.]/_/gr);
    my $xml = sub { my ($weight) = @_; return "<device><parent>$parent</parent><capability type=\"mdev\"><type id=\"$sixteenth\"/>"
        . "<uuid>$uuid</uuid><attr name=\"vgpu/weight\" value=\"$weight\"/></capability></device>" };
    my $name = 'mdev_' . ($uuid =~ s/-/_/gr) . '_' . ($gpu =~ s/[:.]/_/gr);
    my $define = sub { my ($weight) = @_; return "echo '" . $xml->($weight) . "' >/run/vgpu-mdev.xml; virsh nodedev-define /run/vgpu-mdev.xml" };
    my $seen = says($define->(0), 1, qr/vgpu\/weight must be/);
    # libvirt reads mdevctl's list when udev or a watch of its folders tells it, some time after the change.
    my $until = sub { my ($state) = @_; return host("timeout 60 sh -c 'until virsh nodedev-info $name | grep \"^Active: *$state\"; do sleep 0.3; done'") };
    $seen .= says($define->(55), 0, qr/\Q$name\E/);
    $until->('no');
    host("virsh nodedev-start $name");
    $until->('yes');
    die 'weight ' . attribute($uuid, 'weight') . "\n" if attribute($uuid, 'weight') != 55;
    # For a new device libvirt shows only its definition.
    my $shown = host("virsh nodedev-dumpxml --inactive $name");
    die $shown if $shown !~ /<attr name='vgpu\/weight' value='55'\/>/;
    host("virsh nodedev-dumpxml --inactive $name | sed s/\\'55\\'/\\'56\\'/ >/run/vgpu-mdev.xml; virsh nodedev-update $name /run/vgpu-mdev.xml --live");
    die 'weight ' . attribute($uuid, 'weight') . "\n" if attribute($uuid, 'weight') != 56;
    host("virsh nodedev-destroy $name");
    $until->('no');
    host("virsh nodedev-undefine $name");
    return $seen . $shown;
});

point('nothing of it is left, and both have computed all the time', sub {
    my $seen = VGPU::Compute::stop_right($blue, $job);
    VGPU::Host::must_be_sane($before, $red->{vgpu}, $blue->{vgpu});
    return "$seen; " . computes($red);
});

done_testing();
