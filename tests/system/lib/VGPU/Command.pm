# SPDX-License-Identifier: MIT
# Commands: run to their end, or started and looked after, each with a time limit and a log.
#
#   my $text = VGPU::Command::run(['ls', '-l'], timeout => 10);    # dies unless it ends with 0
#   my $job = VGPU::Command::start([...]);
#   $job->expect(qr/OK round 2/, 60);  $job->running;  $job->wait(60);  $job->stop;
#
# What commands print goes to the current log, which log_to() names.
package VGPU::Command;

use strict;
use warnings;

use File::Temp ();
use POSIX qw(WNOHANG setsid);
use Time::HiRes qw(sleep time);

my $log;
my %jobs;

# All limits are multiplied by this: with a debug kernel everything takes longer.
our $patience = 1;

sub patience { my ($seconds) = @_; return $patience * $seconds }

sub log_to {
    my ($file) = @_;
    open($log, '>>', $file) or die "log $file: $!\n";
    $log->autoflush(1);
    return;
}

sub note {
    my ($text) = @_;
    $log //= \*STDERR;
    print {$log} $text =~ /\n\z/ ? $text : "$text\n";
    return;
}

# Starts a command in a session of its own. Options: name (for messages), stdin (text or a file
# handle), remote => 1 (status 255 is ssh's own: the command's is not known). Output and errors go to one file.
sub start {
    my ($argv, %opt) = @_;
    my $out = File::Temp->new(TEMPLATE => 'vgpu-job-XXXXXX', TMPDIR => 1);
    my $in = $opt{stdin};
    if (!ref $in) {
        my $text = $in // '';
        $in = File::Temp->new(TMPDIR => 1);
        print {$in} $text;
        $in->flush;
        seek $in, 0, 0;
    }
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        setsid();
        open STDIN, '<&', $in or POSIX::_exit(126);
        open STDOUT, '>&', $out or POSIX::_exit(126);
        open STDERR, '>&', $out or POSIX::_exit(126);
        exec {$argv->[0]} @$argv or POSIX::_exit(127);
    }
    my $self = bless {
        pid => $pid,
        out => $out,
        name => $opt{name} // join(' ', @$argv),
        remote => $opt{remote},
        begin => time,
    }, __PACKAGE__;
    $jobs{$pid} = $self;
    return $self;
}

# Runs a command to its end and returns its output. Options: those of start(), timeout in seconds, fail => 1 if
# any status is accepted ($VGPU::Command::status has it).
our $status;

sub run {
    my ($argv, %opt) = @_;
    my $job = start($argv, %opt);
    return $job->wait($opt{timeout} // 60, fail => $opt{fail}, echo => $opt{echo});
}

sub output {
    my ($self) = @_;
    open my $in, '<', $self->{out}->filename or die "$self->{name}: $!\n";
    local $/ = undef;
    return <$in> // '';
}

sub running {
    my ($self) = @_;
    return 0 if defined $self->{status};
    return 1 if waitpid($self->{pid}, WNOHANG) != $self->{pid};
    my $raw = $?;
    $self->{status} = $raw & 127 ? 128 + ($raw & 127) : $raw >> 8;
    delete $jobs{$self->{pid}};
    note(sprintf "\$ %s\n%s[status %d after %.1f s]\n", $self->{name}, $self->output,
        $self->{status}, time - $self->{begin});
    return 0;
}

# Waits for the end; returns the output. With echo => PREFIX each line is shown as it comes.
sub wait {
    my ($self, $limit, %opt) = @_;
    my $timeout = patience($limit);
    my $end = time + $timeout;
    my $shown = 0;
    my $running = 1;
    my $pause = 0.005;
    while ($running) {
        $running = $self->running;
        $shown = $self->show_from($shown, $opt{echo}) if defined $opt{echo};
        last if !$running;
        if (time > $end) {
            $self->stop;
            die "not done after $timeout s: $self->{name}\n" . tail($self->output);
        }
        sleep $pause;
        $pause *= 1.5 if $pause < 0.05;
    }
    $status = $self->{status};
    die "the connection broke: $self->{name}\n" . tail($self->output) if $self->{remote} && $status == 255;
    die "status $status: $self->{name}\n" . tail($self->output) if $status && !$opt{fail};
    return $self->output;
}

# Prints the whole lines of the output from byte $shown on; returns the new position.
sub show_from {
    my ($self, $shown, $prefix) = @_;
    my $new = substr $self->output, $shown;
    $new =~ s/[^\n]*\z//;
    print map { "$prefix$_\n" } split /\n/, $new;
    return $shown + length $new;
}

# Waits until the output matches; returns what the first group matched.
sub expect {
    my ($self, $pattern, $limit) = @_;
    my $timeout = patience($limit);
    my $end = time + $timeout;
    while (1) {
        my $running = $self->running;
        return $1 // 1 if $self->output =~ $pattern;
        die "ended without $pattern: $self->{name}\n" . tail($self->output) if !$running;
        die "no $pattern after $timeout s: $self->{name}\n" . tail($self->output)
            if time > $end;
        sleep 0.1;
    }
}

sub stop {
    my ($self) = @_;
    for my $signal (qw(TERM KILL)) {
        return if !$self->running;
        kill $signal, -$self->{pid};
        for (1 .. 40) {
            return if !$self->running;
            sleep 0.05;
        }
    }
    return;
}

# Commands that still run when the program ends are stopped.
sub stop_all { $_->stop for values %jobs; return }

sub tail {
    my ($text) = @_;
    my @lines = split /\n/, $text;
    splice @lines, 0, @lines - 12 if @lines > 12;
    return join '', map { "  | $_\n" } @lines;
}

END { my $code = $?; stop_all(); $? = $code }

1;
