#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""vgpud on the bus, for vgpu-kubelet's tests: a ledger in a file, and GPUs whose properties a test sets.

fake_vgpud.py FILE: a JSON object with "gpus", of address to properties, "slices", a list, and "refusals", how often its GPUs
are not listed. It is written before a call is answered, so a killed vgpud has lost nothing that it has promised.
"""
import json
import os
import re
import sys
import uuid

from gi.repository import Gio, GLib

NAME, ROOT = 'org.mdev_vgpu.Host1', '/org/mdev_vgpu'
PROPERTIES = {'Address': 's', 'Model': 's', 'Uuid': 's', 'PcieRoot': 's', 'Pool': 's', 'Mode': 's', 'Switching': 's',
              'VulkanApi': 's', 'VulkanFeatures': 'as', 'Vram': 't', 'Capacity': 't', 'Flops': 't',
              'MemoryBandwidth': 't', 'NumaNode': 'i', 'Healthy': 'b',
              'HealthReasons': 'as', 'HealthGrade': 's', 'Draining': 'b'}
NAMED = re.compile(r'[A-Za-z0-9][A-Za-z0-9:_.-]{0,59}$')
TYPES = {'quarter': 4, 'half': 2}

GPU_XML = '<interface name="%s.Gpu">%s</interface>' % (NAME, ''.join(
    f'<property name="{name}" type="{kind}" access="read"/>' for name, kind in PROPERTIES.items()))
XML = '<node>' + GPU_XML + '''
<interface name="org.mdev_vgpu.Host1.Manager">
 <method name="CreateSlices"><arg type="aa{sv}" direction="in"/><arg type="aa{sv}" direction="out"/></method>
 <method name="ReleaseOwner"><arg type="s" direction="in"/><arg type="a{sv}" direction="in"/>
  <arg type="a{sv}" direction="out"/></method>
 <method name="GetDoor"><arg type="s" direction="in"/><arg type="a{sv}" direction="out"/></method>
 <method name="FindSlices"><arg type="a{sv}" direction="in"/><arg type="aa{sv}" direction="out"/></method>
 <method name="GetTopology"><arg type="as" direction="out"/><arg type="aas" direction="out"/></method>
</interface>
<interface name="org.freedesktop.DBus.ObjectManager">
 <method name="GetManagedObjects"><arg type="a{oa{sa{sv}}}" direction="out"/></method>
 <signal name="InterfacesAdded"><arg type="o"/><arg type="a{sa{sv}}"/></signal>
 <signal name="InterfacesRemoved"><arg type="o"/><arg type="as"/></signal>
</interface>
<interface name="test.Control">
 <method name="Set"><arg type="s" direction="in"/><arg type="s" direction="in"/></method>
 <method name="Remove"><arg type="s" direction="in"/></method>
 <method name="Use"><arg type="s" direction="in"/><arg type="s" direction="in"/></method>
 <method name="Former"><arg type="s" direction="in"/><arg type="s" direction="in"/></method>
</interface></node>'''


class Refused(Exception):
    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


class Vgpud:
    def __init__(self, path, bus):
        self.path, self.bus = path, bus
        with open(path) as file:
            self.state = json.load(file)
        self.node = Gio.DBusNodeInfo.new_for_xml(XML)
        for path, name in ((ROOT, 'org.freedesktop.DBus.ObjectManager'), (ROOT + '/manager', NAME + '.Manager'),
                           ('/test', 'test.Control')):
            bus.register_object(path, self.node.lookup_interface(name), self.on_call, None, None)
        for address in self.state['gpus']:
            self.register(address)

    def register(self, address):
        self.bus.register_object(self.object_of(address), self.node.lookup_interface(NAME + '.Gpu'), None,
                                 lambda *args: self.value(address, args[4]), None)

    def object_of(self, address):
        return f"{ROOT}/gpu/{address.replace(':', '_').replace('.', '_')}"

    def value(self, address, name):
        return GLib.Variant(PROPERTIES[name], self.state['gpus'][address][name])

    def values(self, address):
        return {NAME + '.Gpu': {name: self.value(address, name) for name in PROPERTIES}}

    def save(self):
        with open(self.path + '.new', 'w') as file:
            json.dump(self.state, file, indent=1)
        os.rename(self.path + '.new', self.path)

    # The ledger.

    def admit(self, wanted):
        gpu = self.state['gpus'].get(wanted['Gpus'][0])
        if not gpu:
            raise Refused('NotFound', f"there is no GPU {wanted['Gpus'][0]}")
        if gpu['Pool'] != wanted.get('Pool'):
            raise Refused('InUse', f"GPU {gpu['Address']} belongs to pool {gpu['Pool']}")
        if not gpu['Healthy']:
            raise Refused('Failed', f"GPU {gpu['Address']} is not healthy")
        vram = wanted.get('Vram') or gpu['Capacity'] // TYPES[wanted['Type']]
        compute = wanted.get('Compute', 100 // TYPES.get(wanted.get('Type'), 1000))
        others = [one for one in self.state['slices'] if one['Gpu'] == gpu['Address']]
        if sum(one['Vram'] for one in others) + vram > gpu['Capacity'] or \
                sum(one['Compute'] for one in others) + compute > 100:
            raise Refused('NoRoom', f"GPU {gpu['Address']} has no room")
        slice_ = {'Uuid': str(uuid.uuid4()), 'Owner': wanted['Owner'], 'Part': wanted['Part'], 'Gpu': gpu['Address'],
                  'Vram': vram, 'Compute': compute, 'Container': '', 'Asked': wanted}
        self.state['slices'].append(slice_)
        return slice_

    def create(self, requests):
        before = list(self.state['slices'])
        made = []
        try:
            if not 1 <= len(requests) <= 64 or len({wanted['Owner'] for wanted in requests}) != 1:
                raise Refused('InvalidArgument', 'one owner, and 1 to 64 requests')
            for wanted in requests:
                if not NAMED.match(wanted['Owner']) or not NAMED.match(wanted['Part']):
                    raise Refused('InvalidArgument', 'Owner and Part have 1 to 60 letters')
                for key in wanted:
                    if key not in ('Owner', 'Part', 'Pool', 'Gpus', 'Type', 'Vram', 'Oversubscribe', 'Compute', 'Cap',
                                   'Priority', 'Class', 'Door', 'Engines', 'Tenant', 'Uid', 'Job'):
                        raise Refused('InvalidArgument', f'there is no key {key}')
                old = [one for one in self.state['slices']
                       if (one['Owner'], one['Part']) == (wanted['Owner'], wanted['Part'])]
                if old and old[0]['Asked'] != wanted:
                    raise Refused('Exists', f"{wanted['Owner']} has another slice {wanted['Part']}")
                made.append(old[0] if old else self.admit(wanted))
        except Refused:
            self.state['slices'] = before
            raise
        self.save()
        return made

    def shown(self, slice_):
        return {'Uuid': GLib.Variant('s', slice_['Uuid']), 'Owner': GLib.Variant('s', slice_['Owner']),
                'Part': GLib.Variant('s', slice_['Part']), 'Gpu': GLib.Variant('s', slice_['Gpu']),
                'Container': GLib.Variant('s', slice_['Container']),
                'Job': GLib.Variant('s', slice_['Asked'].get('Job', ''))}

    # The bus.

    def on_call(self, _bus, _sender, _path, _interface, method, parameters, invocation):
        try:
            invocation.return_value(getattr(self, 'do_' + method)(*parameters.unpack()))
        except Refused as refused:
            invocation.return_dbus_error(f'{NAME}.Error.{refused.kind}', str(refused))

    def do_CreateSlices(self, requests):
        return GLib.Variant('(aa{sv})', ([self.shown(one) for one in self.create(requests)],))

    def do_ReleaseOwner(self, owner, _options):
        self.state['slices'] = [one for one in self.state['slices'] if one['Owner'] != owner]
        self.save()
        return GLib.Variant('(a{sv})', ({},))

    def do_GetDoor(self, slice_):
        if not any(one['Uuid'] == slice_ for one in self.state['slices']):
            raise Refused('NotFound', f'there is no slice {slice_}')
        asked = [one['Asked'] for one in self.state['slices'] if one['Uuid'] == slice_][0]
        if asked.get('Door') == 'vfio':
            return GLib.Variant('(a{sv})', ({'Cdi': GLib.Variant('s', 'mdev-vgpu.org/slice=' + slice_),
                                            'Mdev': GLib.Variant('s', '/sys/bus/mdev/devices/' + slice_)},))
        return GLib.Variant('(a{sv})', ({
            'Cdi': GLib.Variant('s', 'mdev-vgpu.org/slice=' + slice_),
            'Env': GLib.Variant('as', ['VGPU_ON_THE_HOST=1']),
            'ContainerEnv': GLib.Variant('as', ['VGPU_SLICE=' + slice_]),
            'Devices': GLib.Variant('a(ss)', [('/dev/dri/renderD128', '/dev/dri/renderD128')]),
            'Mounts': GLib.Variant('a(sss)', [(f'/run/vgpu/{slice_}', '/run/vgpu/slice', 'ro,nosuid')])},))

    def do_FindSlices(self, _filter):
        return GLib.Variant('(aa{sv})', ([self.shown(one) for one in self.state['slices']],))

    def do_GetTopology(self):
        gpus = sorted(self.state['gpus'])
        word = lambda one, other: 'X' if one == other else self.state['gpus'][one].get('Links', {}).get(other, 'SYS')
        return GLib.Variant('(asaas)', (gpus, [[word(one, other) for other in gpus] for one in gpus]))

    def do_GetManagedObjects(self):
        if self.state.get('refusals'):
            self.state['refusals'] -= 1
            raise Refused('Failed', 'not now')
        return GLib.Variant('(a{oa{sa{sv}}})', ({self.object_of(address): self.values(address)
                                                for address in self.state['gpus']},))

    # For tests: properties, a slice that somebody removes, one that a container uses, and one that an earlier version asked
    # for with another door.

    def do_Set(self, address, properties):
        changed = json.loads(properties)
        if 'Pool' in changed and any(one['Gpu'] == address for one in self.state['slices']):
            raise Refused('InUse', f'an owner has a slice of GPU {address}: drain it first')
        self.state['gpus'][address].update(changed)
        self.save()
        self.bus.emit_signal(None, self.object_of(address), 'org.freedesktop.DBus.Properties', 'PropertiesChanged',
                             GLib.Variant('(sa{sv}as)', (NAME + '.Gpu', {name: self.value(address, name)
                                                                        for name in changed if name in PROPERTIES}, [])))

    def do_Remove(self, slice_):
        self.state['slices'] = [one for one in self.state['slices'] if one['Uuid'] != slice_]
        self.save()

    def do_Use(self, owner, container):
        for one in self.state['slices']:
            if one['Owner'] == owner:
                one['Container'] = container
        self.save()

    def do_Former(self, owner, door):
        for one in self.state['slices']:
            if one['Owner'] == owner:
                one['Asked']['Door'] = door
        self.save()


if __name__ == '__main__':
    bus = Gio.bus_get_sync(Gio.BusType.SYSTEM)
    vgpud = Vgpud(sys.argv[1], bus)
    Gio.bus_own_name_on_connection(bus, NAME, Gio.BusNameOwnerFlags.NONE, None, None)
    GLib.MainLoop().run()
