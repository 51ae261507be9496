// Package kubernetes measures what a trimtab costs that turns all workloads of a large
// cluster: a real API server, etcd and controller manager, kubelets that kwok plays, and
// beside them the program with its default settings. `make bench-kubernetes` runs it.
package kubernetes
