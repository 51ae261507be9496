package kubernetes

import "time"

// At has a knob believe what time it is.
func (l *Limit) At(now func() time.Time) { l.now = now }

// At has a knob believe what time it is.
func (s *Scale) At(now func() time.Time) { s.now = now }

// SharesOf, PodWeight and ContainerWeight are the formulas.
func SharesOf(cores float64) uint64 { return sharesOf(cores) }

// PodWeight is the kubelet's.
func PodWeight(shares uint64) uint64 { return podWeight(shares) }

// ContainerWeight is the runtime's.
func ContainerWeight(shares uint64) uint64 { return containerWeight(shares) }
