#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# docs/troubleshooting.md is searched by message: each that it quotes of ours is in the sources, word for word. So is each
# line of our programs or the module that another page shows. The manual of attributes has all of the driver's.
use strict;
use warnings;
use File::Find;
use Test::More;

binmode Test::More->builder->$_, ':encoding(UTF-8)' for qw(output failure_output);

# Others' messages, and what a person sees.
my $others = qr/^(?:modprobe:[ ]FATAL|CUDA_ERROR|unresolvable[ ]CDI|Parent[ ]|No[ ]available[ ]instances|Device[ ]already
    |Failed[ ]to[ ]write|Invalid[ ]attribute|mdevctl:[ ]|error:[ ]kvm|No[ ]more[ ]available|VFIO[ ]device|Duplicate[ ]device
    |Could[ ]not[ ]enable|MDEV:|VFIO_MAP_DMA|BAR[ ]2|bar[ ]shorter|\[drm\]|device[ ]doesn't|timed[ ]out[ ]waiting
    |llvmpipe|Script[ ]|gpu[ ]|vgpuctl[ ]|journalctl|bypass$|podman|.[ ]already[ ]defined|iowrite8|vulkaninfo
    |Failed[ ]to[ ]register[ ]client|vkCreateInstance)/x;

sub slurp { my ($path) = @_; open my $file, '<:encoding(UTF-8)', $path or die "$path: $!\n"; local $/; return <$file> }

# A source's text with its string literals put together, and each of their conversions as "…".
sub messages_of {
    my ($text) = @_;
    $text =~ s/"\s*(?:PRI[a-z]+64|G_GUINT64_FORMAT|G_GSIZE_FORMAT)\s*"/t/g;
    $text =~ s/"[ \t]*\\?\n\s*"//g;
    $text =~ s/\\"/"/g;
    $text =~ s/%[-0-9.*]*(?:hh|ll|[hlztj])?[a-zA-Z]/\x{2026}/g;
    return $text;
}

my $sources = '';
find({ no_chdir => 1, wanted => sub {
    $sources .= messages_of(slurp($_)) if -f && m{\.(?:c|h|rs|sh|py)$|/[a-z-]+$} && !m{\.git/};
} }, qw(card container-hooks cuda-remote engine fleet governor host-agent lib mdev-driver mdevctl-plugins qemu-hooks));

my @quoted;
for my $row (grep { /^\| .* \|$/ } split /\n/, slurp('docs/troubleshooting.md')) {
    my ($cell) = $row =~ /^\| (.*?) \| /;
    push @quoted, grep { $_ !~ $others } $cell =~ /`([^`]+)`/g;
}
for my $page (grep { !/troubleshooting/ } glob 'README.md docs/*.md') {
    push @quoted, slurp($page) =~ /(?:`|^ {4,})((?:vgpu-[a-z]+|mdev_vgpu): [a-z][^`\n]+)/mg;
}
# Numbers, and what stands before a colon, are put in.
for my $message (@quoted) {
    my @parts = grep { length > 3 } map { s/^\W+|\W+$//gr } split /\x{2026}|[0-9]+|: |\[type x\]/, $message;
    my @missing = grep { index($sources, $_) < 0 } @parts;
    ok(!@missing, $message) or diag("not in the sources: @missing");
}

# Each file that the driver makes for a vGPU has its paragraph in the manual.
my $manual = slurp('mdev-driver/registrar/vgpu-attributes.7');
for my $file (slurp('mdev-driver/attributes.c') =~ /&dev_attr_(\w+)\.attr/g) {
    like($manual, qr/^\.TP\n\.B \Q$file\E$/m, "vgpu-attributes(7) describes $file");
}
done_testing();
