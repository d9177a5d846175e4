# SPDX-License-Identifier: MIT
# A Slurm cluster on this machine: the real slurmctld and a real slurmd for each node, in the tree and the namespaces of
# tests/fleet/alone. Whatever runs ends with those, so there is no way to leave a process behind.
#
#   my $fleet = VGPU::Fleet->new(nodes => 3, cards => 8);
#   $fleet->up;
package VGPU::Fleet;

use strict;
use warnings;

use File::Path qw(make_path remove_tree);
use POSIX ();
use Test::More ();
use Time::HiRes qw(time sleep);

my $home = '/run/fleet';
# The plugins' folder: what the checkout has built, or a package's.
our $plugin_dir = $ENV{VGPU_SLURM_PLUGINS} // '/src/build/fleet';
# For an ordinary user's commands.
my $user = 'tester';
# So long may anything take that is waited for. Nothing passes or fails by time but a cluster that hangs.
my $patience = $ENV{FLEET_PATIENCE} // 120;

# nodes, cards (of each node), vram (MiB of each card), model (of each card; or a list of models, one for each node),
# slurm_conf (more lines), vgpu_conf (its text), partitions (lines), parameters (of the scheduler),
# select (of cards: LL_SHARED_GRES), scripts (0: neither witness nor prologs, for measurements), cred_expire (in seconds: a job
# must have started by then, and one that is put back waits for so long).
#
# witness: "prolog", or "kernel" for tests that kill what would run prologs and epilogs: each card is a file system with
# as much room as the card has, and jobs take in it what they were promised (holding()), for as long as they live.
sub new {
    my ($class, %is) = @_;
    my %default = (
        nodes => 2, cards => 8, vram => 81920, cpus => 64, model => 'a100-80g', slurm_conf => '', parameters => '', select => '',
        partitions => "PartitionName=all Nodes=ALL Default=YES DefaultTime=60 MaxTime=7-0 State=UP\n",
        plugins => -e "$plugin_dir/job_submit_vgpu.so", scripts => 1, witness => 'prolog', cred_expire => 5,
    );
    my $self = bless { %default, %is, pids => {} }, $class;
    $self->{vgpu_conf} //= "[model $self->{model}]\nvram=$self->{vram}\n" if !ref $self->{model};
    return $self;
}

sub write_file {
    my ($path, @text) = @_;
    open my $out, '>', $path or die "$path: $!\n";
    print {$out} @text;
    close $out or die "$path: $!\n";
    return;
}

sub read_file {
    my ($path) = @_;
    open my $in, '<', $path or return '';
    local $/ = undef;
    return scalar <$in> // '';
}

sub node_names { my ($self) = @_; return map { "n$_" } 1 .. $self->{nodes} }
sub models { my ($self) = @_; return ref $self->{model} ? @{ $self->{model} } : ($self->{model}) x $self->{nodes} }

# One line for each run of nodes with the same model.
sub node_lines {
    my ($self) = @_;
    my @models = $self->models;
    my (@slurm, @gres);
    for (my $first = 0; $first < @models;) {
        my $last = $first;
        $last++ while $last + 1 < @models && $models[$last + 1] eq $models[$first];
        my ($model, $names) = ($models[$first], sprintf 'n[%d-%d]', $first + 1, $last + 1);
        my ($cards, $shards) = ($self->{cards}, $self->{cards} * $self->{vram});
        # Without sockets each CPU is one, and placing a job takes more than twice as long.
        push @slurm, sprintf "NodeName=%s NodeHostname=fleet NodeAddr=10.77.0.1 Port=[%d-%d] CPUs=%d Sockets=2 CoresPerSocket=%d RealMemory=1000000 "
            . "Gres=gpu:%s:%d,shard:%s:%d State=UNKNOWN\n", $names, 30001 + $first, 30001 + $last, $self->{cpus}, $self->{cpus} / 2, $model, $cards, $model, $shards;
        my $files = sprintf '%s/dev/card[0-%d]', $home, $cards - 1;
        push @gres, "NodeName=$names Name=gpu Type=$model File=$files\n";
        push @gres, map { "NodeName=$names Name=shard Type=$model Count=$self->{vram} File=$home/dev/card$_\n" } 0 .. $cards - 1;
        $first = $last + 1;
    }
    return (join('', @slurm), join('', @gres));
}

sub write_conf {
    my ($self) = @_;
    my ($nodes, $gres) = $self->node_lines;
    my $select = join ',', 'CR_Core_Memory', 'MULTIPLE_SHARING_GRES_PJ', $self->{select} || ();
    my $scheduler = join ',', 'nohold_on_prolog_fail,bf_continue,bf_interval=1,sched_interval=1', $self->{parameters} || ();
    my $scripts = $self->{scripts} ? "Prolog=$home/prolog\nEpilog=$home/epilog\n" : '';
    my $plugins = $self->{plugins} ? "JobSubmitPlugins=vgpu\nPluginDir=$plugin_dir:/usr/lib/x86_64-linux-gnu/slurm-wlm\n" : '';
    make_path('/etc/slurm');
    write_file('/etc/slurm/slurm.conf', <<"CONF");
ClusterName=fleet
SlurmctldHost=fleet
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=cred_expire=$self->{cred_expire}
StateSaveLocation=$home/state
SlurmdSpoolDir=$home/spool/%n
SlurmctldPidFile=$home/slurmctld.pid
SlurmdPidFile=$home/spool/%n.pid
SlurmctldLogFile=$home/log/slurmctld
SlurmdLogFile=$home/log/%n
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=$select
DefMemPerCPU=10
GresTypes=gpu,shard
SchedulerType=sched/backfill
SchedulerParameters=$scheduler
PriorityType=priority/basic
PrologFlags=Alloc,DeferBatch
${scripts}MaxJobCount=100000
MaxArraySize=10001
MessageTimeout=100
KillWait=5
ReturnToService=2
SlurmdTimeout=0
InactiveLimit=0
JobRequeue=1
MpiDefault=none
$plugins$self->{slurm_conf}
$nodes
$self->{partitions}
CONF
    write_file('/etc/slurm/gres.conf', "AutoDetect=off\n$gres");
    write_file('/etc/slurm/cgroup.conf', "CgroupPlugin=disabled\n");
    write_file('/etc/slurm/plugstack.conf', $self->{plugins} ? "required $plugin_dir/spank_vgpu.so\n" : '');
    make_path('/etc/vgpu');
    write_file('/etc/vgpu/vgpu.conf', $self->{vgpu_conf} // '');
    return;
}

# Slurm runs one file for each; a test may put its own programs beside the witness.
sub write_scripts {
    my ($self) = @_;
    for my $which (qw(prolog epilog)) {
        my $witness = $self->{witness} eq 'prolog' ? "/src/build/fleet/tests/witness $which $home/witness || exit 1\n" : '';
        write_file("$home/$which", "#!/bin/sh\n$witness", $self->{$which} // '');
        chmod 0755, "$home/$which";
    }
    return;
}

# The PCI address of a card, which tests give to it.
sub address { my ($card) = @_; return sprintf '0000:%02d:00.0', $card + 1 }

# A card's MiB is 64 bytes here.
sub mount_cards {
    my ($self) = @_;
    for my $node ($self->node_names) {
        for my $card (0 .. $self->{cards} - 1) {
            my $dir = "$home/cards/$node/" . address($card);
            make_path($dir);
            system('mount', '-t', 'tmpfs', '-o', 'mode=1777,size=' . $self->{vram} * 64, 'card', $dir) == 0 or die "mount failed\n";
        }
    }
    write_file("$home/cards/faults");
    chmod 0666, "$home/cards/faults";
    return;
}

# A job's script that takes $mib of its first card, a multiple of 64, and has them until its last process has ended. The
# card is that of its slice, or without vgpu-slurm that of its credential.
sub holding {
    my ($self, $mib, $script) = @_;
    my $bytes = $mib * 64;
    return "card=$home/cards/\$SLURMD_NODENAME/" . '${VGPU_CARD:-$(printf 0000:%02d:00.0 $((${SLURM_JOB_GPUS%%[,-]*} + 1)))}; exec 9>$card/$$ && rm $card/$$; '
        . "fallocate -l $bytes /proc/self/fd/9 || echo \"job \$SLURM_JOB_ID: \$SLURMD_NODENAME has no $mib MiB of \$card left\" >>$home/cards/faults; $script";
}

sub prepare {
    my ($self) = @_;
    # This changes /etc and /run, and adds a user.
    die "to be run by tests/fleet/alone, in the rig's tree\n" if (POSIX::uname())[1] ne 'fleet' || !-e '/src/tests/fleet/alone';
    remove_tree($home);
    make_path(map { "$home/$_" } qw(dev log spool state witness));
    chmod 0755, $home;
    $self->mount_cards if $self->{witness} eq 'kernel';
    for my $card (0 .. $self->{cards} - 1) {
        system('mknod', "$home/dev/card$card", 'c', 1, 3) == 0 or die "mknod failed\n";
    }
    write_file("$home/witness/capacity", "$self->{vram}\n");
    system('useradd', '-M', $user) == 0 or die "useradd failed\n" if !getpwnam $user;
    $self->write_conf;
    $self->write_scripts;
    return;
}

# Starts a daemon in the foreground as a child, and keeps it by its name.
sub daemon {
    my ($self, $name, @command) = @_;
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>>', "$home/log/$name.out";
        open STDERR, '>&', \*STDOUT;
        POSIX::setsid();
        exec { $command[0] } @command or POSIX::_exit(127);
    }
    $self->{pids}{$name} = $pid;
    return $pid;
}

sub start_munge {
    make_path('/run/munge', '/var/log/munge', '/var/lib/munge');
    return if -S '/run/munge/munge.socket.2' && !system 'munge -n >/dev/null 2>&1';
    if (!-s '/etc/munge/munge.key') {
        make_path('/etc/munge');
        write_file('/etc/munge/munge.key', 'k' x 128);
    }
    system('chown', '-R', 'root:root', '/etc/munge', '/run/munge', '/var/log/munge', '/var/lib/munge');
    chmod 0400, '/etc/munge/munge.key';
    chmod 0755, '/run/munge';
    system('munged', '--force', '--num-threads=4') == 0 or die "munged does not start\n";
    return;
}

sub start_slurmctld { my ($self) = @_; return $self->daemon('slurmctld', 'slurmctld', '-D') }
# More options: -b says that the node has booted, so nothing that was running is running.
sub start_slurmd { my ($self, $node, @more) = @_; return $self->daemon($node, 'slurmd', '-D', '-N', $node, @more) }

# A cluster from nothing.
sub up {
    my ($self) = @_;
    $self->prepare;
    return $self->start;
}

# With what prepare() has written. All nodes idle; dies with the logs' ends if they are not by then.
sub start {
    my ($self) = @_;
    my $began = time;
    start_munge();
    $self->start_slurmctld;
    $self->wait_for('slurmctld answers', sub { !system 'timeout 5 scontrol ping >/dev/null 2>&1' });
    $self->start_slurmd($_) for $self->node_names;
    $self->wait_for('all nodes are idle', sub { $self->states->{idle} == $self->{nodes} });
    $self->{up_seconds} = time - $began;
    return $self;
}

# Ends the daemons, so that another cluster can follow in the same test.
sub down {
    my ($self) = @_;
    $self->clear;
    kill 'KILL', values %{ $self->{pids} };
    waitpid $_, 0 for values %{ $self->{pids} };
    $self->{pids} = {};
    return;
}

# Nodes by their state: {idle => 3}.
sub states {
    my ($self) = @_;
    my (%states, %seen);
    # A node is named once for each of its partitions.
    for (split /\n/, `sinfo -a -h -N -o '%N %t' 2>/dev/null`) {
        my ($node, $state) = split ' ';
        $states{$state}++ if !$seen{$node}++;
    }
    $states{idle} //= 0;
    return \%states;
}

# patience: another limit, in seconds.
sub wait_for {
    my ($self, $what, $is, %how) = @_;
    my $began = time;
    until ($is->()) {
        if (time - $began > ($how{patience} // $patience)) {
            $self->show_logs;
            die "waited in vain: $what\n";
        }
        sleep 0.05;
    }
    return time - $began;
}

sub show_logs {
    my ($self) = @_;
    my @nodes = $self->node_names;
    for my $log ('slurmctld', @nodes > 3 ? @nodes[0 .. 2] : @nodes, 'slurmdbd', 'slurmdbd.out', 'vgpu-slurm', 'vgpud.out') {
        my @lines = split /\n/, read_file("$home/log/$log");
        print "# $log: $_\n" for @lines > 15 ? @lines[-15 .. -1] : @lines;
    }
    my @queue = `timeout 5 squeue -a -h 2>&1 | head -n 20`;
    print "# queue: $_" for @queue, `timeout 5 sinfo -R 2>&1 | head -n 20`, `timeout 5 sinfo -N -l 2>&1 | head -n 20`;
    # Of those that are waited for, everything that was said, and what runs.
    for my $job (map { /^\s*(\d+)\s/ ? $1 : () } @queue > 3 ? @queue[0 .. 2] : @queue) {
        print "# job $job: $_" for $self->log_of($job), `timeout 5 scontrol -d show job $job`;
    }
    print "# process: $_" for `ps -eo pid,ppid,etimes,wchan:20,args | grep -E 'slurmd|slurmstepd|script|sleep|prolog' | head -n 30`;
    return;
}

# All daemons' words about a job, in the order of time; and each start of slurmctld.
sub log_of {
    my ($self, $job) = @_;
    return `grep -hE '(JobId=|job |\\[|:)$job\\b|slurmctld version' $home/log/* | sort | tail -n 60`;
}

# The output of a command, both kinds, and its exit status; as an ordinary user who has logged in: Slurm's interactive step is
# his SHELL, which the environment of a job in CI lacks.
sub as_user {
    my ($self, @command) = @_;
    return run_command('setpriv', "--reuid=$user", "--regid=$user", '--clear-groups', 'env', 'HOME=/tmp', 'SHELL=/bin/sh', @command);
}

sub run_command {
    my (@command) = @_;
    my $pid = open(my $out, '-|') // die "fork: $!\n";
    if (!$pid) {
        open STDERR, '>&', \*STDOUT;
        chdir '/tmp';
        exec { $command[0] } @command or POSIX::_exit(127);
    }
    local $/ = undef;
    my $text = <$out> // '';
    close $out;
    return ($text, $? & 127 ? 128 + ($? & 127) : $? >> 8);
}

# Submits a job that sleeps, or what `script` is, as the user; its number.
sub sbatch {
    my ($self, @options) = @_;
    my $script = @options && ref $options[-1] ? ${ pop @options } : 'exec sleep 3600';
    my ($text, $status) = $self->as_user('sbatch', '--parsable', '-o', '/dev/null', @options, '--wrap', $script);
    die "sbatch @options: $text\n" if $status || $text !~ /(\d+)\s*\z/;
    return $1;
}

# What scontrol says of a job, as a hash, with the details of its cards.
sub job {
    my ($self, $id) = @_;
    my $text = `scontrol -d show job $id 2>/dev/null`;
    my %job = map { /^([\w:\/]+)=(.*)$/s ? ($1 => $2) : () } split /\s+/, $text;
    # "Nodes=n1 CPU_IDs=0 Mem=10 GRES=shard:a100-80g:100(100/81920,0/81920)"
    while ($text =~ /^\s+Nodes=(\S+) CPU_IDs=\S* Mem=\S* GRES=(\S*)/mg) {
        push @{ $job{gres} }, { nodes => $1, gres => $2 };
    }
    return \%job;
}

sub state_of { my ($self, $id) = @_; return $self->job($id)->{JobState} // 'GONE' }
sub wait_state {
    my ($self, $id, $state) = @_;
    return $self->wait_for("job $id is $state", sub { $self->state_of($id) eq $state });
}

# Numbers of jobs by state.
sub jobs {
    my ($self, $state, @more) = @_;
    return map { /(\d+)/ ? $1 : () } split /\n/, `squeue -a -h -r -o %A -t $state @more 2>/dev/null`;
}

# Cancels all jobs and waits until the nodes are idle again.
sub clear {
    my ($self) = @_;
    system 'scancel', '--quiet', "--user=$_" for 'root', $user;
    return $self->wait_for('all jobs are gone', sub { !`squeue -a -h -o %A` && $self->states->{idle} == $self->{nodes} });
}

# What the witness has seen: faults (sentences), most (MiB of a card at once), prologs, held (MiB now).
sub witness {
    my ($self) = @_;
    my %seen = (faults => [split /\n/, read_file("$home/witness/faults")], most => 0, prologs => 0, held => 0);
    for my $line (split /\n/, `/src/build/fleet/tests/witness sum $home/witness`) {
        $seen{$1} = $2 if $line =~ /^(\w+) (\d+)$/;
    }
    return \%seen;
}

# A test's end: whatever it did, no card was promised twice, and with all jobs gone nothing is.
sub settle {
    my ($self) = @_;
    $self->clear;
    return $self->settle_cards if $self->{witness} eq 'kernel';
    my $seen = $self->witness;
    Test::More::is_deeply($seen->{faults}, [], 'the witness: no card was promised more than it has')
        or Test::More::diag(join "\n", @{ $seen->{faults} });
    Test::More::is($seen->{held}, 0, 'the witness: each job has ended, and nothing is promised');
    Test::More::note("witness: $seen->{prologs} prologs, at most $seen->{most} of $self->{vram} MiB of a card");
    return;
}

sub settle_cards {
    my ($self) = @_;
    my $faults = read_file("$home/cards/faults");
    Test::More::is($faults, '', 'the kernel: each job had what it was promised, for as long as it lived')
        or Test::More::diag(map { $self->log_of($_) } $faults =~ /^job (\d+) /mg);
    my @used = grep { !/^0 / } split /\n/, `df --output=used,target -t tmpfs | sed -n 's,^ *\\(.*$home/cards/.*\\),\\1,p'`;
    return Test::More::is_deeply(\@used, [], 'the kernel: no process has anything of a card');
}

1;
