package resctrl

import (
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/quantity"
)

// event is a quantity that the hardware monitors.
type event struct {
	file     string
	quantity quantity.Quantity
	// rate says that the file is a counter, and the sample its rate.
	rate bool
}

func events() []event {
	return []event{
		{"llc_occupancy", quantity.LLCOccupancy, false},
		{"mbm_total_bytes", quantity.MemBWTotal, true},
		{"mbm_local_bytes", quantity.MemBWLocal, true},
	}
}

// count is the content of one file: bytes, or why there are none.
type count struct {
	bytes   uint64
	missing string
}

// monitors has the counts of one group, by event and cache.
type monitors struct{ counts map[string]map[string]count }

// reading is the monitors of all groups at one time since the host booted.
type reading struct {
	at     time.Duration
	groups map[string]*monitors
}

// value is a sum, or why there is none.
type value struct {
	v       float64
	window  time.Duration
	missing string
}

// of completes a sample.
func (v value) of(s *trimtab.Sample) *trimtab.Sample {
	s.Value, s.Missing, s.Window = v.v, v.missing, trimtab.SecondsOf(v.window)
	return s
}

// whole is the value of all groups together.
func whole(e event, before, after *reading) (sum value) {
	for name := range after.groups {
		v := of(e, name, before, after)
		if v.missing != "" {
			// The least of the reasons, so that the same readings say the same.
			if sum.missing == "" || v.missing < sum.missing {
				sum.missing = v.missing
			}
			continue
		}
		sum.v, sum.window = sum.v+v.v, v.window
	}
	return sum
}

// of is the value of one group: over all its caches, or missing where one is.
func of(e event, group string, before, after *reading) value {
	counts := after.groups[group].counts[e.file]
	if len(counts) == 0 {
		return value{missing: poll.Unreadable}
	}
	var then map[string]count
	window := time.Duration(0)
	if e.rate {
		if before == nil || before.groups[group] == nil {
			return value{missing: poll.First}
		}
		if window = after.at - before.at; window <= 0 {
			return value{missing: poll.Reset}
		}
		then = before.groups[group].counts[e.file]
	}
	out := value{window: window}
	for cache, now := range counts {
		v := part(e, now, then, cache, window)
		if v.missing != "" {
			if out.missing == "" || v.missing < out.missing {
				out.missing = v.missing
			}
			continue
		}
		out.v += v.v
	}
	return out
}

// part is the value of one cache.
func part(e event, now count, then map[string]count, cache string, window time.Duration) value {
	if now.missing != "" {
		return value{missing: now.missing}
	}
	if !e.rate {
		return value{v: float64(now.bytes)}
	}
	was, ok := then[cache]
	switch {
	case !ok || was.missing != "":
		return value{missing: poll.First}
	case now.bytes < was.bytes: // it was reset or wrapped around, so the increase is unknown
		return value{missing: poll.Reset}
	}
	return value{v: float64(now.bytes-was.bytes) / window.Seconds()}
}
