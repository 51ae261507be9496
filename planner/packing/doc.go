// Package packing says how many nodes pods need:
//
//	N = nodes opened by best fit decreasing
//	L = max over resources of ⌈Σ requests / the most that a node has of it⌉
//
// Pods are taken by their larger share of an average node, the largest first. Each goes where it
// leaves the least room, to nodes that have a pod already before empty ones, of which the largest is
// opened first. Where the nodes that are seen do not suffice, more of the largest kind count. L <= N,
// and with one resource and nodes of one size N <= 11/9 OPT + 6/9.
//
// Left out: affinity, taints, topology, ports, volumes, and that moving a pod replaces it. What
// belongs to each node, such as pods of a DaemonSet, the caller takes from the node.
//
// Source: G. Dósa, "The tight bound of first fit decreasing bin-packing algorithm" (ESCAPE'07), whose
// bound holds for best fit decreasing too; two resources are ours.
package packing
