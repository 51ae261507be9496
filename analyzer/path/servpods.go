package path

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/merge"
)

const (
	// A request within a request of the same workload is not counted. maxAbove is the number of
	// spans above it that are searched for the outer one; maxNested is the largest number of
	// requests of other workloads that it may be within. Each span thus counts in a bounded number
	// of requests, even in a hostile trace.
	maxAbove, maxNested = 64, 8
	// leastClass has latencies up to 0.1 ms, mostClass those above 724 s.
	leastClass, mostClass = -26, 20
)

// classOf returns the class k of a latency in seconds, (2^((k-1)/2), 2^(k/2)].
func classOf(latency float64) int {
	if !(latency > 0) {
		return leastClass
	}
	return max(leastClass, min(mostClass, int(math.Ceil(2*math.Log2(latency)))))
}

// classes has three sums for each class of latency: weight, time on the critical path, and waiting
// time on the critical path, both in seconds. The zero value is empty.
type classes struct {
	first int
	sums  [][3]float64
}

func (c *classes) at(class int) *[3]float64 {
	switch {
	case len(c.sums) == 0:
		c.first = class
	case class < c.first:
		c.sums = slices.Insert(c.sums, 0, make([][3]float64, c.first-class)...)
		c.first = class
	}
	for class-c.first >= len(c.sums) {
		c.sums = append(c.sums, [3]float64{})
	}
	return &c.sums[class-c.first]
}

func (c *classes) add(d *classes) {
	for i, s := range d.sums {
		at := c.at(d.first + i)
		for k, v := range s {
			at[k] += v
		}
	}
}

func (c *classes) sketch() (out []trimtab.TailSum) {
	for i, s := range c.sums {
		if s[0] > 0 {
			out = append(out, trimtab.TailSum{float64(c.first + i), s[0], s[1], s[2]})
		}
	}
	return out
}

// podSum sums up the time of requests in one Servpod.
type podSum struct {
	place placeID
	sums  trimtab.ServpodSketch // without the names and Tail
	tail  classes
}

// callSum sums up the calls of one component to another: their weight, and the callee's own and
// waiting time on the critical path, in seconds.
type callSum struct {
	n, own, wait float64
	tail         classes
}

// servpods has the sums of the Servpods that the requests of one workload visited in one interval.
type servpods struct {
	pods []podSum
	// podOf is, by place, the index in pods plus one.
	podOf []uint16
	calls map[[2]placeID]*callSum
}

// pod returns the sums of a place. Places beyond the limit share one, which is named Other in the
// sketch.
func (s *servpods) pod(place placeID) *podSum {
	if len(s.pods) >= trimtab.MaxSketchServpods-1 && (int(place) >= len(s.podOf) || s.podOf[place] == 0) {
		place = beyond
	}
	if place == beyond {
		if n := len(s.pods); n == 0 || s.pods[n-1].place != beyond {
			s.pods = append(s.pods, podSum{place: beyond})
		}
		return &s.pods[len(s.pods)-1]
	}
	for int(place) >= len(s.podOf) {
		s.podOf = append(s.podOf, 0)
	}
	if s.podOf[place] == 0 {
		s.pods = append(s.pods, podSum{place: place})
		s.podOf[place] = uint16(len(s.pods))
	}
	return &s.pods[s.podOf[place]-1]
}

// beyond stands for all places over MaxSketchServpods.
const beyond = ^placeID(0)

func (s *servpods) call(caller, callee placeID) *callSum {
	key := [2]placeID{caller, callee}
	c := s.calls[key]
	if c == nil && len(s.calls) < trimtab.MaxSketchCalls {
		if s.calls == nil {
			s.calls = map[[2]placeID]*callSum{}
		}
		c = new(callSum)
		s.calls[key] = c
	}
	return c
}

// add adds the sums of t.
func (s *servpods) add(t *servpods) {
	for i := range t.pods {
		x := &t.pods[i]
		pod := s.pod(x.place)
		m, n := &pod.sums, &x.sums
		m.N, m.Sum, m.Square = m.N+n.N, m.Sum+n.Sum, m.Square+n.Square
		m.Latency, m.LatencySquare, m.Cross = m.Latency+n.Latency, m.LatencySquare+n.LatencySquare, m.Cross+n.Cross
		m.Wait, m.Off, m.OffLatency, m.Slack = m.Wait+n.Wait, m.Off+n.Off, m.OffLatency+n.OffLatency, m.Slack+n.Slack
		pod.tail.add(&x.tail)
	}
	keys := slices.SortedFunc(maps.Keys(t.calls), func(a, b [2]placeID) int { return slices.Compare(a[:], b[:]) })
	for _, key := range keys {
		x := t.calls[key]
		if c := s.call(key[0], key[1]); c != nil {
			c.n, c.own, c.wait = c.n+x.n, c.own+x.own, c.wait+x.wait
			c.tail.add(&x.tail)
		}
	}
}

// stay is the time of one request in one Servpod.
type stay struct {
	place                 placeID
	total, wait, slack    time.Duration
	onPath, onPathWaiting time.Duration
}

// contribute sums up where the requests of the loaded trace spent their time. It counts the
// outermost requests of workloads with an SLO.
func (p *Path) contribute() {
	t, begun := &p.tree, false
	for i := range t.nodes {
		n := &t.nodes[i]
		if n.duplicate || n.top != int32(i) || !n.known || n.workload == noWorkload || n.role == innerRole || n.faults&late != 0 ||
			p.places.workloads[n.workload].threshold <= 0 || p.refused(n) || p.nested(n) {
			continue
		}
		if !begun {
			p.visitor.begin(t, p.places)
			begun = true
		}
		p.visitor.visits = p.visitor.visits[:0]
		p.visitor.from(int32(i))
		p.visitor.addStays(&p.sumOf(n).servpods, seconds(n.duration()), float64(n.adjusted))
	}
}

// nested reports whether a node is within another request of its workload, or so deep that this is
// not checked.
func (p *Path) nested(n *node) bool {
	around := 0
	for k, steps := n.up, 0; k != none; k, steps = p.tree.nodes[k].up, steps+1 {
		up := &p.tree.nodes[k]
		if up.role != innerRole && up.workload != noWorkload && p.places.workloads[up.workload].threshold > 0 {
			around++
		}
		if up.workload == n.workload && up.inRequest || steps >= maxAbove || around > maxNested {
			return true
		}
	}
	return false
}

// addStays adds the visits of one request to the sums.
func (v *visitor) addStays(s *servpods, latency, weight float64) {
	v.stays = v.stays[:0]
	class := classOf(latency)
	for i := range v.visits {
		x := &v.visits[i]
		v.stay(x)
		if !x.Called || x.place == nowhere || x.from == nowhere {
			continue
		}
		if c := s.call(v.places.places[x.from].base, v.places.places[x.place].base); c != nil {
			own, wait := inUnits(x.OnPath.Seconds()*weight, timeUnit), inUnits(x.OnPathWait.Seconds()*weight, timeUnit)
			c.n += weight
			c.own += own
			c.wait += wait
			at := c.tail.at(class)
			at[0] += weight
			at[2] += wait
		}
	}
	y, yy := inUnits(latency*weight, timeUnit), inUnits(latency*latency*weight, squareUnit)
	for i := range v.stays {
		x := &v.stays[i]
		pod, total := s.pod(x.place), x.total.Seconds()
		m := &pod.sums
		m.N += weight
		m.Sum += inUnits(total*weight, timeUnit)
		m.Square += inUnits(total*total*weight, squareUnit)
		m.Latency += y
		m.LatencySquare += yy
		m.Cross += inUnits(total*latency*weight, squareUnit)
		m.Wait += inUnits(x.wait.Seconds()*weight, timeUnit)
		if x.onPath+x.onPathWaiting == 0 && x.total > 0 {
			m.Off += weight
			m.OffLatency += y
			m.Slack += inUnits(x.slack.Seconds()*weight, timeUnit)
		}
		at := pod.tail.at(class)
		at[0] += weight
		at[1] += inUnits(x.onPath.Seconds()*weight, timeUnit)
		at[2] += inUnits(x.onPathWaiting.Seconds()*weight, timeUnit)
	}
}

// stay adds a visit to the request's time in the visit's Servpod.
func (v *visitor) stay(x *Visit) {
	var s *stay
	for int(x.place) >= len(v.stayOf) {
		v.stayOf = append(v.stayOf, 0)
	}
	if k := int(v.stayOf[x.place]) - 1; k >= 0 && k < len(v.stays) && v.stays[k].place == x.place {
		s = &v.stays[k]
	} else {
		v.stays = append(v.stays, stay{place: x.place, slack: x.Slack})
		v.stayOf[x.place] = uint32(len(v.stays))
		s = &v.stays[len(v.stays)-1]
	}
	s.total += x.Own + x.Wait
	s.wait += x.Wait
	s.onPath += x.OnPath
	s.onPathWaiting += x.OnPathWait
	s.slack = min(s.slack, x.Slack)
}

// Values are rounded to multiples of 1/timeUnit s (1/squareUnit s²) before they are added.
// Sums of such multiples are exact below 2^53 units, hence the same in any order: see
// quantile.Histogram.
const (
	timeUnit   = 1 << 30
	squareUnit = 1 << 40
)

func inUnits(v, units float64) float64 {
	if v >= (1<<53)/units {
		return v
	}
	return math.RoundToEven(v*units) / units
}

// sketch returns the sums with names. It adds up Servpods that get the same name, such as Other.
func (s *servpods) sketch(p *places) []trimtab.ServpodSketch {
	out := make([]trimtab.ServpodSketch, 0, len(s.pods))
	for i := range s.pods {
		x := &s.pods[i]
		one := x.sums
		one.Component, one.Host = p.servpodOf(x.place)
		one.Peer = p.isPeer(x.place)
		one.Tail = x.tail.sketch()
		out = append(out, one)
	}
	return merge.Servpods(nil, out)
}

// servpodOf returns the component and host of a place.
func (p *places) servpodOf(id placeID) (component, host string) {
	if id == beyond {
		return Other, ""
	}
	var v Visit
	v.locate(p, id)
	return v.Component, v.Host
}

func (s *servpods) sketchCalls(p *places) []trimtab.CallSketch {
	out := make([]trimtab.CallSketch, 0, len(s.calls))
	for key, c := range s.calls {
		one := trimtab.CallSketch{N: c.n, Own: c.own, Wait: c.wait, Tail: c.tail.sketch()}
		one.Caller, _ = p.servpodOf(key[0])
		one.Component, _ = p.servpodOf(key[1])
		out = append(out, one)
	}
	return merge.Calls(nil, out)
}
