package view

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantity"
)

// Missing is printed in place of a number that was not measured.
const Missing = "–"

// Number prints three significant digits without an exponent, as people read
// them: 1.2, 0.351, 12400. What is not finite prints as [Missing].
func Number(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return Missing
	case v == 0:
		return "0"
	}
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	s := strconv.FormatFloat(v, 'f', min(digits, 9), 64)
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// Optional prints *p, or [Missing] when p is nil.
func Optional(p *float64) string {
	if p == nil {
		return Missing
	}
	return Number(*p)
}

// Count prints how many there are of something.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// Amount prints an amount with three significant digits, or "unlimited".
func Amount(a trimtab.Amount) string {
	if a.Unlimited {
		return a.String()
	}
	return Number(a.Value)
}

// AmountIn prints an amount in the unit that people use for the resource: bytes
// as MiB or GiB, anything else as its number alone.
func AmountIn(a trimtab.Amount, resource string) string {
	if a.Unlimited || !trimtab.ResourceOf(resource).Bytes {
		return Amount(a)
	}
	if a.Value >= 1<<30 {
		return Number(a.Value/(1<<30)) + " GiB"
	}
	return Number(a.Value/(1<<20)) + " MiB"
}

// Has formats the allocation of a workload, and a pending change; where it has none of the pool's resource,
// that of others.
func Has(r *Row) string {
	switch {
	case r.Allocation == nil && len(r.Others) > 0:
		var all []string
		for _, resource := range slices.Sorted(maps.Keys(r.Others)) {
			all = append(all, resource+" "+AmountIn(r.Others[resource], resource))
		}
		return strings.Join(all, ", ")
	case r.Allocation == nil:
		return Missing
	case r.Pending != nil:
		return Amount(*r.Allocation) + " (" + Amount(*r.Pending) + " pending)"
	}
	return Amount(*r.Allocation)
}

// Load prints the load of a workload, with its age where it is stale.
func Load(r *Row) string {
	if stale := Stale(r.LoadStale, r.LoadAge); stale != "" && r.Load != nil {
		return Number(*r.Load) + " " + stale
	}
	return Optional(r.Load)
}

// Stale says how old a stale figure is, in brackets; nothing of one that counts.
func Stale(stale bool, age *trimtab.Seconds) string {
	if !stale || age == nil {
		return ""
	}
	return "(stale, " + Age(*age) + " old)"
}

// Percent prints a share of 1, with one decimal only next to 100%, where the
// difference counts: 87%, 99.5%.
func Percent(v float64) string {
	p := 100 * v
	switch {
	case math.IsNaN(p) || math.IsInf(p, 0):
		return Missing
	case p >= 99 && p < 100:
		// Never rounded up to all.
		return fmt.Sprintf("%.1f%%", math.Floor(10*p)/10)
	}
	return fmt.Sprintf("%.0f%%", p)
}

// Expected formats the performance that a curve predicts: "95% (93% to 97%)".
func Expected(b *trimtab.Band, share bool) string {
	if b == nil {
		return Missing
	}
	return Performance(&b.Mean, share) + " (" + Performance(&b.Lower, share) + " to " + Performance(&b.Upper, share) + ")"
}

// Latency prints one of the named latencies in milliseconds, or in seconds
// from 1 s on.
func Latency(l map[string]trimtab.Seconds, name string) string {
	s, ok := l[name]
	switch {
	case !ok:
		return Missing
	case s >= 1:
		return Number(float64(s)) + " s"
	case s >= 0.01:
		return fmt.Sprintf("%.0f ms", 1000*float64(s))
	}
	return Number(1000*float64(s)) + " ms"
}

// Age prints how old something is: 0.4 s, 12 s, 3 min, 2 h.
func Age(s trimtab.Seconds) string {
	switch v := float64(s); {
	case v < 0:
		return "0 s"
	case v < 10:
		return fmt.Sprintf("%.1f s", v)
	case v < 120:
		return fmt.Sprintf("%.0f s", v)
	case v < 7200:
		return fmt.Sprintf("%.0f min", v/60)
	case v < 48*3600:
		return fmt.Sprintf("%.0f h", v/3600)
	default:
		return fmt.Sprintf("%.0f d", v/86400)
	}
}

// Clock prints the time of day, in the zone of the process.
func Clock(t time.Time) string {
	if t.IsZero() {
		return Missing
	}
	return t.Local().Format(time.TimeOnly)
}

// Unit returns the word for the unit of a resource.
func Unit(resource string) string { return trimtab.ResourceOf(resource).Unit }

// Sized formats an amount of a resource with its unit: 1 core, 12000 MHz, 2 GiB.
func Sized(v float64, resource string) string {
	r := trimtab.ResourceOf(resource)
	if r.Bytes {
		return AmountIn(trimtab.Units(v), resource)
	}
	number, unit := Number(v), r.Unit
	if number == "1" && (unit == "cores" || unit == "physical cores" || unit == "ways" || unit == "workers") {
		unit = strings.TrimSuffix(unit, "s") // the names of other resources are not ours to change
	}
	return number + " " + unit
}

// Performance prints p as a share of requests, or in the unit of the SLO.
func Performance(p *float64, share bool) string {
	switch {
	case p == nil:
		return Missing
	case share:
		return Percent(*p)
	}
	return Number(*p)
}

// Quantity prints the value of an input with its unit.
func Quantity(in trimtab.Input, resource string, share bool) string {
	if in.Missing != "" {
		return "missing: " + in.Missing
	}
	switch in.Name {
	case "load":
		return Number(in.Value) + " requests/s"
	case "performance":
		return Performance(&in.Value, share)
	case "throttled":
		return Percent(in.Value) + " of periods"
	case string(quantity.Queued):
		return Number(in.Value) + " connections to be accepted"
	case string(quantity.Waited):
		return Number(in.Value) + " of its threads, on average"
	case string(quantity.RunDelay):
		return Percent(in.Value) + " of the time that threads could run"
	case string(quantity.WorkingSet):
		return memoryText(in.Value)
	case "allocation", "usage":
		return Sized(in.Value, resource)
	}
	return Number(in.Value) + counterUnit(quantity.Quantity(in.Name))
}

// counterUnit returns the unit of a performance counter, to follow the number.
func counterUnit(q quantity.Quantity) string {
	switch q {
	case quantity.CPI:
		return " cycles per instruction"
	case quantity.MPKI:
		return " misses per 1,000 instructions"
	case quantity.RPKI:
		return " references per 1,000 instructions"
	case quantity.TaskClock:
		return " cores"
	case quantity.ContextSwitches, quantity.PageFaults, quantity.Migrations:
		return "/s"
	}
	return ""
}
