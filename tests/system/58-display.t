#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The picture of a VM whose vGPU has a display, from power-on to a desktop, by virsh from QEMU and in viewers of VNC
# and SPICE, and OpenGL beside it. The pictures are kept in build/system/artefacts/.
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
my ($vnc, $spice) = (5921, 5922);

sub host { return VGPU::Lab::host(@_) }

# Takes pictures until one is as expected; returns it.
sub picture_until {
    my ($name, $limit, $wanted) = @_;
    my $end = time + $limit;
    my $seen;
    while (time < $end) {
        $seen = VGPU::Picture->take($blue, $name);
        return $seen if $wanted->($seen);
        sleep 0.5;
    }
    die "after $limit s the picture is still " . describe($seen) . ": build/system/artefacts/$name.png\n";
}

sub describe {
    my ($picture) = @_;
    my $colours = $picture->colours;
    my @most = sort { $colours->{$b} <=> $colours->{$a} } keys %$colours;
    splice @most, 4 if @most > 4;
    return $picture->size . ', ' . keys(%$colours) . ' colours, ' . join ' ', map { "$_: $colours->{$_}" } @most;
}

sub is_same { my ($one, $other) = @_; return $one->size eq $other->size && "@{ $one->{rows} }" eq "@{ $other->{rows} }" }

# blue's domain with its vGPU in it from power-on; the firmware waits for a key, so that there is time to look.
sub domain_with_display {
    my $xml = host('cat /run/blue.xml');
    $xml =~ s{<cmdline>}{<cmdline>console=tty0 } or die $xml;
    $xml =~ s{</os>}{<bootmenu enable='yes' timeout='10000'/></os>} or die $xml;
    $xml =~ s{<video>}{<graphics type='vnc' port='$vnc'/>
    <graphics type='spice' port='$spice'/>
    <hostdev mode='subsystem' type='mdev' managed='no' model='vfio-pci' display='on' ramfb='on'>
      <source><address uuid='$uuid'/></source>
    </hostdev>
    <video>} or die $xml;
    return $xml;
}

# The text console's size in cells and in pixels.
# The guest answers before all of its drivers are there.
sub console {
    $blue->run("timeout 60 sh -c 'until [ -e /sys/class/graphics/fb0 ]; do sleep 0.3; done'", timeout => 80);
    my ($rows, $columns) = $blue->run('stty size </dev/tty1') =~ /^(\d+) (\d+)$/m;
    my ($width, $height) = $blue->run('cat /sys/class/graphics/fb0/virtual_size') =~ /^(\d+),(\d+)/;
    return ($width, $height, int($width / $columns), int($height / $rows));
}

# X and a window manager without anybody at the keyboard, at a given mode if one is named.
sub start_desktop {
    my ($mode) = @_;
    my $option = $mode ? qq{Option "PreferredMode" "$mode"} : '';
    $blue->run(<<"SH", timeout => 180);
cat >/run/xorg.conf <<END
Section "ServerFlags"
    Option "AutoAddDevices" "false"
EndSection
Section "Monitor"
    Identifier "Virtual-1"
    $option
EndSection
Section "Device"
    Identifier "vgpu"
    Driver "modesetting"
    Option "kmsdev" "\$(ls /dev/dri/card* | head -n 1)"
    Option "AccelMethod" "none"
    Option "Monitor-Virtual-1" "Virtual-1"
EndSection
END
start() { setsid nohup "\$@" </dev/null >>/run/desktop.log 2>&1 & }
start Xorg :0 vt2 -config /run/xorg.conf -logfile /run/xorg.log -nolisten tcp -noreset
export DISPLAY=:0
timeout 90 sh -c 'until [ -S /tmp/.X11-unix/X0 ]; do sleep 0.2; done' || { tail -n 20 /run/xorg.log; exit 1; }
sleep 2
start twm
start xterm -geometry 80x24+40+60 -e sh -c 'dmesg | tail -n 20; sleep 86400'
SH
    return;
}

# Its clients end with the server. If they ended before it, it would start again, and a server that does so forgets
# its order to end.
sub stop_desktop {
    $blue->run(<<'SH', timeout => 90);
pkill -x Xorg
timeout 60 sh -c 'while pgrep -x Xorg >/dev/null; do sleep 0.2; done' && exit
tail -n 20 /run/xorg.log
for task in /proc/$(pgrep -x Xorg)/task/*; do cat $task/comm $task/wchan $task/stack; done
exit 1
SH
    return;
}

# The terminal's white, as large as it is.
sub shows_terminal { my ($picture) = @_; return ($picture->colours->{ffffff} // 0) > 100_000 }

point('a display is for a vGPU that no VM has', sub {
    my $said = host("echo 1 >$display", fail => 1);
    die "it was taken\n" if $VGPU::Command::status == 0;
    $blue->destroy;
    host("echo 2 >$display", fail => 1);
    die "2 displays\n" if $VGPU::Command::status == 0;
    host("echo 1 >$display");
    return $said;
});

point('at power-on the picture is the firmware\'s', sub {
    host('cat >/run/display.xml && virsh -q define /run/display.xml && virsh -q start blue',
        stdin => domain_with_display(), timeout => 240);
    delete $blue->{boots};
    # QEMU's own message for "nothing yet", in 640x480.
    my $picture = picture_until('power-on', 60, sub { $_[0]->size ne '640x480' && keys %{ $_[0]->colours } > 1 });
    my $console = host("cat $blue->{console}", fail => 1);
    die "the guest was up already\n" if $console =~ /rig: .* is up/;
    return describe($picture);
});

point('the guest\'s driver has a display, of the size that the vGPU prefers', sub {
    $blue->wait_up;
    VGPU::Compute::install($blue);
    $blue->find_gpu($blue->{vgpu});
    my $modes = $blue->run('cat /sys/class/drm/card*-Virtual-1/status /sys/class/drm/card*-Virtual-1/modes; '
        . 'dmesg | grep -F "[drm]" | tail -n 12');
    die $modes if $modes !~ /^connected$/m || $modes !~ /^1280x800$/m || $modes !~ /^1024x768$/m;
    return $modes;
});

point('the text console: letters where they were written, nothing where not', sub {
    my ($width, $height, $cell, $line) = console();
    # Ten full blocks from the 11th column of the 5th line.
    $blue->run(q{printf '\033c\033[?25l\033[5;11H\342\226\210\342\226\210\342\226\210\342\226\210\342\226\210'}
        . q{'\342\226\210\342\226\210\342\226\210\342\226\210\342\226\210\033[8;1HA text console.' >/dev/tty1});
    my ($x, $y) = (10 * $cell, 4 * $line);
    my $picture = picture_until('text-console', 60,
        sub { $_[0]->size eq "${width}x$height" && $_[0]->pixel($x, $y) ne '000000' });
    my $blocks = $picture->colours($x, $y, 10 * $cell, $line);
    die 'blocks: ' . join(' ', %$blocks) . "\n" if keys %$blocks != 1;
    for my $empty ([0, 0, $width, $y], [0, $y, $x, $line], [$x + 10 * $cell, $y, $width - $x - 10 * $cell, $line]) {
        my $colours = $picture->colours(@$empty);
        die "at @$empty: " . join(' ', %$colours) . "\n" if join(' ', keys %$colours) ne '000000';
    }
    my $letters = $picture->colours(0, 7 * $line, 15 * $cell, $line);
    die 'letters: ' . join(' ', %$letters) . "\n" if keys %$letters < 2;
    return describe($picture) . ", cells of ${cell}x$line";
});

point('a small desktop', sub {
    start_desktop();
    return describe(picture_until('desktop', 120, \&shows_terminal));
});

point('viewers of VNC and of SPICE get the same desktop', sub {
    my %by = (vnc => VGPU::Picture->by_vnc($vnc, 'desktop-vnc'), spice => VGPU::Picture->by_spice($spice, 'desktop-spice'));
    for my $kind (sort keys %by) {
        die "$kind: " . describe($by{$kind}) . "\n" if $by{$kind}->size ne '1280x800' || !shows_terminal($by{$kind});
    }
    return join "\n", map { "$_: " . describe($by{$_}) } sort keys %by;
});

# Mesa's zink makes Vulkan of OpenGL; it takes a GPU that is a processor only if software will do. Pictures off the
# screen: a window needs VK_KHR_swapchain, which Venus does not offer on software Vulkan.
my $zink = 'export DISPLAY=:0 GALLIUM_DRIVER=zink LIBGL_ALWAYS_SOFTWARE=1;';
my $venus = qr/zink Vulkan [\d.]+\(Virtio-GPU Venus/;

point('OpenGL is zink on the vGPU', sub {
    my $said = $blue->run("$zink eglinfo -B -p surfaceless", timeout => 180);
    die $said if $said !~ /^OpenGL core profile renderer: $venus/m || $said !~ /^OpenGL core profile version: 4\.6 /m;
    return join "\n", $said =~ /^(OpenGL (?:core|ES) profile (?:renderer|version): .*)$/mg;
});

point('what it draws is right', sub {
    my $said = $blue->run("$zink glmark2 --off-screen --validate -b build -b texture -b shading -b bump", timeout => 300);
    die $said if $said !~ /GL_RENDERER: +$venus/ || 4 != (() = $said =~ /: Validation: Success$/mg);
    return join "\n", $said =~ /^(.*: Validation: .*)$/mg;
});

point('another resolution is followed, and the console\'s after it', sub {
    stop_desktop();
    start_desktop('1024x768');
    my $seen = describe(picture_until('desktop-1024x768', 120, sub { $_[0]->size eq '1024x768' && shows_terminal($_[0]) }));
    stop_desktop();
    my ($width, $height) = console();
    return "$seen\n" . describe(picture_until('console-again', 60, sub { $_[0]->size eq "${width}x$height" }));
});

point('it computes beside its picture', sub { return computes($blue) });

point('the guest\'s kernel has nothing to complain about', sub {
    my $said = $blue->run('dmesg --level=emerg,alert,crit,err,warn | grep -iE "virtio.?gpu|drm"', fail => 1);
    die $said if $said =~ /\S/;
});

# Nothing blinks and nobody writes: until the guest's reset QEMU keeps its picture.
point('an engine that dies leaves its picture; the next one goes on after the guest\'s reset', sub {
    my ($width, $height) = console();
    $blue->run(q{printf '\033c\033[?25lbefore' >/dev/tty1});
    my $before = picture_until('before', 60, sub { $_[0]->size eq "${width}x$height" && keys %{ $_[0]->colours } > 1 });
    my $pid = $blue->{vgpu}->engine_pid;
    host("kill -9 $pid");
    VGPU::Host::wait_state($blue->{vgpu}, qr/lost/);
    sleep 2;
    my $seen = VGPU::Picture->take($blue, 'engine-dead');
    die 'it was ' . describe($before) . ', and is ' . describe($seen) . "\n" if !is_same($seen, $before);
    $blue->reset;
    my $firmware = picture_until('reset', 60, sub { $_[0]->size ne '1280x800' && keys %{ $_[0]->colours } > 1 });
    $blue->wait_up;
    ($width, $height) = console();
    $blue->run(q{printf '\033cback' >/dev/tty1});
    picture_until('after-reset', 60, sub { $_[0]->size eq "${width}x$height" && keys %{ $_[0]->colours } > 1 });
    return describe($seen) . "\n" . describe($firmware);
});

point('without a display all is as before', sub {
    $blue->destroy;
    host("virsh -q define /run/blue.xml; echo 0 >$display");
    VGPU::Tenant::start($blue);
    $blue->wait_up;
    VGPU::Compute::install($blue);
    $blue->attach($blue->{vgpu});
    return computes($blue);
});

point('the kernel of the host has nothing to complain about', sub {
    my $complaints = VGPU::Lab::kernel_complaints();
    die $complaints if $complaints =~ /\S/;
});

done_testing();
