# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Seats by the device plugin, for real-kubernetes: two on one card. Pods have them and compute; the kubelet and
# vgpu-kubelet restart; the card drains. Its functions and variables are used here.
# shellcheck disable=SC2154

# Seats that the scheduler may give away.
allocatable() { [ "$(kubectl get node "$node" -o json | jq -r ".status.allocatable.\"$resource\"")" = "$1" ]; }

# The host's files as volumes of a pod: VOLUMES in JSON.
volumes_json() {
    local volume comma=
    for volume in $volumes; do
        printf '%s{"name": "v%s", "hostPath": {"path": "%s"}}' "$comma" "$(echo "${volume#*:}" | tr -c 'a-z0-9\n' x)" "${volume%:*}"
        comma=', '
    done
}
mounts_json() {
    local volume comma=
    for volume in $volumes; do
        printf '%s{"name": "v%s", "mountPath": "%s", "readOnly": true}' "$comma" "$(echo "${volume#*:}" | tr -c 'a-z0-9\n' x)" "${volume#*:}"
        comma=', '
    done
}

seated_pod() { # NAME COMMAND
    jq -n --arg command "$2" "{apiVersion: \"v1\", kind: \"Pod\", metadata: {name: \"$1\"}, spec: {restartPolicy: \"Never\",
        hostNetwork: true, terminationGracePeriodSeconds: 1, automountServiceAccountToken: false, volumes: [$(volumes_json)],
        containers: [{name: \"main\", image: \"$image\", imagePullPolicy: \"IfNotPresent\", command: [\"sh\", \"-c\", \$command],
            volumeMounts: [$(mounts_json)], resources: {limits: {\"$resource\": \"1\"}}}]}}" | kubectl apply -f -
}

phase_of() { kubectl get pod "$1" -o json | jq -r .status.phase; }
# A container that was started anew would show another time.
started() { kubectl get pods -o json | jq -c '[.items[].status.containerStatuses[]? | .state.running.startedAt // empty]'; }
as_before() { [ "$(started)" = "$since" ] && running 2 && allocatable 2; }

# As the journal says: with cdi=no nobody tells vgpu-kubelet which seats are in use.
give_back() { vgpuctl owner release "k8s-seats:gpu-${address//[:.]/-}" >/dev/null; }

seats() {
    local model resource since first address
    address=$(vgpuctl -o json gpu list | jq -r '[.[] | select(.Pool == "kubernetes")][0].Address')
    model=$(vgpuctl -o json gpu list | jq -r '[.[] | select(.Pool == "kubernetes")][0].Model')
    resource=mdev-vgpu.org/$model-$type
    # containerd before 2 does not read CDI's files by default.
    printf '[kubelet]\nnode=%s\ncdi=no\n[seats %s]\ntype=%s\ncount=2\n' "$node" "$model" "$type" >"$conf"
    systemctl restart vgpu-kubelet || bail 'vgpu-kubelet does not start'
    point 'seats: the node has two' 60 allocatable 2 || bail "journalctl -u vgpu-kubelet; $dir/kubelet.log"

    seated_pod computes "($program) >/dev/termination-log 2>&1" >>"$dir/pods.log" 2>&1
    point 'computes: a pod with a seat runs the program' 300 eval '[ "$(phase_of computes)" = Succeeded ]'
    kubectl get pod computes -o json | jq -r '.status.containerStatuses[0].state.terminated.message // .status' | sed 's/^/# /'
    kubectl delete pod computes --wait=true --timeout=60s >/dev/null 2>&1

    for name in one two three; do seated_pod $name 'sleep 3600' >>"$dir/pods.log" 2>&1; done
    point 'taken: two pods have a seat' 120 running 2
    sleep 5
    point 'waits: the third does not' 1 running 2
    since=$(started)
    kill -KILL "$kubelet"
    wait "$kubelet" 2>/dev/null
    start_kubelet
    sleep 10
    point 'kubelet-restarts: the seats are there, and the pods have not noticed' 120 as_before
    systemctl kill -s KILL vgpu-kubelet
    sleep 2
    point 'plugin-restarts: the same' 120 as_before
    first=$(kubectl get pods -o json | jq -r '[.items[] | select(.status.phase == "Running")][0].metadata.name')
    kubectl delete pod "$first" --wait=true --timeout=60s >/dev/null 2>&1
    point 'freed: the third runs when one has ended' 120 running 2
    vgpuctl gpu drain "$address" >/dev/null 2>&1
    point 'unhealthy: a card that drains has no seat to give, and its pods run' 60 eval 'allocatable 0 && running 2'
    kubectl delete pod --all --wait=true --timeout=60s >/dev/null 2>&1
    give_back
    point 'given-back: when they have ended, vgpud has its slices back by the command in the journal' 120 slices k8s-seats 0
    vgpuctl gpu resume "$address" >/dev/null 2>&1
    point 'resumed: the seats are there again' 60 allocatable 2
    vgpuctl gpu drain "$address" >/dev/null 2>&1
    give_back
    point 'left: drained once more, nothing is left' 60 slices k8s-seats 0
    rm -f "$conf"
    systemctl stop vgpu-kubelet
    vgpuctl gpu resume "$address" >/dev/null 2>&1
}
