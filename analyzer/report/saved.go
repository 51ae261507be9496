package report

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// SavedLoad is the mean load of one instance, from samples or from spans.
type SavedLoad struct {
	Host     string    `json:"host"`
	Instance string    `json:"instance,omitempty"`
	Spans    bool      `json:"spans,omitempty"`
	Load     float64   `json:"load"`
	At       time.Time `json:"at"`
}

// Save returns the loads of the instances.
func (j *Join) Save() (out []SavedLoad) {
	for _, from := range []struct {
		spans bool
		loads map[instanceID]*meanLoad
	}{{false, j.loads}, {true, j.served.loads}} {
		for _, id := range slices.SortedFunc(maps.Keys(from.loads), instanceID.compare) {
			m := from.loads[id]
			out = append(out, SavedLoad{id.host, id.name, from.spans, m.load, m.at})
		}
	}
	return out
}

// Restore restores what Save returned.
func (j *Join) Restore(all []SavedLoad) error {
	if len(all) > 2*MaxInstances {
		return trimtab.Invalidf("loads of %d instances", len(all))
	}
	loads := map[bool]map[instanceID]*meanLoad{false: {}, true: {}}
	of := map[instanceID]bool{}
	for _, s := range all {
		if !(s.Load >= 0) || math.IsInf(s.Load, 0) || len(s.Host) > 253 || len(s.Instance) > 253 {
			return trimtab.Invalidf("load %v of instance %.40q on host %.40q", s.Load, s.Instance, s.Host)
		}
		id := instanceID{s.Host, s.Instance}
		if loads[s.Spans][id] = (&meanLoad{s.Load, s.At}); s.Spans {
			of[id] = true
		}
	}
	j.loads, j.served = loads[false], served{of: of, loads: loads[true]}
	return nil
}
