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

// greatestAmount is the largest valid amount: an exabyte.
const greatestAmount = 1e18

const (
	gib = 1 << 30
	mib = 1 << 20
)

// whole reports whether amounts of a resource are whole numbers.
func whole(resource string) bool { return resource == cores || resource == llc }

// DefaultStart returns the amounts of a new job for a capacity: one step, and 2 GiB of memory,
// never more than the capacity. Network and frequency depend on what is free.
func DefaultStart(capacity Amounts) Amounts {
	start := DefaultStep(capacity)
	if v, ok := capacity[ram]; ok {
		start[ram] = math.Min(2*gib, v)
	}
	return start
}

// DefaultStep returns the amounts that one decision gives or takes: 10% of CPU time, cache (at
// least one way) and memory bandwidth, and 100 MiB of memory. A step of CPU is at most one core,
// the paper's step on hosts of 40 cores; on a host of two that is half.
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
