// Package kubernetes tells which workload of a cluster spans belong to, whatever name they
// come with.
//
//	k8s.deployment.name, k8s.statefulset.name   the name
//	k8s.pod.uid, k8s.pod.name, k8s.pod.ip       the pod's owners
//	service.name alone                          annotation, labels, then names, only if one fits
//
// A pod belongs to a workload by its owners' references, never by its name: of two
// workloads one may have a name that the other's begins with.
//
// What it says comes from watches, so nobody waits for it. What it does not know it
// says nothing of.
//
// Source: semantic conventions of OpenTelemetry 1.44; Kubernetes 1.37.
package kubernetes
