package analyzer

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// served tells the loads of instances by the requests in whose spans they are named.
// They are counted over intervals in a row until there are enough of them: shares out
// of a handful would be noise, and what is divided by them would move with it. All
// instances are counted over the same time.
//
// An instance that no span names may serve nothing, or its spans may be lost. Nothing
// is concluded from it: an interval in which it should have told, by its share so far,
// does not count. While that goes on no new loads are told, the ones before become
// stale, and then all are taken to serve alike.
type served struct {
	// of are the instances that are counted; counts, since from, the requests of
	// each, which are read spans.
	of     map[instanceID]bool
	counts map[instanceID]float64
	read   float64
	from   time.Time
	loads  map[instanceID]*meanLoad
}

const (
	// mostUnnamed is the share of requests that may be of no instance that is known:
	// of a probe, or one that was just stopped.
	mostUnnamed = 0.01
	// tells is of how many expected requests at least one comes: of λ none does with
	// probability e^-λ.
	tells = 5
)

// serve enters what the spans of an interval that ends at end say of instances.
// What was counted for longer than patience is too little, or one does not tell.
func (j *join) serve(v *interval, s *spans, h *history, begin, end time.Time, patience time.Duration) {
	if h.kept < 2 || !slices.ContainsFunc(v.parts, func(p *trimtab.Sketch) bool { return len(p.Instances) > 0 }) {
		return
	}
	j.look(h)
	j.served.follow(j.there)
	found, sum := j.find(v.parts)
	if sum < (1-mostUnnamed)*s.requests {
		return
	}
	b := &j.served
	if j.silent(h, found, s.read) {
		clear(b.counts)
		return
	}
	if len(b.counts) == 0 || end.Sub(b.from) > patience {
		b.counts, b.read, b.from = map[instanceID]float64{}, 0, begin
	}
	for id, requests := range found {
		b.counts[id] += requests
	}
	if b.read += s.read; b.read < enough*float64(j.readable) {
		return
	}
	for id, readable := range j.there {
		if readable && b.counts[id] == 0 {
			return
		}
	}
	if math.IsInf(total(b.counts), 1) {
		clear(b.counts) // beyond all numbers: no mean would come back from it
		return
	}
	for id, requests := range b.counts {
		weigh(b.loads, id, end, requests/end.Sub(b.from).Seconds())
	}
	clear(b.counts)
}

// silent reports whether an instance tells nothing in whose spans some of the n
// requests should be, by its share so far, or an even one.
func (j *join) silent(h *history, found map[instanceID]float64, n float64) bool {
	loads := j.since(h, j.served.loads, time.Time{})
	sum := total(loads)
	for id, readable := range j.there {
		share := 1 / float64(j.readable)
		if loads != nil {
			share = loads[id] / sum
		}
		if readable && found[id] == 0 && share*n >= tells {
			return true
		}
	}
	return false
}

// follow begins to count anew when there are other instances. A new one changes what
// the others serve, so that nothing of before holds; one that is gone takes its own.
func (b *served) follow(there map[instanceID]bool) {
	if maps.EqualFunc(b.of, there, func(bool, bool) bool { return true }) {
		return
	}
	for id := range there {
		if _, known := b.of[id]; !known {
			b.loads = nil
		}
	}
	if b.loads == nil {
		b.loads = map[instanceID]*meanLoad{}
	}
	maps.DeleteFunc(b.loads, func(id instanceID, _ *meanLoad) bool { _, stays := there[id]; return !stays })
	b.of = there
	clear(b.counts)
}

// find returns the requests of instances that are there, and their sum.
func (j *join) find(parts []*trimtab.Sketch) (found map[instanceID]float64, sum float64) {
	found = map[instanceID]float64{}
	for _, p := range parts {
		for i := range p.Instances {
			l := &p.Instances[i]
			if id, ok := j.match(l); ok {
				found[id] += l.Requests
				sum += l.Requests
			}
		}
	}
	return found, sum
}

// match returns the instance that spans name: the one on their host that its agent
// calls so, else the only one there. Where all are on one host, it need not be named.
func (j *join) match(l *trimtab.InstanceLoad) (instanceID, bool) {
	id := instanceID{host: l.Host}
	if id.host == "" {
		id.host = j.host
	}
	for _, id.name = range l.Names {
		if _, there := j.there[id]; there {
			return id, true
		}
	}
	var alone bool
	id.name, alone = j.alone[id.host]
	return id, alone
}
