# SPDX-License-Identifier: MIT
# Screenshots of VMs: taken by virsh or a viewer, kept as artefacts, and checked pixel by pixel.
package VGPU::Picture;

use strict;
use warnings;

use Compress::Zlib qw(uncompress);
use File::Path qw(make_path);
use VGPU::Command;
use VGPU::Lab;

my $artefacts = 'build/system/artefacts';

# A screenshot of a running VM, as build/system/artefacts/NAME.png.
sub take {
    my ($class, $tenant, $name) = @_;
    return $class->decode(fetch("virsh -q screenshot $tenant->{name} --file", "$name.png"));
}

# The picture in a VNC viewer at that port of L1.
sub by_vnc {
    my ($class, $port, $name) = @_;
    my $display = $port - 5900;
    return $class->decode(fetch("gvnccapture --quiet 127.0.0.1:$display", "$name.png"));
}

# The same for SPICE.
sub by_spice {
    my ($class, $port, $name) = @_;
    return $class->decode_ppm(fetch("spicy-screenshot --uri spice://127.0.0.1:$port --out-file", "$name.ppm"));
}

# The picture that a command in L1 writes to the file that is its last word.
sub fetch {
    my ($command, $file) = @_;
    my $here = "$artefacts/$file";
    VGPU::Lab::host("$command /run/$file", timeout => 120);
    make_path($artefacts);
    VGPU::Command::run([VGPU::Lab::rig('get', "/run/$file", $here)]);
    open my $in, '<:raw', $here or die "$here: $!\n";
    local $/ = undef;
    return <$in>;
}

# PPM as spicy-screenshot writes it: 8 bits, RGB.
sub decode_ppm {
    my ($class, $ppm) = @_;
    my ($head, $width, $height) = $ppm =~ /\A(P6\s(\d+)\s(\d+)\s255\s)/ or die 'no PPM: ' . substr($ppm, 0, 40) . "\n";
    my @rows = unpack '(a' . 3 * $width . ')*', substr $ppm, length $head;
    die "a PPM of " . @rows . " rows, not $height\n" if @rows != $height;
    return bless { width => $width, height => $height, rows => \@rows }, $class;
}

# PNG as QEMU and gvnccapture write it: 8 bits, RGB, the latter's with alpha, not interlaced.
sub decode {
    my ($class, $png) = @_;
    die "no PNG: " . substr($png, 0, 40) . "\n" if substr($png, 0, 8) ne "\x89PNG\r\n\x1a\n";
    my ($at, $data, $width, $height, $bytes) = (8, '');
    while ($at < length $png) {
        my ($size, $type) = unpack 'N a4', substr $png, $at, 8;
        my $chunk = substr $png, $at + 8, $size;
        if ($type eq 'IHDR') {
            ($width, $height, my @rest) = unpack 'N N C5', $chunk;
            $bytes = { '8 2 0 0 0' => 3, '8 6 0 0 0' => 4 }->{"@rest"} // die "a PNG of kind @rest\n";
        }
        $data .= $chunk if $type eq 'IDAT';
        $at += 12 + $size;
    }
    my $self = bless { width => $width, height => $height }, $class;
    my $rows = unfilter(uncompress($data) // die("the PNG's data is broken\n"), $bytes, $bytes * $width, $height);
    $self->{rows} = $bytes == 3 ? $rows : [map { join '', unpack '(a3x)*', $_ } @$rows];
    return $self;
}

# The rows of a PNG from their encoded form: each has a byte for the filter, and differences.
sub unfilter {
    my ($data, $bytes, $stride, $height) = @_;
    my @rows;
    my @above = (0) x $stride;
    for my $y (0 .. $height - 1) {
        my ($kind, @row) = unpack 'C*', substr $data, $y * ($stride + 1), $stride + 1;
        for my $i ($kind ? 0 .. $stride - 1 : ()) {
            my ($left, $corner) = $i < $bytes ? (0, 0) : ($row[$i - $bytes], $above[$i - $bytes]);
            my $guess = $kind == 1 ? $left : $kind == 2 ? $above[$i] : $kind == 3 ? int(($left + $above[$i]) / 2)
                : paeth($left, $above[$i], $corner);
            $row[$i] = ($row[$i] + $guess) & 255;
        }
        push @rows, pack 'C*', @row;
        @above = @row;
    }
    return \@rows;
}

sub paeth {
    my ($left, $up, $corner) = @_;
    my $sum = $left + $up - $corner;
    my ($l, $u, $c) = map { abs($sum - $_) } $left, $up, $corner;
    return $l <= $u && $l <= $c ? $left : $u <= $c ? $up : $corner;
}

sub size {
    my ($self) = @_;
    return "$self->{width}x$self->{height}";
}

# "rrggbb"
sub pixel {
    my ($self, $x, $y) = @_;
    return unpack 'H6', substr $self->{rows}[$y], 3 * $x, 3;
}

# How many pixels there are of each colour, in a rectangle or in all.
sub colours {
    my ($self, $x, $y, $width, $height) = @_;
    ($x, $y, $width, $height) = (0, 0, $self->{width}, $self->{height}) if !defined $x;
    my %count;
    for my $row (@{ $self->{rows} }[$y .. $y + $height - 1]) {
        $count{$_}++ for unpack '(H6)*', substr $row, 3 * $x, 3 * $width;
    }
    return \%count;
}

1;
