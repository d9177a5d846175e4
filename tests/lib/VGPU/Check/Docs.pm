# SPDX-License-Identifier: MIT
package VGPU::Check::Docs;
# What the documents name in backticks, or link to: files of the checkout that do not exist.
use strict;
use warnings;
use File::Find;

# They are not in the checkout's commits.
my %left_out = map { $_ => 1 } qw(.git build node_modules shared);
# A name with one of these ends is a file of ours.
my $source = qr/\.(?:c|h|t|pl|pm|sh|mk|py|def|comp|md)/;

sub read_text {
    my ($path) = @_;
    open my $in, '<', $path or die "$path: $!\n";
    local $/ = undef;
    return scalar <$in>;
}

# All files and folders below $top, as paths from there.
sub paths {
    my ($top) = @_;
    my @paths;
    my $visit = sub {
        if ($left_out{$_}) {
            $File::Find::prune = 1;
        } elsif ($File::Find::name ne $top) {
            push @paths, substr $File::Find::name, 1 + length $top;
        }
    };
    find($visit, $top);
    return @paths;
}

# Names in backticks: "x/y.c", "y.c", "lib/kernel*.sh". A name of a file may leave out the first folders.
sub named {
    my ($text) = @_;
    return $text =~ m{`((?:[\w.@*-]+/)*[\w.@*-]+$source)`}g;
}

# In the order of the text, each "#heading", "file" or "file#heading".
sub linked {
    my ($text) = @_;
    return grep { !/^\w+:/ } $text =~ /\]\(([^)\s]+)\)/g;
}

# As forges make them of headings.
sub anchors {
    my ($text) = @_;
    $text =~ s/^```.*?^```//gms;
    return map { lc =~ s/[^\w\s-]//gr =~ tr/ /-/r } $text =~ /^#+ (.+)$/mg;
}

sub link_fault {
    my ($top, $doc, $link) = @_;
    my ($file, $anchor) = split /#/, $link, 2;
    my $folder = $doc =~ m{^(.*/)} ? $1 : '';
    my $path = $file eq '' ? $doc : "$folder$file";
    return "$doc links to $link: no such file" if !-e "$top/$path";
    return if !defined $anchor || grep { $_ eq $anchor } anchors(read_text("$top/$path"));
    return "$doc links to $link: no such heading";
}

# Names in backticks: "slices_put_all()".
sub called {
    my ($text) = @_;
    return $text =~ /`(\w+)\(\)`/g;
}

# Sentences. @$foreign: functions of other projects.
sub function_faults {
    my ($top, $docs, $foreign) = @_;
    my @sources = grep { /\.[ch]$/ && !/^tests/ } paths($top);
    my %known = map { $_ => 1 } @$foreign, map { read_text("$top/$_") =~ /\b(\w+)\(/g } @sources;
    my @faults;
    for my $doc (@$docs) {
        push @faults, map { "$doc names $_(): no such function" } grep { !$known{$_} } called(read_text("$top/$doc"));
    }
    return @faults;
}

# Sentences. @$foreign: names of other projects' files.
sub faults {
    my ($top, $docs, $foreign) = @_;
    my $paths = join "\n", '', paths($top), '';
    my %foreign = map { $_ => 1 } @$foreign;
    my @faults;
    for my $doc (@$docs) {
        my $text = read_text("$top/$doc");
        for my $name (named($text)) {
            my $pattern = quotemeta($name =~ s{^(?:\.\./)+}{}r) =~ s/\\\*/[^\/\n]*/gr;
            push @faults, "$doc names $name: no such file" if !$foreign{$name} && $paths !~ m{[\n/]$pattern\n};
        }
        push @faults, map { link_fault($top, $doc, $_) } linked($text);
    }
    return @faults;
}

1;
