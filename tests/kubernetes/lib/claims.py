# SPDX-License-Identifier: MIT
"""Claims as a scheduler allocates them, and a host with vgpu-kubelet, a fake kubelet, API and vgpud, for tests of the driver."""
import contextlib
import json
import uuid

import fake_api
import fake_kubelet
import host
import tap

CONF = '[kubelet]\nfolder=FOLDER\nnode=node1\nforgotten-after=1\n'
GPU, DEVICE = '0000:41:00.0', 'gpu-0000-41-00-0'
OTHER = 'gpu-0000-42-00-0'
DRIVER = 'gpu.mdev-vgpu.org'


def opaque(source, parameters, requests=(), kind='SliceConfig'):
    return {'source': source, 'requests': list(requests), 'opaque': {'driver': DRIVER, 'parameters': {
        'apiVersion': 'mdev-vgpu.org/v1', 'kind': kind, **parameters}}}


def result(memory='8Gi', compute='30', device=DEVICE, request='gpu', **more):
    return {'request': request, 'driver': DRIVER, 'pool': 'node1', 'device': device, 'shareID': str(uuid.uuid4()),
            'consumedCapacity': {'memory': memory, 'compute': compute}, **more}


def claim(api, *results, name=None, config=()):
    obj = {'metadata': {'namespace': 'team', 'name': name or f'claim-{len(api.claims)}', 'uid': str(uuid.uuid4())},
           'spec': {}, 'status': {'allocation': {'devices': {'results': list(results), 'config': list(config)}}}}
    with api.lock:
        api.claims[obj['metadata']['namespace'], obj['metadata']['name']] = obj
    return obj


def one(driver, obj, **more):
    return driver.prepare(obj, **more)[obj['metadata']['uid']]


def owned(machine, obj):
    return [slice_ for slice_ in machine.slices() if slice_['Owner'] == 'k8s:' + obj['metadata']['uid']]


def taint_of(api, device=DEVICE):
    return [(taint['key'], taint['effect']) for taint in api.devices().get(device, {}).get('taints', [])]


def keep(api, name):
    """What was written, for upstream's own types (upstream/check)."""
    folder = host.TOP / 'build/kubernetes/written'
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f'{name}.json').write_text(json.dumps(api.ours()))


def register(driver):
    try:
        return driver.register()
    except Exception:
        return None


@contextlib.contextmanager
def node():
    """A host with two cards of the pool and one of another: it, its API, and the kubelet's side of the driver."""
    machine = host.Host([host.gpu(0), host.gpu(1), host.gpu(2, Pool='slurm')], CONF)
    api = fake_api.Api(machine.dir)
    api.start()
    machine.configure(CONF + api.conf())
    driver = fake_kubelet.Driver(machine.kubelet)
    machine.start_kubelet_plugin()
    try:
        tap.within(60, lambda: register(driver), 'the kubelet finds the driver')
        yield machine, api, driver
    finally:
        api.stop()
        tap.same(api.problems, [], 'all that was written is valid')
        tap.same(machine.end(), 0, 'it ends when it is told to, without a leak')
