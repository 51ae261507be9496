package prometheus

import (
	"maps"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/metric"
)

// Bounds of the series of refused requests: maxShedding workloads, maxClasses classes of each with
// names of at most maxClassName bytes, and about maxRefusedBytes for all.
const (
	maxShedding, maxClasses, maxClassName = 1000, 17, 64
	maxRefusedBytes                       = 300_000
)

// shedding counts the workloads that have series of refused requests, and about how many bytes
// these have.
type shedding struct{ workloads, bytes int }

// export sets what gates refuse of a workload's requests, and returns how many bytes of series that
// added. A class of which no more is refused falls to 0; while the load is unknown it has no series.
func (s *shedding) export(to *metric.Set, v *trimtab.Estimate, w *workload) (added int) {
	before := s.bytes
	known, values := v.Load != nil && !v.LoadMissing(), map[string]float64{}
	for _, class := range slices.Sorted(maps.Keys(v.Refused)) {
		if n := v.Refused[class]; n > 0 && known {
			if as := s.class(v.Workload, w, class); as != "" {
				values[as] += n
			}
		}
	}
	for _, class := range w.classes {
		if !known {
			to.Forget("trimtab_workload_refused_per_second", v.Workload, class)
			continue
		}
		to.Gauge("trimtab_workload_refused_per_second", v.Workload, class).Set(digits(values[class]))
	}
	return s.bytes - before
}

// class admits a class of a workload and returns the name under which it is exported; "": there is
// no room for it.
func (s *shedding) class(name string, w *workload, class string) string {
	if slices.Contains(w.classes, class) {
		return class
	}
	if len(class) > maxClassName || len(w.classes) >= maxClasses-1 {
		class = other
	}
	if slices.Contains(w.classes, class) {
		return class
	}
	n := len("trimtab_workload_refused_per_second{workload,class}") + value + 8 + len(name) + len(class)
	if len(w.classes) == 0 && s.workloads >= maxShedding || s.bytes+n > maxRefusedBytes {
		return ""
	}
	if len(w.classes) == 0 {
		s.workloads++
	}
	w.classes = append(w.classes, class)
	s.bytes += n
	return class
}
