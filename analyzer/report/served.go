package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// served measures the loads of instances from requests whose spans name the instance. It counts
// over consecutive intervals until there are enough requests: shares from a few requests would be
// noise, which would affect everything that is divided by them. All instances are counted over the
// same time.
//
// An instance that no span names may serve nothing, or its spans may be lost. So nothing is
// concluded from it: an interval in which it should have had spans, by its share so far, does not
// count. While that lasts there are no new loads, the old ones become stale, and finally all
// instances count as serving equal shares.
type served struct {
	// of has the instances that are counted. counts has the requests of each since the time from,
	// and read the number of requests whose spans were read in that time.
	of     map[instanceID]bool
	counts map[instanceID]float64
	read   float64
	from   time.Time
	loads  map[instanceID]*meanLoad
	// missing says why the latest interval gave no loads; "": it did, or no span names an instance.
	missing string
}

const (
	// mostUnnamed is the largest fraction of requests that may belong to no known instance: to a
	// probe, or to an instance that was just stopped.
	mostUnnamed = 0.01
	// tells is the number of expected requests from which on the absence of all means that spans
	// are lost: with λ expected, none comes with probability e^-λ.
	tells = 5
)

// Serve counts the requests of each instance in the spans of an interval that ends at end. If the
// count is not complete after patience, it starts anew: there were too few requests, or an instance
// has no spans.
func (j *Join) Serve(of Sketches, s *Spans, h *History, begin, end time.Time, patience time.Duration) {
	b := &j.served
	b.missing = ""
	if h.kept < 2 || !slices.ContainsFunc(of, func(p *trimtab.Sketch) bool { return len(p.Instances) > 0 }) {
		return
	}
	if j.look(h); j.readable < 2 {
		return
	}
	b.follow(j.there)
	found, stranger, sum := j.find(of)
	if sum < (1-mostUnnamed)*s.Requests {
		b.missing = fmt.Sprintf("%.0f%% of the requests are of no instance that is there", 100*(1-sum/s.Requests)) + stranger
		return
	}
	loads := j.since(h, b.loads, time.Time{})
	whole := total(loads)
	silent := j.first(func(id instanceID) bool {
		share := 1 / float64(j.readable)
		if loads != nil {
			share = loads[id] / whole
		}
		return found[id] == 0 && share*s.Read >= tells
	})
	if silent != "" {
		b.missing = "no span of " + silent
		return
	}
	if len(b.counts) == 0 || end.Sub(b.from) > patience {
		b.counts, b.read, b.from = map[instanceID]float64{}, 0, begin
	}
	for id, requests := range found {
		b.counts[id] += requests
	}
	b.read += s.Read
	j.settle(end)
}

// Missing returns why the spans of the latest interval gave no loads; "": they did, or they name no
// instance.
func (j *Join) Missing() string { return j.served.missing }

// settle computes loads from the counts, once these are large enough.
func (j *Join) settle(end time.Time) {
	b := &j.served
	if want := Enough * float64(j.readable); b.read < want {
		b.missing = fmt.Sprintf("too few requests: %.0f in %v, want %.0f", b.read, end.Sub(b.from).Round(time.Second), want)
		return
	}
	if silent := j.first(func(id instanceID) bool { return b.counts[id] == 0 }); silent != "" {
		b.missing = "no span of " + silent
		return
	}
	if math.IsInf(total(b.counts), 1) {
		clear(b.counts) // overflow: no mean would recover from it
		return
	}
	for id, requests := range b.counts {
		weigh(b.loads, id, end, requests/end.Sub(b.from).Seconds())
	}
	clear(b.counts)
}

// first returns the name of the first instance whose knob can be read and for which is returns
// true; "": there is none.
func (j *Join) first(is func(instanceID) bool) string {
	var least *instanceID
	for id, readable := range j.there {
		if readable && is(id) && (least == nil || id.compare(*least) < 0) {
			least = &id
		}
	}
	if least == nil {
		return ""
	}
	return least.String()
}

// follow restarts the count if the set of instances has changed. A new instance changes the loads
// of all others, so that the old loads are void. If an instance is gone, only its own load is
// dropped.
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

// find returns the requests of existing instances and their sum. stranger is a text with an
// instance in the spans that does not exist, "" if there is none.
func (j *Join) find(parts Sketches) (found map[instanceID]float64, stranger string, sum float64) {
	found = map[instanceID]float64{}
	for _, p := range parts {
		for i := range p.Instances {
			l := &p.Instances[i]
			switch id, ok := j.match(l); {
			case ok:
				found[id] += l.Requests
				sum += l.Requests
			case stranger == "":
				stranger = fmt.Sprintf(", such as %.100q on host %.100q", l.Names, l.Host)
			}
		}
	}
	return found, stranger, sum
}

// match returns the instance that spans name: the one on their host to which the agent gives one of
// the names, or else the only one there. If all instances are on one host, the spans need not name
// it.
func (j *Join) match(l *trimtab.InstanceLoad) (instanceID, bool) {
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
