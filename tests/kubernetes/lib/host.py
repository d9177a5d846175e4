# SPDX-License-Identifier: MIT
"""A host with a bus and a fake vgpud of its own, and the vgpu-kubelet that is tested."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import tap
from gi.repository import Gio, GLib

TOP = pathlib.Path(__file__).resolve().parents[3]
HERE = pathlib.Path(__file__).resolve().parent
GIB = 1 << 30

BUS = '''<busconfig><type>session</type><listen>unix:path=%s/bus</listen><policy context="default">
<allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/><allow user="*"/></policy></busconfig>'''


def gpu(number, **changes):
    address = f'0000:{0x41 + number:02x}:00.0'
    return {'Address': address, 'Model': 'a100-80g', 'Uuid': f'GPU-{number}', 'PcieRoot': 'pci0000:40',
            'Pool': 'kubernetes', 'Mode': 'shared', 'Switching': '', 'VulkanApi': '1.4.305', 'VulkanFeatures': ['fp16'],
            'Vram': 80 * GIB, 'Capacity': 80 * GIB, 'Flops': 19491840000000, 'MemoryBandwidth': 2039000000000, 'NumaNode': number % 2, 'Healthy': True, 'HealthReasons': [], 'HealthGrade': 'good',
            'Draining': False, **changes}


class Host:
    def __init__(self, gpus, conf, files=None, refusals=0):
        """With files (of path to text) it is the real vgpud, on a host that has them. Else it refuses so many lists."""
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix='vgpu-kubelet-'))
        self.kubelet = self.dir / 'kubelet'
        self.ledger = self.dir / 'ledger.json'
        self.children = {}
        (self.dir / 'etc/vgpu').mkdir(parents=True)
        (self.dir / 'bus.conf').write_text(BUS % self.dir)
        self.ledger.write_text(json.dumps({'gpus': {one['Address']: one for one in gpus}, 'slices': [],
                                           'refusals': refusals}))
        self.configure(conf)
        os.environ['DBUS_SYSTEM_BUS_ADDRESS'] = f'unix:path={self.dir}/bus'
        os.environ['VGPU_ROOT'] = str(self.dir)
        os.environ['G_DEBUG'] = 'fatal-criticals'
        self.start('bus', 'dbus-daemon', '--nofork', f'--config-file={self.dir}/bus.conf')
        tap.within(10, (self.dir / 'bus').exists)
        if files is None:
            self.start_vgpud()
        else:
            self.start_real_vgpud(files)

    def configure(self, conf):
        (self.dir / 'etc/vgpu/kubernetes.conf').write_text(conf.replace('FOLDER', str(self.kubelet)))

    def start(self, name, *command):
        with open(self.dir / (name + '.log'), 'ab') as log:
            self.children[name] = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def start_vgpud(self):
        self.start('vgpud', sys.executable, str(HERE / 'fake_vgpud.py'), str(self.ledger))
        tap.within(10, self.vgpud_is_there)

    def start_real_vgpud(self, files):
        for path, text in files.items():
            (self.dir / path).parent.mkdir(parents=True, exist_ok=True)
            (self.dir / path).write_text(text)
        if not (self.dir / 'proc').exists():
            (self.dir / 'proc').symlink_to('/proc')
        self.start('vgpud', str(TOP / 'build/host-agent/vgpud'), f'--root={self.dir}')
        tap.within(20, self.vgpud_is_there)

    def start_meter(self):
        """systemd would, for vgpud."""
        self.start('meter', str(TOP / 'build/host-agent/vgpu-meter'), f'--root={self.dir}')

    def start_kubelet_plugin(self, plain=False):
        program = TOP / ('build/kubernetes/vgpu-kubelet' if plain else 'build/kubernetes/asan/vgpu-kubelet')
        self.start('vgpu-kubelet', str(program))

    def vgpud_is_there(self):
        try:
            bus = Gio.bus_get_sync(Gio.BusType.SYSTEM)
            return bus.call_sync('org.freedesktop.DBus', '/', 'org.freedesktop.DBus', 'NameHasOwner',
                                 GLib.Variant('(s)', ('org.mdev_vgpu.Host1',)), None, 0, 2000).unpack()[0]
        except GLib.Error:
            return False

    def control(self, method, *words):
        Gio.bus_get_sync(Gio.BusType.SYSTEM).call_sync(
            'org.mdev_vgpu.Host1', '/test', 'test.Control', method, GLib.Variant('(' + 's' * len(words) + ')', words), None, 0,
            5000)

    def set_gpu(self, address, **properties):
        self.control('Set', address, json.dumps(properties))

    def slices(self):
        """What vgpud has promised, from its file: neither side's word about itself."""
        return json.loads(self.ledger.read_text())['slices']

    def kill(self, name, how=signal.SIGKILL):
        child = self.children.pop(name)
        child.send_signal(how)
        return child.wait(20)

    def log(self, name):
        return (self.dir / (name + '.log')).read_text()

    def end(self):
        """Exit status of vgpu-kubelet, which must have ended by itself when asked to, without a leak."""
        status = self.kill('vgpu-kubelet', signal.SIGTERM) if 'vgpu-kubelet' in self.children else None
        for name in ('meter', 'vgpud', 'bus'):
            if name in self.children:
                self.kill(name)
        if status or tap.failed:
            tap.note(self.log('vgpu-kubelet')[-4000:])
        shutil.rmtree(self.dir)
        return status
