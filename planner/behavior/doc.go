// Package behavior is the block `behavior` of a HorizontalPodAutoscaler: how fast and
// how steadily a number of replicas may follow what is recommended.
//
//	hold       1 − t_down <= usage/target <= 1 + t_up                       tolerance
//	lo, hi     min of R over the up window, max of R over the down window   stabilisation
//	steady     min(max(current, lo), hi)
//	start(T)   current − added + removed by this autoscaler in the last T
//	up         start + v, or ⌈start · (1 + v/100)⌉                          Pods, Percent
//	down       start − v, or trunc(start · (1 − v/100))
//
// R are the recommendations of a window before they were stabilised, the new one
// included. Of several policies Max takes the one that allows the greatest change,
// Min the one that allows the least, Disabled none.
//
// [State] has what the rules need of the past, as a value that can be stored: the
// controller of Kubernetes keeps it in memory and forgets it when it restarts.
//
// Left out: the controller's cache of metrics, and pods that are too young to count.
//
// Source: Kubernetes 1.37.1, pkg/controller/podautoscaler/horizontal.go and
// replica_calculator.go, pkg/apis/autoscaling/v2/defaults.go and validation.go.
//
//	d := s.Step(now, b, behavior.Bounds{Min: 2, Max: 20}, current, wanted)
//	// once the number was written:
//	s.Changed(now, b, current, d.Replicas)
package behavior
