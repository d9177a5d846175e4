# SPDX-License-Identifier: MIT
# A user of the host, whose podman has containers without root: from the image's tree, which is mounted as the user's own.
package VGPU::Rootless;

use strict;
use warnings;

use VGPU::Lab;
use VGPU::Slice;

our $user = 'vgputest';
my $home = "/home/$user";
my $image;

sub make {
    VGPU::Lab::host(<<"SH", timeout => 120);
set -e
id $user >/dev/null 2>&1 || useradd -m -s /bin/bash $user
mountpoint -q $home || { mount -t tmpfs -o size=1G,mode=0700 tmpfs $home; chown $user: $home; }
grep -q ^$user: /etc/subuid
install -d -o $user -g $user -m 0700 $home/run
SH
    $image = VGPU::Slice::mount_for($user);
    return;
}

# A command as the user, without the host's rights. runtime: the user's folder for what runs.
sub run {
    my ($command, %opt) = @_;
    my $runtime = delete $opt{runtime} // "$home/run";
    my $as_user = "setpriv --reuid $user --regid $user --init-groups env -i HOME=$home USER=$user PATH=/usr/bin:/bin:/usr/sbin:/sbin "
        . "XDG_RUNTIME_DIR=$runtime";
    return VGPU::Lab::host("cd $home && $as_user bash -c '$command'", timeout => 240, %opt);
}

# The user has a systemd without a session, as after a boot.
sub start_manager {
    VGPU::Lab::host("loginctl enable-linger $user && systemctl start user\@\$(id -u $user).service", timeout => 120);
    return;
}

sub stop_manager {
    VGPU::Lab::host("loginctl disable-linger $user && systemctl stop user\@\$(id -u $user).service", timeout => 120);
    return;
}

# A command of it: systemctl's words.
sub manage {
    my ($words, %opt) = @_;
    my $id = VGPU::Lab::host("id -u $user") =~ s/\s//gr;
    return run("systemctl --user $words", runtime => "/run/user/$id", %opt);
}

# A unit for containers (quadlet) of the user's manager.
sub put_unit {
    my ($name, $text) = @_;
    run("mkdir -p .config/containers/systemd && cat >.config/containers/systemd/$name.container", stdin => $text);
    return;
}

# podman's, for a command in a container with a slice and with $options.
sub words {
    my ($slice, $options, $command) = @_;
    return "podman run --rm --network none --log-driver none --cgroups=disabled $options --device $VGPU::Slice::kind=$slice "
        . "-v $VGPU::Slice::programs:/opt:ro --rootfs $image:O $command 2>&1";
}

sub remove {
    VGPU::Lab::host("umount $home $image; userdel -r $user", fail => 1);
    return;
}

1;
