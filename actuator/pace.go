package actuator

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// paced records how often plans come.
type paced struct {
	// made is when the newest plan was made; gap is the time since the one before.
	made time.Time
	gap  time.Duration
}

// note records the time of a plan that is about to be carried out. Another step of the same plan
// changes nothing.
func (s *paced) note(made time.Time, again bool) {
	if !again {
		s.made, s.gap = made, made.Sub(s.made)
	}
}

// stepTime returns how long the writes of one step may take: a sixth of the lease, or less if plans
// come faster, since a plan that comes after a newer one is not carried out at all. The two steps
// of a plan share this time; alone says that the plan has only one.
func (s *paced) stepTime(lease time.Duration, alone bool) time.Duration {
	most := lease / 6
	if s.gap > 0 {
		most = min(most, s.gap)
	}
	if !alone {
		most /= 2
	}
	return most
}

// writesIn returns how many writes fit into a time at a rate of pace per second, at least one.
func writesIn(d time.Duration, pace float64) int { return max(1, int(pace*d.Seconds())) }

// turnsBack returns the baselines to restore in this part, and leaves the others to the next part.
// The knobs that were lowered by the largest ratio come first, since their workloads may need it
// most. A raise comes after reductions that make room for it, as long as there are any, so the sum
// never exceeds the larger of its present and its final value.
func (r *Report) turnsBack(all []undoing) []undoing {
	q, pace := queue{falls: map[string][]*Restored{}, headroom: map[string]float64{}}, 0.0
	waits := map[*Restored]bool{}
	for i := range r.Items {
		it := &r.Items[i]
		if v := all[i].can.Pace; v > 0 && it.Status == "" && !same(it.Found, it.Baseline) {
			pace, waits[it] = v, true
			q.add(it)
		}
	}
	most := writesIn(restorePart, pace)
	if len(waits) <= most {
		return all
	}
	q.sort()
	for range most {
		delete(waits, q.next())
	}
	items, now := make([]Restored, 0, len(all)-len(waits)), make([]undoing, 0, len(all)-len(waits))
	for i, u := range all {
		if !waits[&r.Items[i]] {
			items, now = append(items, r.Items[i]), append(now, u)
		}
	}
	r.Items, r.Left = items, len(waits)
	return now
}

// queue has the baselines to restore: the raises, and the reductions by resource.
type queue struct {
	rises []*Restored
	falls map[string][]*Restored
	// headroom is the capacity that reductions have freed and no raise has taken.
	headroom map[string]float64
}

func (q *queue) add(it *Restored) {
	if it.Baseline.Less(it.Found) {
		q.falls[it.Resource] = append(q.falls[it.Resource], it)
	} else {
		q.rises = append(q.rises, it)
	}
}

// sort puts first the knobs that were lowered by the largest ratio, and the reductions that free
// most.
func (q *queue) sort() {
	lowered := func(it *Restored) float64 { return between(it.Baseline, it.Found) / max(it.Found.Value, slack) }
	slices.SortStableFunc(q.rises, func(x, y *Restored) int { return -cmp.Compare(lowered(x), lowered(y)) })
	for _, falls := range q.falls {
		slices.SortStableFunc(falls, func(x, y *Restored) int {
			return -cmp.Compare(between(x.Found, x.Baseline), between(y.Found, y.Baseline))
		})
	}
}

// next removes and returns the next baseline. The queue must not be empty.
func (q *queue) next() (it *Restored) {
	resource := ""
	if len(q.rises) > 0 {
		it, resource = q.rises[0], q.rises[0].Resource
		if needs := between(it.Baseline, it.Found); len(q.falls[resource]) == 0 || q.headroom[resource] >= needs {
			q.rises, q.headroom[resource] = q.rises[1:], q.headroom[resource]-needs
			return it
		}
	} else {
		for _, resource = range slices.Sorted(maps.Keys(q.falls)) {
			if len(q.falls[resource]) > 0 {
				break
			}
		}
	}
	it, q.falls[resource] = q.falls[resource][0], q.falls[resource][1:]
	q.headroom[resource] += between(it.Found, it.Baseline)
	return it
}

// ranOut leaves to the next part the baselines whose write had not begun when the time was over.
func (r *Report) ranOut() {
	r.Items = slices.DeleteFunc(r.Items, func(it Restored) bool {
		if it.Status == "" {
			r.Left++
		}
		return it.Status == ""
	})
}

// MaxCloseTime is the largest result of CloseTime. A service manager must wait as long before it
// kills the process: see terminationGracePeriodSeconds of the chart.
const MaxCloseTime = 10 * time.Minute

// LeastCloseTime is the result of CloseTime if no knob has a rate limit.
const LeastCloseTime = 10 * time.Second

// CloseTime returns how long Close may take to restore all changed knobs.
func (a *Actuator) CloseTime() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	long := LeastCloseTime
	if a.config.KeepOnStop {
		return long
	}
	for _, h := range a.knobs.all {
		if pace := h.can.Pace; h.entry != nil && pace > 0 {
			long += time.Duration(float64(time.Second) / pace)
		}
	}
	return min(long, MaxCloseTime)
}
