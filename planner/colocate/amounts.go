package colocate

import "math"

// The names of resources with rules of their own.
const (
	cpu       = "cpu"
	cores     = "cores"
	llc       = "llc"
	membw     = "membw"
	ram       = "memory"
	frequency = "frequency"
	network   = "network"
)

// greatestAmount bounds every amount: an exabyte.
const greatestAmount = 1e18

const (
	gib = 1 << 30
	mib = 1 << 20
)

// whole reports whether a resource is given in whole numbers.
func whole(resource string) bool { return resource == cores || resource == llc }

// DefaultStart returns what a new job gets of a capacity: one step, and 2 GiB of memory, never
// more than the capacity. Network and frequency follow from what is free.
func DefaultStart(capacity Amounts) Amounts {
	start := DefaultStep(capacity)
	if v, ok := capacity[ram]; ok {
		start[ram] = math.Min(2*gib, v)
	}
	return start
}

// DefaultStep returns what one decision gives or takes: 10% of CPU time, cache (at least one way)
// and memory bandwidth, and 100 MiB of memory. CPU is at most one core (the paper's step, on
// hosts of 40), which is half of a host of two.
func DefaultStep(capacity Amounts) Amounts {
	step := Amounts{}
	for name, v := range capacity {
		switch name {
		case cpu:
			step[name] = math.Min(1, v/10)
		case cores:
			step[name] = 1
		case llc:
			step[name] = math.Max(1, math.Floor(v/10))
		case membw:
			step[name] = v / 10
		case ram:
			step[name] = math.Min(100*mib, v)
		}
	}
	return step
}
