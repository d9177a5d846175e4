# SPDX-License-Identifier: MIT
"""A kubelet over grpcio, which is gRPC's C core: another implementation than the one that is tested."""
import os
import queue
import sys
import threading
from concurrent import futures

import grpc
import host

sys.path.insert(0, str(host.TOP / 'build/kubernetes/python'))
import deviceplugin_pb2 as plugin      # noqa: E402
import dra_pb2 as dra                  # noqa: E402
import health_pb2 as health_           # noqa: E402
import registration_pb2 as registration  # noqa: E402


def call(channel, path, request, answer, timeout=10):
    return channel.unary_unary(path, type(request).SerializeToString, answer.FromString)(request, timeout=timeout)


class Kubelet:
    """Device plugins: what they register, and what ListAndWatch says."""

    def __init__(self, folder):
        self.dir = folder / 'device-plugins'
        self.dir.mkdir(parents=True, exist_ok=True)
        self.registered = queue.Queue()
        self.server = None
        self.refuse = 0

    def start(self):
        # So does the real one.
        for name in os.listdir(self.dir):
            os.unlink(self.dir / name)
        self.server = grpc.server(futures.ThreadPoolExecutor(4))
        self.server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler('v1beta1.Registration', {
            'Register': grpc.unary_unary_rpc_method_handler(
                self.register, plugin.RegisterRequest.FromString, plugin.Empty.SerializeToString)})])
        self.server.add_insecure_port(f'unix:{self.dir}/kubelet.sock')
        self.server.start()

    def stop(self):
        self.server.stop(None).wait()

    def register(self, request, context):
        if self.refuse:
            self.refuse -= 1
            context.abort(grpc.StatusCode.UNAVAILABLE, 'not now')
        self.registered.put(request)
        return plugin.Empty()


class Watch:
    """ListAndWatch of one plugin, in a thread."""

    def __init__(self, path):
        self.channel = grpc.insecure_channel(f'unix:{path}')
        self.lists = queue.Queue()
        self.last = None
        self.seen = 0
        self.all = []
        self.stream = self.channel.unary_stream('/v1beta1.DevicePlugin/ListAndWatch', plugin.Empty.SerializeToString,
                                                plugin.ListAndWatchResponse.FromString)(plugin.Empty())
        self.ended = threading.Event()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        try:
            for answer in self.stream:
                self.last = {one.ID: one.health for one in answer.devices}
                self.numa = {one.ID: [node.ID for node in one.topology.nodes] for one in answer.devices}
                self.all.append(self.last)
                self.seen += 1
        except grpc.RpcError:
            pass
        self.ended.set()

    def healthy(self):
        return sum(health == 'Healthy' for health in (self.last or {}).values())

    def close(self):
        self.stream.cancel()
        self.channel.close()


class HealthWatch:
    """NodeWatchResources of the driver, in a thread: of device to (health, message), and how often it was said."""

    def __init__(self, channel, version='v1beta1'):
        self.devices, self.said, self.error = None, 0, None
        self.stream = channel.unary_stream(f'/{version}.DRAResourceHealth/NodeWatchResources',
                                           health_.NodeWatchResourcesRequest.SerializeToString,
                                           health_.NodeWatchResourcesResponse.FromString)(health_.NodeWatchResourcesRequest())
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        try:
            for answer in self.stream:
                self.devices = {(one.device.pool_name, one.device.device_name): (health_.HealthStatus.Name(one.health), one.message)
                                for one in answer.devices}
                self.times = [one.last_updated_time for one in answer.devices]
                self.said += 1
        except grpc.RpcError as error:
            self.error = error

    def close(self):
        self.stream.cancel()


def allocate(channel, *containers):
    request = plugin.AllocateRequest(container_requests=[plugin.ContainerAllocateRequest(devices_ids=ids) for ids in containers])
    return call(channel, '/v1beta1.DevicePlugin/Allocate', request, plugin.AllocateResponse).container_responses


class Driver:
    """The kubelet's side of a DRA driver: finds its registration, and calls it."""
    PATH = '/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/'

    def __init__(self, folder):
        self.registry = folder / 'plugins_registry/gpu.mdev-vgpu.org-reg.sock'
        self.channel = None

    def register(self):
        with grpc.insecure_channel(f'unix:{self.registry}') as channel:
            info = call(channel, '/pluginregistration.Registration/GetInfo', registration.InfoRequest(),
                        registration.PluginInfo)
            call(channel, '/pluginregistration.Registration/NotifyRegistrationStatus',
                 registration.RegistrationStatus(plugin_registered=True), registration.RegistrationStatusResponse)
        if self.channel:
            self.channel.close()
        self.channel = grpc.insecure_channel(f'unix:{info.endpoint}')
        return info

    def claims(self, claims):
        return [dra.Claim(namespace=one['metadata']['namespace'], uid=one['metadata']['uid'], name=one['metadata']['name'])
                for one in claims]

    def prepare(self, *claims, timeout=30):
        return call(self.channel, self.PATH + 'NodePrepareResources',
                    dra.NodePrepareResourcesRequest(claims=self.claims(claims)), dra.NodePrepareResourcesResponse,
                    timeout).claims

    def unprepare(self, *claims, timeout=30):
        return call(self.channel, self.PATH + 'NodeUnprepareResources',
                    dra.NodeUnprepareResourcesRequest(claims=self.claims(claims)), dra.NodeUnprepareResourcesResponse,
                    timeout).claims
