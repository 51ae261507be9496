package contribution

import (
	"maps"
	"slices"
)

// waits is the change of one caller's waiting for one callee.
type waits struct {
	caller, callee string
	visits         float64
	// doubled: the median wait has at least doubled.
	doubled bool
	// growth is that of the median wait, callees that of the callee's own median time, both in
	// seconds.
	growth, callees float64
}

// findStarved returns the callers that are slow to send requests and to read answers: a process
// without a CPU sees late answers from all its callees, although these are as fast as before. So
// the waiting has doubled for all its callees, and grown by more than the callees' own time. With a
// single callee this could also be the callee's fault, unless it has other callers that do not wait
// longer.
func (c *comparison) findStarved() map[string]bool {
	var all []waits
	for _, e := range slices.SortedFunc(maps.Keys(c.timesNow), compareEdges) {
		before, now := c.timesBefore[e], c.timesNow[e]
		if !e.wait || before == nil || before.len() < fewVisits || now.len() < fewVisits {
			continue
		}
		own := e
		own.wait = false
		all = append(all, waits{
			caller: e.caller, callee: e.component, visits: now.sum,
			doubled: now.median() >= twofold*before.median() && now.median() > 0,
			growth:  now.median() - before.median(), callees: c.timesNow[own].median() - c.timesBefore[own].median(),
		})
	}
	return starvedCallers(all)
}

// starvedCallers returns the callers for which the waiting on all edges shows that they are
// starved.
func starvedCallers(all []waits) map[string]bool {
	byCaller, byCallee := map[string][]waits{}, map[string][]waits{}
	for _, w := range all {
		byCaller[w.caller] = append(byCaller[w.caller], w)
		byCallee[w.callee] = append(byCallee[w.callee], w)
	}
	out := map[string]bool{}
	for caller, edges := range byCaller {
		if starved(edges) && (len(edges) > 1 || othersDoNotWait(caller, byCallee[edges[0].callee])) {
			out[caller] = true
		}
	}
	return out
}

// starved reports whether the waiting has doubled on all edges of a caller, and in total has grown
// by more than the time of the callees.
func starved(edges []waits) bool {
	waiting, callees := 0.0, 0.0
	for _, w := range edges {
		if !w.doubled {
			return false
		}
		waiting += w.visits * w.growth
		callees += w.visits * max(0, w.callees)
	}
	return waiting > callees
}

// othersDoNotWait reports whether the callee of edges has other callers, none of which waits
// longer.
func othersDoNotWait(caller string, edges []waits) bool {
	others := 0
	for _, w := range edges {
		if w.caller == caller {
			continue
		}
		if w.doubled {
			return false
		}
		others++
	}
	return others > 0
}
