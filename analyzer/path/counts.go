package path

import "math/bits"

// faults is a set of faults of one span.
type faults uint16

// The faults, in the order of faultName.
const (
	negative faults = 1 << iota
	absurd
	selfParent
	cycle
	orphan
	outside
	skewed
	wrongClock
	late
	nFaults = iota
)

// faultName returns the name of fault 1<<i, which is its key in Sketch.Flagged and its label in
// trimtab_path_flagged_spans_total:
//
//	negative      it ends before it starts: its duration is unknown
//	absurd        no time, one before 1970, or a duration over a day: unknown
//	self_parent   it names itself as its parent: it has none
//	cycle         it is its own ancestor: it has no parent
//	orphan        its parent did not come in time, or at all
//	outside       it runs outside its parent, in part or wholly: clipped
//	skewed        a callee outside its caller by another clock: moved inside
//	clock         it ended in our future, or over a minute ago: counted now
//	late          it came after its interval was closed: counted now
func faultName(i int) string {
	return [nFaults]string{"negative", "absurd", "self_parent", "cycle", "orphan", "outside", "skewed", "clock", "late"}[i]
}

// tally counts faults by kind.
type tally [nFaults]uint64

func (t *tally) add(f faults) {
	for ; f != 0; f &= f - 1 {
		t[bits.TrailingZeros16(uint16(f))]++
	}
}

// counts are totals since the start. Always: received = analysed + duplicates + dropped + held.
type counts struct {
	received, analysed, duplicates, dropped uint64
	settled, timedOut, evicted              uint64
	unreadable, unmatched, sketches         uint64
	flagged                                 tally
}

// Counts implements trimtab.Counted.
func (p *Path) Counts(yield func(name string, value float64, labels ...string)) {
	c := &p.counts
	yield("trimtab_path_received_spans_total", float64(c.received))
	yield("trimtab_path_analysed_spans_total", float64(c.analysed))
	yield("trimtab_path_duplicate_spans_total", float64(c.duplicates))
	yield("trimtab_path_dropped_spans_total", float64(c.dropped), "trace_limit")
	yield("trimtab_path_held_spans", float64(p.spans.held()))
	yield("trimtab_path_held_traces", float64(len(p.byTrace)))
	yield("trimtab_path_unmatched_spans_total", float64(c.unmatched))
	yield("trimtab_path_finished_traces_total", float64(c.settled), "settled")
	yield("trimtab_path_finished_traces_total", float64(c.timedOut), "timeout")
	yield("trimtab_path_finished_traces_total", float64(c.evicted), "evicted")
	for i, n := range c.flagged {
		yield("trimtab_path_flagged_spans_total", float64(n), faultName(i))
	}
	yield("trimtab_path_unreadable_frames_total", float64(c.unreadable))
	yield("trimtab_path_sketches_total", float64(c.sketches))
	yield("trimtab_path_workloads", float64(len(p.places.byName)))
	yield("trimtab_path_refused_names_total", float64(p.places.refusedWorkloads), "workload")
	yield("trimtab_path_refused_names_total", float64(p.places.refusedComponents), "component")
	yield("trimtab_path_refused_names_total", float64(p.places.refusedInstances), "instance")
	yield("trimtab_path_refused_names_total", float64(p.places.refusedHosts), "host")
	yield("trimtab_path_refused_names_total", float64(p.places.refusedPeers), "peer")
}
