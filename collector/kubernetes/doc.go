// Package kubernetes finds the workload of a cluster that spans belong to.
//
//	k8s.deployment.name, k8s.statefulset.name,
//	k8s.daemonset.name, k8s.rollout.name        the name
//	k8s.pod.uid, k8s.pod.name, k8s.pod.ip       the pod's owners
//	service.name alone                          annotation, labels, then names, if only one fits
//
// A pod belongs to a workload by its owners' references, never by its name, as the name of one
// workload may begin with another's.
//
// Answers come at once, from watches; an object without a known workload has no answer.
//
// Source: semantic conventions of OpenTelemetry 1.44; Kubernetes 1.37.
package kubernetes
