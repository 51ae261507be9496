// Package kubernetes writes to a cluster's own objects what trimtab does and advises.
//
//	what              object                              who reads it
//	events            Event on the workload               people, kubectl describe
//	start values      ConfigMap trimtab-start-values-POOL a MutatingAdmissionPolicy, for pods that begin
//	recommendations   status of VPAs that name trimtab    the updater and admission controller of VPA
//
// Each is off or on by itself, and each needs a right of its own. An [Exporter] takes
// values of the bus with [Exporter.Observe], which never waits, and writes in
// [Exporter.Run], at most once a second and no more than changed.
//
// If an input is stale or missing, the recommendation stays as it is, and its object gets a
// condition. Start values are removed when nothing is known, so that pods begin with what their
// template says.
//
// Source: Kubernetes 1.37 (events.k8s.io/v1, admissionregistration.k8s.io/v1); VPA 1.8.
package kubernetes
