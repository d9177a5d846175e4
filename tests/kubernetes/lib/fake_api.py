# SPDX-License-Identifier: MIT
"""Kubernetes' API over TLS, for as much of it as vgpu-kubelet uses: claims, ResourceSlices with watches, one node.

A watch begins behind the version that it names and ends at its time, and what is written must be a valid ResourceSlice.
"""
import copy
import http.server
import json
import queue
import re
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse
import uuid

import resource_slice

SLICES = '/apis/resource.k8s.io/v1/resourceslices'
CLAIM = re.compile(r'/apis/resource\.k8s\.io/v1/namespaces/([^/]+)/resourceclaims/([^/]+)$')
TOKEN = 'the-token'


def make_keys(folder):
    """An authority, and the server's certificate for 127.0.0.1."""
    def run(*command):
        subprocess.run(('openssl', *command), cwd=folder, check=True, capture_output=True)
    for name in ('ca', 'other'):
        run('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', name + '.key', '-out', name + '.crt', '-subj', '/CN=' + name,
            '-days', '2')
    run('req', '-newkey', 'rsa:2048', '-nodes', '-keyout', 'api.key', '-out', 'api.csr', '-subj', '/CN=api')
    (folder / 'ext').write_text('subjectAltName=IP:127.0.0.1\n')
    run('x509', '-req', '-in', 'api.csr', '-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-out', 'api.crt', '-days', '2',
        '-extfile', 'ext')
    # As the kubelet has it: certificate and key in one file.
    run('req', '-newkey', 'rsa:2048', '-nodes', '-keyout', 'node.key', '-out', 'node.csr', '-subj', '/O=system:nodes/CN=system:node:node1')
    run('x509', '-req', '-in', 'node.csr', '-CA', 'ca.crt', '-CAkey', 'ca.key', '-out', 'node.crt', '-days', '2')
    (folder / 'node.pem').write_text((folder / 'node.crt').read_text() + (folder / 'node.key').read_text())
    (folder / 'token').write_text(TOKEN + '\n')


def free_port():
    with socket.socket() as one:
        one.bind(('127.0.0.1', 0))
        return one.getsockname()[1]


class Api:
    def __init__(self, folder):
        make_keys(folder)
        self.folder = folder
        self.lock = threading.RLock()
        self.version = 100
        self.slices = {}
        self.claims = {}
        self.events = []
        self.watchers = []
        # Events before this version are forgotten: a watch from there on is answered 410.
        self.oldest = 0
        # As a load balancer that keeps connections whose server is gone: watches have no end, and say nothing.
        self.is_deaf = False
        self.node_uid = 'node-uid'
        # Connections that were made until now are of a certificate that is no longer valid.
        self.expired = set()
        # Somebody changes the next slice that is written, and a watch tells so before the writer has the answer.
        self.interferes = False
        # What was written and is no valid ResourceSlice.
        self.problems = []
        self.reads = self.writes = self.lists = self.watches = 0
        # What the next writes, lists or reads of claims are answered instead: (status, headers).
        self.refuse_writes, self.refuse_reads = [], []
        # Fields that this API does not know, as an older one or one without a feature.
        self.drops = ()
        self.callers = set()
        # It tells nodes nothing of claims that no pod of theirs has.
        self.is_node_authorizer = False
        # Names of claims for which something on the way says that there is no such path.
        self.broken_claims = set()
        self.server = None
        self.connections = []
        self.port = 0

    def start(self):
        api = self

        class Server(http.server.ThreadingHTTPServer):
            allow_reuse_address = True
            daemon_threads = True

            def get_request(self):
                connection, address = super().get_request()
                api.connections.append(connection)
                return connection, address

            def handle_error(self, request, address):
                pass

        class Handler(BaseHandler):
            pass
        Handler.api = api
        self.server = Server(('127.0.0.1', self.port), Handler)
        self.port = self.server.server_address[1]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / 'api.crt', self.folder / 'api.key')
        context.load_verify_locations(self.folder / 'ca.crt')
        context.verify_mode = ssl.CERT_OPTIONAL
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self):
        """As a server that is gone: watches break, and nobody listens."""
        self.server.shutdown()
        self.server.server_close()
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.connections = []
        with self.lock:
            for watcher in self.watchers:
                watcher.put(None)
            self.watchers = []

    def start_http2(self, machine):
        """nghttpx in front of it, which speaks HTTP/2 as a real server does: all calls share a connection. Its port."""
        port = free_port()
        machine.start('nghttpx', 'nghttpx', '--conf=/dev/null', '--single-process', f'--frontend=127.0.0.1,{port}', '--insecure',
                      f'--backend=127.0.0.1,{self.port};;tls;proto=http/1.1', f'--accesslog-file={machine.dir}/http2',
                      '--accesslog-format=$status $request', '--errorlog-file=/dev/stderr', f'{self.folder}/api.key',
                      f'{self.folder}/api.crt')
        return port

    def conf(self, with_token=False, port=None):
        who = f'token-file={self.folder}/token' if with_token else f'certificate={self.folder}/node.pem\nkey={self.folder}/node.pem'
        return f'[api]\nurl=https://127.0.0.1:{port or self.port}\nca={self.folder}/ca.crt\n{who}\n'

    # Objects.

    def tell(self, kind, obj):
        event = {'type': kind, 'object': copy.deepcopy(obj)}
        self.events.append((self.version, event))
        for watcher in self.watchers:
            watcher.put(event)

    def expire(self):
        """The certificate with which all connections were made runs out; the client has another one in the file already."""
        with self.lock:
            self.expired |= set(self.connections)

    def make_node_again(self, uid):
        """The node is deleted and registered again, and what it owned is collected."""
        with self.lock:
            self.node_uid = uid
            self.collect()

    def collect(self):
        for name, one in list(self.slices.items()):
            if any(owner['uid'] != self.node_uid for owner in one['metadata'].get('ownerReferences', [])):
                self.delete(name)

    def store(self, obj, kind):
        self.version += 1
        obj['metadata']['resourceVersion'] = str(self.version)
        for device in obj['spec'].get('devices', []):
            for field in self.drops:
                device.pop(field, None)
            for taint in device.get('taints', []):
                taint.setdefault('timeAdded', '2026-11-25T00:00:00Z')
        obj['metadata'].setdefault('uid', str(uuid.uuid4()))
        self.slices[obj['metadata']['name']] = obj
        self.tell(kind, obj)
        return obj

    def delete(self, name):
        with self.lock:
            obj = self.slices.pop(name)
            self.version += 1
            obj['metadata']['resourceVersion'] = str(self.version)
            self.tell('DELETED', obj)

    def ours(self):
        """The node's slice; None: not one."""
        with self.lock:
            found = [one for one in self.slices.values() if one['spec']['driver'] == 'gpu.mdev-vgpu.org'
                     and one['spec']['nodeName'] == 'node1']
            return copy.deepcopy(found[0]) if len(found) == 1 else None

    def devices(self):
        ours = self.ours()
        return {one['name']: one for one in ours['spec'].get('devices', [])} if ours else {}


class BaseHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    api = None

    def log_message(self, *_args):
        pass

    def answer(self, status, obj, headers=()):
        body = json.dumps(obj).encode()
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status, headers=()):
        self.answer(status, {'kind': 'Status', 'status': 'Failure', 'message': f'refused with {status}', 'code': status}, headers)

    def refuse_claim(self, status, reason, name, message):
        self.answer(status, {'kind': 'Status', 'status': 'Failure', 'reason': reason, 'code': status, 'message': message,
                             'details': {'group': 'resource.k8s.io', 'kind': 'resourceclaims', 'name': name}})

    def is_known(self):
        subject = dict(field[0] for field in (self.connection.getpeercert() or {}).get('subject', ()))
        if self.connection in self.api.expired:
            self.refuse(401)
            return False
        self.api.callers.add(subject.get('commonName') or self.headers.get('Authorization'))
        if self.headers.get('Authorization') == 'Bearer ' + TOKEN or subject.get('commonName') == 'system:node:node1':
            return True
        self.refuse(401)
        return False

    def do_GET(self):
        api, url = self.api, urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if not self.is_known():
            return
        claim = CLAIM.match(url.path)
        with api.lock:
            api.reads += 1
            if api.refuse_reads and not query.get('watch'):
                self.refuse(*api.refuse_reads.pop(0))
                return
            if claim:
                obj = api.claims.get(claim.groups())
                if claim[2] in api.broken_claims:
                    self.refuse(404)
                    return
                if obj is None and api.is_node_authorizer:
                    # Without a pod of the node that has it, a node may not even know whether there is one.
                    self.refuse_claim(403, 'Forbidden', claim[2], "no relationship found between node 'node1' and this object")
                elif obj is None:
                    self.refuse_claim(404, 'NotFound', claim[2], f'resourceclaims "{claim[2]}" not found')
                else:
                    self.answer(200, obj)
                return
            if url.path == '/api/v1/nodes/node1':
                self.answer(200, {'metadata': {'name': 'node1', 'uid': api.node_uid}})
                return
            if url.path != SLICES or query.get('fieldSelector') != 'spec.nodeName=node1,spec.driver=gpu.mdev-vgpu.org':
                self.refuse(404)
                return
            if not query.get('watch'):
                api.lists += 1
                self.answer(200, {'kind': 'ResourceSliceList', 'metadata': {'resourceVersion': str(api.version)}, 'items': [
                    one for one in api.slices.values() if one['spec']['driver'] == 'gpu.mdev-vgpu.org'
                    and one['spec']['nodeName'] == 'node1']})
                return
            version = int(query['resourceVersion'])
            if version < api.oldest:
                self.refuse(410)
                return
            api.watches += 1
            watcher = queue.Queue()
            for at, event in api.events:
                if at > version:
                    watcher.put(event)
            api.watchers.append(watcher)
        self.watch(watcher, time.monotonic() + int(query['timeoutSeconds']))

    def watch(self, watcher, end):
        self.send_response(200)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Transfer-Encoding', 'chunked')
        self.end_headers()
        while True:
            try:
                event = watcher.get(timeout=max(end - time.monotonic(), 0))
            except queue.Empty:
                event = 'end'
            if self.api.is_deaf and event is not None:
                end = time.monotonic() + 3600
                continue
            if event is None:
                self.close_connection = True
                self.connection.close()
                return
            if event == 'end':
                with self.api.lock:
                    if watcher in self.api.watchers:
                        self.api.watchers.remove(watcher)
                self.wfile.write(b'0\r\n\r\n')
                return
            line = json.dumps(event).encode() + b'\n'
            # In two pieces, as the network may have it.
            for piece in (line[:7], line[7:]):
                self.wfile.write(b'%x\r\n%s\r\n' % (len(piece), piece))
                self.wfile.flush()

    def do_write(self, name):
        api = self.api
        body, written = json.loads(self.rfile.read(int(self.headers['Content-Length']))), None
        if not self.is_known():
            return
        with api.lock:
            api.writes += 1
            if api.refuse_writes:
                self.refuse(*api.refuse_writes.pop(0))
                return
            metadata = body['metadata']
            problems = resource_slice.problems_of(body, api.slices.get(name))
            if problems:
                api.problems += problems
                self.answer(422, {'kind': 'Status', 'status': 'Failure', 'message': '; '.join(problems), 'code': 422})
            elif name is None:
                metadata['name'] = metadata.pop('generateName') + f'{api.version:x}'
                written = api.store(body, 'ADDED')
                api.collect()
            elif name not in api.slices:
                self.refuse(404)
            elif api.slices[name]['metadata']['resourceVersion'] != metadata['resourceVersion']:
                self.refuse(409)
            else:
                written = api.store(body, 'MODIFIED')
                api.collect()
            if written:
                written = copy.deepcopy(written)
                interferes, api.interferes = api.interferes, False
                if interferes:
                    changed = copy.deepcopy(written)
                    changed['spec']['devices'] = []
                    api.store(changed, 'MODIFIED')
        if written:
            time.sleep(1 if interferes else 0)
            self.answer(200 if name else 201, written)

    def do_POST(self):
        self.do_write(None)

    def do_PUT(self):
        self.do_write(urllib.parse.urlsplit(self.path).path[len(SLICES) + 1:])
