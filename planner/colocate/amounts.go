package colocate

import "math"

// The names of resources that are turned in a way of their own.
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

// DefaultStart is what a new job gets of a capacity: what a step is, and of memory
// 2 GiB, never more than there is. Network and frequency follow from what is free.
func DefaultStart(capacity Amounts) Amounts {
	start := DefaultStep(capacity)
	if v, ok := capacity[ram]; ok {
		start[ram] = math.Min(2*gib, v)
	}
	return start
}

// DefaultStep is what one decision gives or takes: 10% of the CPU time, of the cache, at
// least a way, and of the memory bandwidth, and 100 MiB. It is never more than one core
// (the paper's step, on hosts of 40), which is half of a host of two.
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
