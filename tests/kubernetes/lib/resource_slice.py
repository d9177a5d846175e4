# SPDX-License-Identifier: MIT
"""What a ResourceSlice of resource.k8s.io/v1 may look like: the fields of Kubernetes 1.36, and its rules for their values."""
import re

LABEL = re.compile(r'[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')
SUBDOMAIN = re.compile(r'[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$')
IDENTIFIER = re.compile(r'[A-Za-z_][A-Za-z0-9_]{0,31}$')
VERSION = re.compile(r'(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$')
QUANTITY = re.compile(r'(\d+)(|Ki|Mi|Gi|Ti)$')
UNITS = {'': 1, 'Ki': 1 << 10, 'Mi': 1 << 20, 'Gi': 1 << 30, 'Ti': 1 << 40}

# Each field and its type; [T] is a list of T, and {'*': T} a map to T.
OWNER = {'apiVersion': str, 'kind': str, 'name': str, 'uid': str, 'controller': bool, 'blockOwnerDeletion': bool}
POLICY = {'default': str, 'validValues': [str], 'validRange': {'min': str, 'max': str, 'step': str}}
DEVICE = {'name': str, 'attributes': {'*': {'int': int, 'bool': bool, 'string': str, 'version': str}},
          'capacity': {'*': {'value': str, 'requestPolicy': POLICY}}, 'allowMultipleAllocations': bool,
          'taints': [{'key': str, 'value': str, 'effect': str, 'timeAdded': str}], 'nodeName': str, 'allNodes': bool}
SLICE = {'apiVersion': str, 'kind': str,
         'metadata': {'name': str, 'generateName': str, 'uid': str, 'resourceVersion': str, 'ownerReferences': [OWNER]},
         'spec': {'driver': str, 'nodeName': str, 'allNodes': bool, 'perDeviceNodeSelection': bool, 'devices': [DEVICE],
                  'pool': {'name': str, 'generation': int, 'resourceSliceCount': int}}}


def check_fields(found, kind, place, problems):
    if isinstance(kind, dict):
        if not isinstance(found, dict):
            problems.append(f'{place}: no object')
            return
        for name, value in found.items():
            if '*' not in kind and name not in kind:
                problems.append(f'{place}.{name}: unknown field')
            else:
                check_fields(value, kind.get(name, kind.get('*')), f'{place}.{name}', problems)
    elif isinstance(kind, list):
        for number, value in enumerate(found):
            check_fields(value, kind[0], f'{place}[{number}]', problems)
    elif type(found) is not kind:
        problems.append(f'{place}: {found!r} is no {kind.__name__}')


def amount(text):
    parts = QUANTITY.match(text)
    return int(parts[1]) * UNITS[parts[2]] if parts else None


def is_qualified(name):
    domain, _, rest = name.rpartition('/')
    return IDENTIFIER.match(rest) and (not domain or SUBDOMAIN.match(domain) and len(domain) <= 63)


def check_capacity(name, capacity, place):
    policy = capacity.get('requestPolicy')
    if amount(capacity['value']) is None:
        yield f'{place}: {capacity["value"]!r} is no amount'
    if not policy:
        return
    values = [policy.get('default', ''), *policy.get('validRange', {}).values()]
    if any(amount(value) is None for value in values):
        yield f'{place}: {values!r} are no amounts'
        return
    range_ = {key: amount(value) for key, value in policy['validRange'].items()}
    if not range_['min'] <= amount(policy['default']) <= range_['max'] <= amount(capacity['value']):
        yield f'{place}: the default is outside of the range, or the range of the value'
    for key in ('default', 'validRange'):
        value = amount(policy['default']) if key == 'default' else range_['max']
        if (value - range_['min']) % range_['step']:
            yield f'{place}: {key} is not a whole number of steps above the least'


def check_device(device):
    place = f"device {device['name']}"
    attributes, capacity = device.get('attributes', {}), device.get('capacity', {})
    if not LABEL.match(device['name']):
        yield f'{place}: no name'
    if len(attributes) + len(capacity) > 32:
        yield f'{place}: more than 32 attributes and capacities'
    for name, value in attributes.items():
        if not is_qualified(name):
            yield f'{place}: {name!r} is no name of an attribute'
        if len(value) != 1:
            yield f'{place}: {name} has {len(value)} values'
        if len(value.get('string', '') + value.get('version', '')) > 64 or value.get('string') == '':
            yield f'{place}: {name} is too long, or empty'
        if 'version' in value and not VERSION.match(value['version']):
            yield f'{place}: {name} is no semantic version'
        if f"gpu.mdev-vgpu.org/{name}" in attributes:
            yield f'{place}: {name} is there twice'
    for name, value in capacity.items():
        yield from check_capacity(name, value, f'{place}: {name}')
    for taint in device.get('taints', []):
        if taint['effect'] not in ('NoSchedule', 'NoExecute', 'None') or not is_qualified(taint['key']):
            yield f'{place}: {taint} is no taint'


def problems_of(slice_, before):
    """Sentences; none: it is valid. @before: what it replaces, or None."""
    problems = []
    check_fields(slice_, SLICE, 'slice', problems)
    if problems:
        return problems
    spec, metadata = slice_['spec'], slice_['metadata']
    devices = spec.get('devices', [])
    if (slice_['apiVersion'], slice_['kind']) != ('resource.k8s.io/v1', 'ResourceSlice'):
        problems.append('another kind of object')
    if len(devices) > (64 if any(device.get('taints') for device in devices) else 128):
        problems.append('too many devices')
    if len({device['name'] for device in devices}) != len(devices):
        problems.append('two devices have one name')
    if spec['pool']['resourceSliceCount'] < 1 or not all(LABEL.match(part) for part in spec['pool']['name'].split('/')):
        problems.append('no valid pool')
    for owner in metadata.get('ownerReferences', []):
        if not all(owner.get(key) for key in ('apiVersion', 'kind', 'name', 'uid')):
            problems.append('an owner lacks a field')
    for device in devices:
        problems += check_device(device)
    if before:
        if any(spec[key] != before['spec'][key] for key in ('driver', 'nodeName')) or \
                spec['pool']['name'] != before['spec']['pool']['name']:
            problems.append('driver, node and pool do not change')
        if spec['pool']['generation'] <= before['spec']['pool']['generation']:
            problems.append('the generation is not higher')
    elif not LABEL.match(metadata['generateName'].rstrip('-').replace('.', '-')[:60]):
        problems.append('no valid prefix of a name')
    return problems
