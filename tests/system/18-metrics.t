#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# vgpud's metrics, scraped by a real Prometheus: they match the driver's values, the alerts fire; and usage is reported
# to authorized users.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use JSON::PP;
use VGPU::Slice;
use VGPU::Test;

my ($red, $blue) = baseline();
my $gpu = VGPU::Lab::gpu();
my $nobody = 'setpriv --reuid 65534 --regid 65534 --clear-groups';
my $prometheus = 'http://127.0.0.1:19090';
my $unit = 'test-prometheus';

sub host { return VGPU::Lab::host(@_) }

# GET /metrics in L1, which has no curl.
my $get = q{python3 -c 'import urllib.request as r; print(r.urlopen("http://127.0.0.1:9835/metrics").read().decode(), end="")'};

sub metrics { return host($get) }

# The value of the first sample whose name and labels match.
sub value {
    my ($text, $name, @labels) = @_;
    for my $line (split /\n/, $text) {
        next if $line !~ /^\Q$name\E\{(.*)\} (\S+)$/;
        my ($found, $value) = ($1, $2);
        return $value if !grep { index($found, $_) < 0 } @labels;
    }
    die "no $name with @labels\n";
}

# Writes a file of the repository into L1.
sub copy {
    my ($from, $to) = @_;
    open my $file, '<', $from or die "$from: $!\n";
    my $text = do { local $/; <$file> };
    host("mkdir -p \$(dirname $to) && cat >$to <<'EOF'\n${text}EOF");
    return;
}

# Prometheus' answer to a query, once $code accepts it.
sub ask {
    my ($query, $code) = @_;
    my $said;
    for (1 .. 60) {
        $said = host("promtool query instant $prometheus '$query' 2>&1", fail => 1);
        return $said if $VGPU::Command::status == 0 && $code->($said);
        sleep 1;
    }
    die "$query: $said\n" . host("journalctl -q -u $unit -o cat | tail -n 15");
}

# vgpu-meter serves them, and begins when vgpud is there.
sub served {
    my ($where) = @_;
    VGPU::Slice::soon(sub { host('ss -Hltn; ss -Hlx') =~ /\Q$where\E\s/ }, "nobody serves metrics at $where");
    return;
}

point('the metrics are those of the driver, and promtool likes them', sub {
    host('systemctl start vgpud');
    served(':9835');
    my $text = metrics();
    for my $tenant ($red, $blue) {
        my $vgpu = $tenant->{vgpu};
        for my $counter (qw(requests doorbells interrupts engine_losses window_faults)) {
            my ($has, $now) = (value($text, "vgpu_vgpu_${counter}_total", $vgpu->{uuid}), $vgpu->attribute($counter));
            die "$counter of $tenant->{name}: $has, and the driver has $now\n" if $has > $now || $now - $has > 1000;
        }
        die "$tenant->{name} does not run\n" if value($text, 'vgpu_vgpu_running', $vgpu->{uuid}) != 1;
    }
    die "promised\n" if value($text, 'vgpu_gpu_vram_promised_bytes', $gpu) != (512 + 256) / 2 * 2**20;
    die "not healthy\n" if value($text, 'vgpu_gpu_healthy', $gpu) != 1;
    my $said = host("$get | promtool check metrics 2>&1", fail => 1);
    die "promtool: $said" if $VGPU::Command::status != 0 || $said =~ /\S/;
    return join "\n", grep { /^vgpu_gpu/ } split /\n/, $text;
});

point('they are offered on loopback only, and nothing else is', sub {
    my $ports = host(q{ss -Hltn sport = :9835 | awk '{ print $4 }'});
    die $ports if $ports ne "127.0.0.1:9835\n";
    my $said = host(q{python3 -c 'import urllib.request as r; r.urlopen("http://127.0.0.1:9835/etc/passwd")' 2>&1}, fail => 1);
    die $said if $said !~ /404/;
    return $ports;
});

point('promtool likes the alert rules, and their tests pass', sub {
    copy("docs/prometheus/$_", "/run/prometheus-test/$_") for qw(vgpu.rules.yml vgpu.rules.test.yml);
    return host('cd /run/prometheus-test && promtool check rules vgpu.rules.yml && promtool test rules vgpu.rules.test.yml');
});

point('a real Prometheus scrapes them and answers queries', sub {
    host(<<"SH", timeout => 120);
set -e
cat >/run/prometheus-test/prometheus.yml <<'EOF'
global: {scrape_interval: 2s, evaluation_interval: 2s}
rule_files: [/run/prometheus-test/vgpu.rules.yml]
scrape_configs:
  - job_name: vgpu
    static_configs: [{targets: ['127.0.0.1:9835']}]
EOF
systemd-run -q --unit=$unit --collect prometheus --config.file=/run/prometheus-test/prometheus.yml \\
    --storage.tsdb.path=/run/prometheus-test/data --web.listen-address=127.0.0.1:19090
SH
    my $up = ask('up{job="vgpu"}', sub { $_[0] =~ /=> 1 / });
    my $seen = ask("vgpu_vgpu_requests_total{vgpu=\"$red->{vgpu}{uuid}\"}", sub { $_[0] =~ /=> \d+ / });
    my $took = ask('scrape_duration_seconds{job="vgpu"}', sub { $_[0] =~ /=> / });
    return "$up$seen$took";
});

point('a tenant at work is seen in Prometheus and in vgpuctl top', sub {
    my $job = VGPU::Compute::vulkan($red, $red->gpu_of($red->{vgpu}), '--rounds 3');
    my $verdict = VGPU::Compute::verdict($job->wait(180));
    my $rate = ask("increase(vgpu_vgpu_requests_total{vgpu=\"$red->{vgpu}{uuid}\"}[2m]) > 0", sub { $_[0] =~ /=> / });
    my $top = host('vgpuctl top --once');
    die $top if $top !~ /^\Q$red->{vgpu}{uuid}\E +\Q$gpu\E .*ready$/m;
    my @json = @{ decode_json(host('vgpuctl -o json top')) };
    die "no rate\n" if !grep { $_->{Uuid} eq $blue->{vgpu}{uuid} && defined $_->{RequestsPerSecond} } @json;
    return "$verdict\n$rate$top";
});

point('Prometheus answers every query of the guide', sub {
    open my $file, '<', 'docs/watch.md' or die "watch.md: $!\n";
    my @queries = map { /^\| [^|]+ \| `(.*vgpu_.*)` \|$/ } <$file>;
    die "no queries\n" if @queries < 10;
    my $script = join '', map { "promtool query instant $prometheus '$_' >/dev/null || echo '$_'\n" } @queries;
    my $said = host("{ $script} 2>&1", timeout => 180);
    die $said if $said =~ /\S/;
    return scalar(@queries) . ' queries';
});

point('an engine that is lost raises its alert', sub {
    my $before = $blue->{vgpu}->attribute('engine_losses');
    VGPU::Lab::host('kill -KILL ' . $blue->{vgpu}->engine_pid);
    my $alert = ask("ALERTS{alertname=\"VgpuEngineLost\",vgpu=\"$blue->{vgpu}{uuid}\",alertstate=\"firing\"}",
        sub { $_[0] =~ /=> 1 / });
    $blue->{vgpu}->wait_engine;
    $blue->rebind($blue->{vgpu});
    die "engine_losses is $before\n" if $blue->{vgpu}->attribute('engine_losses') == $before;
    return $alert . computes($blue);
});

point("vgpuctl report shows use to the tenant's users alone", sub {
    my $seen;
    for (1 .. 90) {
        ($seen) = grep { $_->{Uuid} eq $red->{vgpu}{uuid} } @{ decode_json(host('vgpuctl -o json report')) };
        last if $seen && $seen->{Hours} > 0;
        sleep 1;
    }
    die "nothing\n" if !$seen || $seen->{Hours} <= 0;
    die "VRAM-hours\n" if abs($seen->{VramHours} - $seen->{Hours} / 4) > 1e-6;
    my $said = host("$nobody vgpuctl report 2>&1", fail => 1);
    die "status $VGPU::Command::status: $said" if $VGPU::Command::status != 5;
    return host('vgpuctl report') . $said;
});

point('on a socket of its own, where the operator wants that; a mistake in the file is named', sub {
    host("mkdir -p /etc/vgpu && printf '[metrics]\\nlisten=unix:/run/vgpu/metrics\\n' >/etc/vgpu/vgpud.conf && systemctl restart vgpud");
    served('/run/vgpu/metrics');
    my $text = host(q{python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect("/run/vgpu/metrics");
s.sendall(b"GET /metrics HTTP/1.0\r\n\r\n"); print(b"".join(iter(lambda: s.recv(65536), b"")).decode())'});
    die $text if $text !~ /^vgpu_build_info/m;
    my $other = host("$nobody test -w /run/vgpu/metrics", fail => 1);
    die "anybody may connect\n" if $VGPU::Command::status == 0;
    host("printf '[metrics]\\nport=1\\n' >/etc/vgpu/vgpud.conf; systemctl restart vgpud");
    my $said = host('journalctl -q -u vgpud -o cat -n 20');
    die $said if $said !~ /\[metrics\]: there is no key "port"/;
    host("printf '[slices]\\non-bypass=kil\\n' >/etc/vgpu/vgpud.conf; systemctl restart vgpud", fail => 1);
    my $policy = host('journalctl -q -u vgpud -o cat -n 20');
    die $policy if $policy !~ /cannot read on-bypass=, without which neither vgpud nor vgpu-meter starts/;
    host('rm /etc/vgpu/vgpud.conf; systemctl reset-failed vgpud; systemctl restart vgpud');
    served(':9835');
    metrics();
    my ($line) = $said =~ /(.*\[metrics\].*port.*)/;
    return $line;
});

host("systemctl stop $unit; rm -rf /run/prometheus-test");

done_testing();
