// Package kubernetes sets the number of pods of a workload, and the CPU and memory limits
// of its running pods in place, or the CPU requests of those without a CPU limit.
//
//	knob       written through     expected value        in force when
//	replicas   scale               uid, resourceVersion  that many pods are available
//	cpu        pods/resize         uid, resourceVersion  the kubelet says so, within 10m
//	(request)  pods/resize         uid, resourceVersion  the node keeps it, and no condition says else
//	memory     pods/resize         uid, resourceVersion  the kubelet says so
//
// Each write carries the uid and resourceVersion that the decision was checked against.
// If the object was replaced or changed since, the API server refuses the write (409 or
// 422).
//
// [actuator.Knob].MayWrite refuses, with the name of the other object, if an HPA, a
// ScaledObject or a VPA sets the same value. It also refuses where a container has no
// limit, or request: one that a resize added can be removed only with its pod. Nothing is lowered
// during a rollout. Memory is lowered only where the server can (1.34), without a restart, and while
// it is known how much is in use. A change that would give the pod another QoS class is never
// requested. A container that the kernel killed may be raised before it starts again.
//
// A resize that the node has no room for is undone: at once if the kubelet calls it
// infeasible, after a minute if it is deferred, since the scheduler counts it as used.
//
// At the end of a lease replicas are only raised to their baseline: no pod is removed.
//
// Source: the API of Kubernetes 1.33 to 1.37; KEP-1287 (resize of pods in place).
//
//	kind := kubernetes.Pods(kubernetes.Cluster{Watched: watched})
package kubernetes
