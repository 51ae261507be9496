// Package quantity has the names of what samples measure, with their units, and how several values
// of one go together. Collectors report them in trimtab.Sample.
package quantity

// Quantity names what a sample measures.
type Quantity string

// The quantities that collectors report.
const (
	// Load is requests per second.
	Load Quantity = "load"
	// Performance is in the unit of the SLO; higher is better, >= 0.
	Performance Quantity = "performance"
	// Allocation is what the workload was given, in the pool's unit.
	Allocation Quantity = "allocation"
	// Usage is what it used, in the pool's unit.
	Usage Quantity = "usage"
	// Throttled is the share of periods in which a quota stopped it, [0, 1].
	Throttled Quantity = "throttled"
	// Waited is for how many seconds of each second its threads waited for a CPU, added up over
	// threads, and Queued how many connections waited to be accepted: both only of workloads that
	// may wait, at the times of Usage.
	Waited Quantity = "waited"
	Queued Quantity = "queued"
	// Proxy stands for Performance, in its unit, where that is missing.
	Proxy Quantity = "proxy"
	// Latency is a latency in seconds at the quantile that the source names.
	Latency Quantity = "latency"
)

// The quantities of monitors: of the hardware and the kernel below a workload. No estimate is
// made of them; controllers such as the co-location controller read them.
const (
	// LLCOccupancy is what it has in the last-level caches, in bytes.
	LLCOccupancy Quantity = "llc_occupancy"
	// MemBWTotal and MemBWLocal are its memory traffic, in total and with the memory of its own
	// socket, in bytes per second.
	MemBWTotal Quantity = "membw_total"
	MemBWLocal Quantity = "membw_local"
	// PressureCPUSome and those after it are the shares of time, [0, 1], in which some,
	// or all, of its tasks that had something to do waited for a resource.
	PressureCPUSome    Quantity = "pressure_cpu_some"
	PressureCPUFull    Quantity = "pressure_cpu_full"
	PressureMemorySome Quantity = "pressure_memory_some"
	PressureMemoryFull Quantity = "pressure_memory_full"
	PressureIOSome     Quantity = "pressure_io_some"
	PressureIOFull     Quantity = "pressure_io_full"
	// CPI is cycles for each instruction, MPKI misses of the last-level cache for 1,000
	// instructions, and RPKI accesses to it; TaskClock the CPU time that the kernel
	// counted, in cores.
	CPI       Quantity = "cpi"
	MPKI      Quantity = "mpki"
	RPKI      Quantity = "rpki"
	TaskClock Quantity = "task_clock"
	// ContextSwitches, PageFaults and Migrations (to another CPU) are by second.
	ContextSwitches Quantity = "context_switches"
	PageFaults      Quantity = "page_faults"
	Migrations      Quantity = "cpu_migrations"
	// RunDelay is the share of the time that its threads could have run in which they
	// waited for a CPU, [0, 1].
	RunDelay Quantity = "run_delay"
	// Remarks counts properties of its group that make weight and quota act differently than
	// their values say; the sample's Note lists them.
	Remarks Quantity = "remarks"
	// Granted is what a fast loop set on average, in cores, and Stalled the share of the time in
	// which the quota throttled the workload. The analyzer computes them from holdings.
	Granted Quantity = "granted"
	Stalled Quantity = "stalled"
	// WorkingSet is the memory of its control group without the inactive part of the page cache,
	// MemoryUsage all of it, MemoryAnonymous the part that no file backs, MemorySwap what was swapped
	// out, and MemoryLimit the least limit in force, of its own group or of one above, in bytes.
	WorkingSet      Quantity = "working_set"
	MemoryUsage     Quantity = "memory_usage"
	MemoryAnonymous Quantity = "memory_anonymous"
	MemorySwap      Quantity = "memory_swap"
	MemoryLimit     Quantity = "memory_limit"
	// MemoryNeeded is the memory with which a probe found it to do as well as with all that it had
	// during the probe, whose length is the window, in bytes.
	MemoryNeeded Quantity = "memory_needed"
	// Refaults is how many pages per second it read again soon after they were reclaimed.
	Refaults Quantity = "refaults"
	// MemoryHighEvents is how often it was throttled at memory.high since the reading before,
	// MemoryMaxEvents how often it met its limit, OOMEvents how often reclaim was not enough there,
	// and OOMKills how many of its processes the kernel then killed.
	MemoryHighEvents Quantity = "memory_high_events"
	MemoryMaxEvents  Quantity = "memory_max_events"
	OOMEvents        Quantity = "oom_events"
	OOMKills         Quantity = "oom_kills"
	// Power is what a processor package of the host draws, in W, and PowerLimit what it may;
	// Clock the frequency at which CPUs run, in MHz; Sent what an interface sends, in bytes per
	// second, and Bandwidth what it can. The instance names the part of the host.
	Power      Quantity = "power"
	PowerLimit Quantity = "power_limit"
	Clock      Quantity = "clock"
	Sent       Quantity = "sent"
	Bandwidth  Quantity = "bandwidth"
	// GPUUse is how many of its GPUs, or MIG instances, were busy on average; GPUMemory what it
	// has of their memory, and GPUMemoryFree what is left of it, in bytes; GPUPower what they
	// draw, in W. The note says what it has.
	GPUUse        Quantity = "gpu_use"
	GPUMemory     Quantity = "gpu_memory"
	GPUMemoryFree Quantity = "gpu_memory_free"
	GPUPower      Quantity = "gpu_power"
)

// Monitored reports whether the quantity is a monitor's.
func (q Quantity) Monitored() bool {
	switch q {
	case LLCOccupancy, MemBWTotal, MemBWLocal,
		PressureCPUSome, PressureCPUFull, PressureMemorySome, PressureMemoryFull, PressureIOSome, PressureIOFull,
		CPI, MPKI, RPKI, TaskClock, ContextSwitches, PageFaults, Migrations, RunDelay, Remarks,
		WorkingSet, MemoryUsage, MemoryAnonymous, MemorySwap, MemoryLimit, MemoryNeeded, Refaults, MemoryHighEvents, MemoryMaxEvents, OOMEvents, OOMKills,
		Power, PowerLimit, Clock, Sent, Bandwidth, GPUUse, GPUMemory, GPUMemoryFree, GPUPower:
		return true
	}
	return false
}

// Counted reports whether the quantity is a performance counter's, or a substitute.
func (q Quantity) Counted() bool {
	switch q {
	case CPI, MPKI, RPKI, TaskClock, ContextSwitches, PageFaults, Migrations, RunDelay:
		return true
	}
	return false
}

// AddsUp reports whether what instances have of it together is the sum: so it is of
// counts, not of ratios.
func (q Quantity) AddsUp() bool {
	switch q {
	case TaskClock, ContextSwitches, PageFaults, Migrations, Granted:
		return true
	}
	return false
}
