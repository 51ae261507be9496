package contribution

import (
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/merge"
	"github.com/trimtab/trimtab/quantile"
)

// State is the complete state of a [Live], which outlives the process.
type State struct {
	Last    *SavedSlot   `json:"last,omitempty"`
	Current *SavedSlot   `json:"current,omitempty"`
	Slot    *SavedSlot   `json:"slot,omitempty"`
	Levels  []SavedLevel `json:"levels,omitempty"`
	Beside  []SavedLevel `json:"beside,omitempty"`
	Growth  *SavedGrowth `json:"growth,omitempty"`
}

// SavedSlot is the saved form of a slot, or of a half of the window.
type SavedSlot struct {
	Start    time.Time               `json:"start,omitzero"`
	Requests float64                 `json:"requests"`
	Seconds  float64                 `json:"seconds"`
	Latency  quantile.Histogram      `json:"latency"`
	Servpods []trimtab.ServpodSketch `json:"servpods,omitempty"`
	Calls    []trimtab.CallSketch    `json:"calls,omitempty"`
	Beside   bool                    `json:"beside,omitempty"`
}

// SavedLevel is the saved form of the traffic at one load.
type SavedLevel struct {
	Requests float64            `json:"requests"`
	Seconds  float64            `json:"seconds"`
	Most     float64            `json:"most"`
	Latency  quantile.Histogram `json:"latency"`
	Pods     []SavedPod         `json:"pods,omitempty"`
}

// SavedPod has the sums of one Servpod at that load.
type SavedPod struct {
	Component string `json:"component"`
	Host      string `json:"host,omitempty"`
	Peer      bool   `json:"peer,omitempty"`
	Moments
	Off        float64 `json:"off,omitempty"`
	OffLatency float64 `json:"off_latency,omitempty"`
	Slack      float64 `json:"slack,omitempty"`
}

// SavedGrowth has the traffic with which the tail is compared.
type SavedGrowth struct {
	Recent  []*SavedSlot  `json:"recent,omitempty"`
	Before  *SavedSlot    `json:"before,omitempty"`
	Changed *SavedSlot    `json:"changed,omitempty"`
	Slots   int           `json:"slots"`
	Lasted  int           `json:"lasted,omitempty"`
	Usual   [3][3]float64 `json:"usual"`
}

func (s *slot) save() *SavedSlot {
	if s.seconds == 0 {
		return nil
	}
	return &SavedSlot{s.start, s.requests, s.seconds, *s.latency.Clone(), merge.Servpods(s.servpods, nil), merge.Calls(s.calls, nil), s.beside}
}

func (h *half) save() *SavedSlot {
	return (&slot{start: h.to, requests: h.requests, seconds: h.seconds, latency: h.latency}).save()
}

// State returns the state, as a copy; nil: there was no traffic.
func (l *Live) State() *State {
	if l.current.seconds == 0 && len(l.levels.clusters) == 0 && len(l.beside.clusters) == 0 {
		return nil
	}
	out := &State{Last: l.last.save(), Current: l.current.save(), Slot: l.slot.save(), Levels: l.levels.save(), Beside: l.beside.save()}
	g := &l.growth
	if len(g.recent) == 0 {
		return out
	}
	out.Growth = &SavedGrowth{Before: g.before.save(), Changed: g.changed.save(), Slots: g.slots, Lasted: g.lasted}
	for _, s := range g.recent {
		out.Growth.Recent = append(out.Growth.Recent, s.save())
	}
	for i, u := range g.usual {
		out.Growth.Usual[i] = [3]float64{u.n, u.mean, u.variance}
	}
	return out
}

// load returns the slot; nil gives an empty one. Its errors are trimtab.ErrInvalid.
func (s *SavedSlot) load() (out slot, err error) {
	if s == nil {
		return out, nil
	}
	if !sound(s.Requests, s.Seconds) || s.Requests == 0 || s.Seconds == 0 {
		return out, trimtab.Invalidf("restore contributions: %v requests in %v s", s.Requests, s.Seconds)
	}
	as := trimtab.Sketch{Workload: "restored", From: s.Start, To: s.Start.Add(time.Second), Servpods: s.Servpods, Calls: s.Calls}
	if err := as.Validate(); err != nil {
		return out, err
	}
	for i := range s.Servpods {
		p := &s.Servpods[i]
		if !sound(p.N, p.Sum, p.Square, p.Latency, p.LatencySquare, p.Cross, p.Off, p.OffLatency, p.Slack, p.Wait) {
			return out, trimtab.Invalidf("restore contributions: sums of %.40q are too large", p.Component)
		}
	}
	return slot{s.Start, s.Requests, s.Seconds, *s.Latency.Clone(), merge.Servpods(s.Servpods, nil), merge.Calls(s.Calls, nil), s.Beside}, nil
}

// Restore restores a state. After an error, which is trimtab.ErrInvalid, l is unchanged.
func (l *Live) Restore(s *State) error {
	if s == nil {
		return nil
	}
	out := NewLive(l.objective)
	var halves [3]slot
	for i, x := range []*SavedSlot{s.Last, s.Current, s.Slot} {
		var err error
		if halves[i], err = x.load(); err != nil {
			return err
		}
	}
	out.last = half{halves[0].requests, halves[0].seconds, halves[0].latency, halves[0].start}
	out.current = half{halves[1].requests, halves[1].seconds, halves[1].latency, halves[1].start}
	out.slot = halves[2]
	if err := out.levels.load(s.Levels); err != nil {
		return err
	}
	if err := out.growth.load(s.Growth); err != nil {
		return err
	}
	if err := out.beside.load(s.Beside); err != nil {
		return err
	}
	if len(out.levels.clusters) > 0 || len(out.beside.clusters) > 0 {
		out.profile()
	}
	*l = *out
	return nil
}

func (l *levels) save() (out []SavedLevel) {
	for _, c := range l.clusters {
		s := SavedLevel{Requests: c.requests, Seconds: c.seconds, Most: c.most, Latency: *c.latency.Clone()}
		for _, p := range podsOf(c.pods) {
			m := c.pods[p]
			s.Pods = append(s.Pods, SavedPod{p.component, p.host, !m.sends, m.Moments, m.Off, m.OffLatency, m.Slack})
		}
		out = append(out, s)
	}
	return out
}

func (l *levels) load(saved []SavedLevel) error {
	if len(saved) > maxClusters {
		return trimtab.Invalidf("restore contributions: %d loads, limit %d", len(saved), maxClusters)
	}
	for i := range saved {
		x := &saved[i]
		if !sound(x.Requests, x.Seconds, x.Most) || x.Requests == 0 || x.Seconds == 0 || len(x.Pods) > maxPods {
			return trimtab.Invalidf("restore contributions: load %d: %v requests in %v s, at most %v per second, %d Servpods", i, x.Requests, x.Seconds, x.Most, len(x.Pods))
		}
		c := &cluster{requests: x.Requests, seconds: x.Seconds, most: x.Most, latency: *x.Latency.Clone(), pods: map[pod]*podMoments{}}
		for _, p := range x.Pods {
			if !sound(p.N, p.Sum, p.Square, p.Latency, p.LatencySquare, p.Cross, p.Off, p.OffLatency, p.Slack) || p.Component == "" || len(p.Component) > 253 || len(p.Host) > 253 {
				return trimtab.Invalidf("restore contributions: load %d: Servpod %.40q on host %.40q: want names and finite sums >= 0", i, p.Component, p.Host)
			}
			c.pods[pod{p.Component, p.Host}] = &podMoments{p.Moments, p.Off, p.OffLatency, p.Slack, !p.Peer}
		}
		l.clusters = append(l.clusters, c)
	}
	return nil
}

func (g *growth) load(s *SavedGrowth) (err error) {
	if s == nil {
		return nil
	}
	if len(s.Recent) > nowSlots || s.Slots < 0 || s.Lasted < 0 {
		return trimtab.Invalidf("restore contributions: %d recent slots, %d before, %d since", len(s.Recent), s.Slots, s.Lasted)
	}
	if g.before, err = s.Before.load(); err != nil {
		return err
	}
	if g.changed, err = s.Changed.load(); err != nil {
		return err
	}
	for _, x := range s.Recent {
		one, err := x.load()
		if err != nil {
			return err
		}
		g.recent = append(g.recent, &one)
	}
	for i, u := range s.Usual {
		if !sound(u[0], u[2]) || !sound(max(u[1], -u[1])) {
			return trimtab.Invalidf("restore contributions: usual quantile %v", u)
		}
		g.usual[i] = spread{u[0], u[1], u[2]}
	}
	g.slots, g.lasted = s.Slots, s.Lasted
	g.now = g.compare()
	return nil
}

// sound reports whether sums are small enough that sums of many of them are finite.
func sound(v ...float64) bool {
	for _, x := range v {
		if !(x >= 0 && x <= 1e60) {
			return false
		}
	}
	return true
}
