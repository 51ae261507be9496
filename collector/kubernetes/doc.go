// Package kubernetes finds the workload of spans, metrics and control groups of a cluster.
//
//	input                             key                                      found by
//	spans                             k8s.deployment.name, k8s.statefulset.name  the name
//	spans                             k8s.pod.uid, k8s.pod.name, k8s.pod.ip     the pod's owners
//	cAdvisor, kube-state-metrics      namespace, pod                           the pod's owners
//	cgroups of every driver           pod uid and container id in the path     the pod's owners
//	service.name alone                annotation, labels, then names           the only match
//
// A pod belongs to a workload by its owners' references, never by its name, as the name of one
// workload may begin with another's.
//
// Answers come at once, from watches; an object without a known workload has no answer.
//
// Source: semantic conventions of OpenTelemetry 1.44; Kubernetes 1.37 (kubelet/cm);
// containerd 2.3; CRI-O 1.36.
package kubernetes
