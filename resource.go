package trimtab

import (
	"math"
	"strconv"
)

// The resources that trimtab has knobs for. A pool may name others.
const (
	CPU     = "cpu"
	Workers = "workers"
	Memory  = "memory"
	// LLC is ways of the last-level cache, MemBW memory bandwidth: percent, or MiB/s
	// where the kernel counts so.
	LLC   = "llc"
	MemBW = "membw"
	// Frequency is the ceiling of the clock of a workload's CPUs, in MHz.
	Frequency = "frequency"
	// Network is what a workload may send, in bytes per second.
	Network = "network"
	// Replicas is the number of pods of a workload.
	Replicas = "replicas"
	// Concurrency is how many requests a workload may have in service at once.
	Concurrency = "concurrency"
	// Rate is how many requests to a workload are admitted per second.
	Rate    = "rate"
	Cores   = "cores"
	Weight  = "weight"
	Running = "running"
	Alive   = "alive"
)

// Resource has the properties of a resource, so that code need not know its name.
type Resource struct {
	Name string
	// Unit is the word behind an amount: "cores".
	Unit string
	// Step is the least amount and difference that a knob can be set to; 0: not
	// known. Where it is 1, people count in whole numbers.
	Step float64
	// Stock: it is needed to store things, at any load: what is in use must not be taken away.
	// Other resources are needed per request.
	Stock bool
	// Bytes: amounts are shown in binary units.
	Bytes bool
	// Rate: it is an amount per second.
	Rate bool
	// Apart: an amount that one workload has takes nothing from others. No capacity bounds the sum, and
	// no pool shares it.
	Apart bool
	// Switch: it is 1 or 0, and nothing runs on 0: it is set for best-effort jobs, and no pool
	// shares it.
	Switch bool
}

// ResourceOf returns the properties of the resource with that name.
func ResourceOf(name string) Resource {
	switch name {
	case CPU: // kernels round a quota below a millicore
		return Resource{Name: name, Unit: "cores", Step: 0.001}
	case Workers, Replicas:
		return Resource{Name: name, Unit: name, Step: 1}
	case Concurrency:
		return Resource{Name: name, Unit: "requests at once", Step: 1, Apart: true}
	case Rate:
		return Resource{Name: name, Unit: "requests/s", Step: 0.001, Apart: true}
	case Memory: // in pages
		return Resource{Name: name, Unit: name, Step: 4096, Stock: true, Bytes: true}
	case LLC:
		return Resource{Name: name, Unit: "ways", Step: 1, Stock: true}
	case MemBW: // the kernel has coarser steps, which differ between CPUs
		return Resource{Name: name, Unit: "% or MiB/s", Step: 1}
	case Frequency:
		return Resource{Name: name, Unit: "MHz", Step: 1}
	case Network:
		return Resource{Name: name, Unit: "bytes/s", Step: 1, Bytes: true, Rate: true}
	case Cores: // whole ones, with all their hardware threads
		return Resource{Name: name, Unit: "physical cores", Step: 1}
	case Weight: // as cpu.weight of version 2 counts, where 100 is the default
		return Resource{Name: name, Unit: "of CPU weight", Step: 1}
	case Running, Alive:
		return Resource{Name: name, Unit: name, Step: 1, Switch: true}
	case "":
		return Resource{Unit: "units"}
	}
	return Resource{Name: name, Unit: name}
}

// Text prints an amount for people: bytes in binary units, "1.5GiB"; others as
// [Amount.String].
func (r Resource) Text(a Amount) string {
	if !r.Bytes || a.Unlimited {
		return a.String()
	}
	v, unit := a.Value, "B"
	for _, larger := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if v < 1024 {
			break
		}
		v, unit = v/1024, larger
	}
	if r.Rate {
		unit += "/s"
	}
	return strconv.FormatFloat(math.Round(v*1000)/1000, 'g', -1, 64) + unit
}

// AmountOf prints an amount of a resource for people.
func AmountOf(resource string, a Amount) string { return ResourceOf(resource).Text(a) }
