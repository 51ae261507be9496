// Package kubernetes turns the number of pods of a workload, and CPU and memory limits
// of its running pods in place.
//
//	knob       written through     expected value        in force when
//	replicas   scale               uid, resourceVersion  that many pods are available
//	cpu        pods/resize         uid, resourceVersion  the kubelet says so, within 10m
//	memory     pods/resize         uid, resourceVersion  the kubelet says so
//
// The API server compares uid and resourceVersion with what a decision was checked
// against, so what was replaced or changed in between gets no write (409 or 422).
//
// A knob says no ([actuator.Knob].MayWrite), and names the other one, where an HPA, a
// ScaledObject or a VPA turns the same, and where a limit is missing: a limit that a
// resize added can be removed only with its pod. Nothing falls while a rollout runs, and
// memory is never lowered, since the API does not tell what is in use. A change that
// would give the pod another QoS class is never asked for.
//
// What the node has no room for is put back: at once where the kubelet calls it
// infeasible, after a minute where it is deferred, since the scheduler counts it as used.
//
// Replicas are restored upwards only: a plan that ends takes no pod away.
//
// Source: the API of Kubernetes 1.33 to 1.37; KEP-1287 (resize of pods in place).
//
//	kind := kubernetes.Pods(kubernetes.Cluster{Watched: watched})
package kubernetes
