#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# make try: the commands of the README's first block, which the quick start has, too, in the shell that it opens, for a user
# without rights; and programs that call vgpud.
use strict;
use warnings;
use Test::More;

# Runs $script in that shell as nobody: all that it prints.
sub try_out {
    my ($script) = @_;
    open my $file, '>', "/tmp/try-$$" or die "/tmp/try-$$: $!\n";
    print $file $script;
    close $file;
    my $said = `setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/nonexistent tests/run/try </tmp/try-$$ 2>&1`;
    unlink "/tmp/try-$$";
    return $said;
}

# The commands after the shell's prompt in a page.
sub commands_of {
    my ($page) = @_;
    open my $in, '<', $page or die "$page: $!\n";
    return map { /^ *try\$ ([^#]*?)\s*(?:#.*)?$/ ? $1 : () } <$in>;
}

my @commands = commands_of('README.md');
is(scalar @commands, 5, 'the README has commands for it') or diag(@commands);
is_deeply([commands_of('docs/quickstart.md')], \@commands, 'the quick start has the same');

# The one in the background has its slice by the time that the next command lists it.
my $wait = 'for i in $(seq 100); do vgpuctl slice list | grep -q sleep && break; sleep 0.1; done';
my $said = try_out(join '', (map { ("echo '== $_'\n", "$_\n", /&$/ ? "$wait\n" : ()) } @commands), "kill \$!\n");
my %of = $said =~ /^== (.*)\n((?:(?!==).*\n)*)/mg;
my ($list, $compute, $sleep, $slices, $full) = @of{@commands};
like($list, qr/^soft:try +shared/m, 'the GPU is shared') or diag($said);
like($compute, qr/verified on llvmpipe/, 'a program computes in a slice');
like($slices, qr/256\.0 MiB.*sleep/, 'who has a slice is listed');
like($full, qr/no room for the slice.*^7$/ms, 'a slice for which there is no room is refused');
my ($root) = $said =~ m{logs are in (/tmp/vgpu-try-\w+)\.};
open my $left, '-|', 'pgrep', '-af', '--', $root or die "pgrep: $!\n";
is(join('', <$left>), '', 'no process of make try is left');
ok(!-e $root, 'no file of make try is left');

# Programs that call vgpud: the blocks of a page of the agent.
open my $page, '<', 'host-agent/README.md' or die "host-agent/README.md: $!\n";
my ($section) = do { local $/; <$page> } =~ /^## Call it from a program\n(.*)/ms;
my ($shell, $python) = map { s/^    //mgr =~ s/\A\n+//r } $section =~ /((?:^    .*\n|^\n(?=    ))+)/mg;
$said = try_out("$shell\npython3 - <<'END' 2>&1\n$python\nEND\n");
like($said, qr/^web soft:try 268435456$/m, 'the example in Python lists the slice that the one in the shell has made') or diag($said);
like($said, qr/^org\.mdev_vgpu\.Host1\.Error\.NotFound$/m, 'and prints why it is refused another');

# What "make try" and the like say on a machine without the packages for development.
sub need { my (@words) = @_; my $said = `packaging/need @words 2>&1`; return ($? >> 8, $said) }
# libglib2.0-dev depends on libgio-2.0-dev, which older releases lack.
my %package = map { $_ => `dpkg -S /usr/bin/$_` =~ s/:.*//sr } qw(pkg-config glslangValidator);
for my $module (qw(ffnvcodec glib-2.0 gio-unix-2.0 json-glib-1.0 libacl libmicrohttpd libpci libsystemd libudev libvirt libxml-2.0
    polkit-gobject-1 smartcols sqlite3 virglrenderer vulkan)) {
    my ($file) = grep { -e } map { "$_/$module.pc" } qw(/usr/lib/x86_64-linux-gnu/pkgconfig /usr/lib/pkgconfig /usr/share/pkgconfig);
    $package{$module} = $file ? `dpkg -S $file` =~ s/:.*//sr =~ s/libgio-2.0/libglib2.0/r : 'not here';
}
is_deeply([need(sort keys %package)], [0, ''], 'the tree has all');
{
    local @ENV{qw(PKG_CONFIG_LIBDIR PKG_CONFIG_PATH)} = ('/nonexistent', '');
    my @modules = grep { !/^(?:pkg-config|glslangValidator)$/ } sort keys %package;
    my %seen;
    my @packages = grep { !$seen{$_}++ } @package{@modules};
    my ($status, $said) = need(@modules);
    is($status, 1, 'a machine that lacks them');
    like($said, qr/lacks @{[join ', ', @modules]}: apt install @packages; or,/, 'is told the packages');
    is(`make --no-print-directory host-agent 2>&1` =~ /^Makefile:\d+: \*\*\* this machine lacks gio-unix-2.0, .*apt install.*tests\/rig\/rig build/ ? 1 : 0,
        1, 'by make, too');
}
done_testing();
