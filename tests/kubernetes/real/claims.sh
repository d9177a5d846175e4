# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Claims of memory and compute by dynamic resource allocation, for real-kubernetes: two pods on one card, a third that
# waits, and the taint of a card that drains. Its functions and variables are used here.
# shellcheck disable=SC2154

devices() { kubectl get resourceslices -o json | jq -e "[.items[].spec | select(.driver == \"gpu.mdev-vgpu.org\") | .devices[]]"; }

claiming_pod() { # NAME
    kubectl apply -f - <<EOF
{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "$1"}, "spec": {"devices": {"requests": [
 {"name": "gpu", "exactly": {"deviceClassName": "vgpu", "capacity": {"requests": {"memory": "$part", "compute": "30"}},
  "selectors": [{"cel": {"expression": "device.attributes['gpu.mdev-vgpu.org'].address == '$address'"}}]}}]}}}
---
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "$1"}, "spec": {"restartPolicy": "Never", "hostNetwork": true,
 "terminationGracePeriodSeconds": 1, "resourceClaims": [{"name": "gpu", "resourceClaimName": "$1"}],
 "containers": [{"name": "main", "image": "$image", "imagePullPolicy": "IfNotPresent", "command": ["sleep", "3600"],
  "resources": {"claims": [{"name": "gpu"}]}}]}}
EOF
}

tainted() { devices | jq -e ".[] | select(.name == \"$device\") | .taints[0].key == \"gpu.mdev-vgpu.org/draining\""; }

claims() {
    local name first
    printf '[kubelet]\nnode=%s\n[api]\nurl=https://127.0.0.1:6443\nca=%s\ncertificate=%s\nkey=%s\n' "$node" "$dir/ca.crt" \
        "$dir/node.crt" "$dir/node.key" >"$conf"
    systemctl restart vgpu-kubelet || bail 'vgpu-kubelet does not start'
    point 'slice: the node has a device of ours' 30 eval 'devices | jq -e "length > 0"' || bail 'journalctl -u vgpu-kubelet'
    kubectl apply -f "$here/../../fleet/kubernetes/conf/deviceclass.yaml" >"$dir/classes.log" 2>&1 || bail "$dir/classes.log"

    # Two fifths of the first device's memory, so that two fit on it and a third does not; on that device only.
    device=$(devices | jq -r '.[0].name')
    bytes=$(devices | jq -r '.[0].capacity.memory.value' | numfmt --from=iec-i)
    address=$(devices | jq -r '.[0].attributes.address.string')
    part=$((bytes * 2 / 5 / 1048576))Mi
    for name in one two three; do claiming_pod $name >>"$dir/pods.log" 2>&1; done
    echo "# three pods of $part and 30 % each on $device"
    point 'two-share: two pods share the card, and vgpud has their slices' 120 eval 'running 2 && slices k8s 2'
    sleep 5
    point 'third-waits: the third waits' 1 running 2
    first=$(kubectl get pods -o json | jq -r '[.items[] | select(.status.phase == "Running")][0].metadata.name')
    kubectl delete pod "$first" --wait=true >/dev/null 2>&1
    kubectl delete resourceclaim "$first" >/dev/null 2>&1
    point 'third-runs: it runs when one has ended, and no slice is left behind' 60 eval 'running 2 && slices k8s 2'
    vgpuctl gpu drain "$address" >/dev/null 2>&1
    point 'taint: a card that drains has a taint within 5 s' 5 tainted
    vgpuctl gpu resume "$address" >/dev/null 2>&1
    kubectl delete pod --all --wait=true --timeout=60s >/dev/null 2>&1
    kubectl delete resourceclaim --all --timeout=60s >/dev/null 2>&1
}
