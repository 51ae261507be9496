package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/kube"
)

// Rate limits of events, for each workload and for all: the number at once, and the time after
// which one more is allowed.
const (
	burstOfOne = 10
	eachOfOne  = 30 * time.Second
	burstOfAll = 50
	eachOfAll  = time.Second
	// sameFor is the time within which a repeated event is counted with the first one.
	sameFor = 10 * time.Minute
	// maxWaiting bounds events that were not sent yet.
	maxWaiting = 1000
)

// bucket is a token bucket.
type bucket struct {
	left  float64
	since time.Time
}

func (b *bucket) take(now time.Time, burst float64, each time.Duration) bool {
	if b.since.IsZero() {
		b.left = burst
	} else {
		b.left = math.Min(burst, b.left+now.Sub(b.since).Seconds()/each.Seconds())
	}
	b.since = now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// events has the events to be sent, and the recent ones.
type events struct {
	waiting []*event
	// sent has the recent events by their text.
	sent map[string]*event
	all  bucket
	of   map[string]*bucket
}

// event is something that happened to one workload, once or several times.
type event struct {
	kube.Event
	key         string
	count       int
	first, last time.Time
	queued      bool
}

// change is a change by an outcome, on all pods of a workload.
type change struct {
	workload, resource string
	status             trimtab.Status
	up                 bool
	// of names the changed setting of the pods.
	of string
}

// happened makes events of an outcome: one for each workload, resource and direction.
func (e *Exporter) happened(o *trimtab.Outcome) {
	all := map[change][]*trimtab.Result{}
	for i := range o.Results {
		r := &o.Results[i]
		if e.workloads[r.Workload] == nil || r.Status == trimtab.Equal || r.Status == trimtab.Recommended && e.config.Events != AllEvents {
			continue
		}
		status := r.Status
		if status == trimtab.Pending {
			status = trimtab.Written
		}
		c := change{r.Workload, r.Resource, status, r.Asked.Unlimited || r.Asked.Value > r.Before.Value, "limit"}
		if r.Resource == trimtab.CPU && e.requests(r.Workload) {
			c.of = "request"
		}
		all[c] = append(all[c], r)
	}
	order := func(a, b change) int {
		return cmp.Or(cmp.Compare(a.workload, b.workload), cmp.Compare(a.resource, b.resource), cmp.Compare(a.status, b.status))
	}
	for _, c := range slices.SortedFunc(maps.Keys(all), order) {
		s := e.workloads[c.workload]
		x := &event{}
		x.Workload, x.Warning = s.Ref, c.status == trimtab.Refused || c.status == trimtab.Failed
		x.Reason = reasonOf(c)
		why := ""
		if choice := e.newest.Choice(c.workload, c.resource); choice != nil {
			why = choice.Summary
		}
		x.Note = noteOf(c, all[c], why, trimtab.PlanID(o.Epoch, o.Sequence))
		x.key = fmt.Sprint(s.Ref, x.Reason, textOf(c, all[c]))
		e.queue(x)
	}
}

// reasonOf is the word of a change.
func reasonOf(c change) string {
	direction := "Lowered"
	if c.up {
		direction = "Raised"
	}
	switch c.status {
	case trimtab.Recommended:
		return map[string]string{"Lowered": "WouldLower", "Raised": "WouldRaise"}[direction]
	case trimtab.Refused:
		return "ChangeRefused"
	case trimtab.Failed:
		return "ChangeFailed"
	}
	return direction
}

// textOf describes the change, and on how many pods.
func textOf(c change, all []*trimtab.Result) string {
	verb := "lowered"
	if c.up {
		verb = "raised"
	}
	from, to := spread(c.resource, all, func(r *trimtab.Result) trimtab.Amount { return r.Before }), spread(c.resource, all, func(r *trimtab.Result) trimtab.Amount { return r.Asked })
	what := fmt.Sprintf("the number of pods from %s to %s", from, to)
	if c.resource != trimtab.Replicas {
		what = fmt.Sprintf("the %s %s of %s from %s to %s", c.resource, c.of, podsOf(len(all)), from, to)
	}
	why := ""
	if len(all) > 0 && all[0].Reason != "" {
		why = ": " + all[0].Reason
	}
	switch c.status {
	case trimtab.Recommended:
		return fmt.Sprintf("trimtab would have %s %s", verb, what)
	case trimtab.Refused:
		return fmt.Sprintf("trimtab has not %s %s%s", verb, what, why)
	case trimtab.Failed:
		return fmt.Sprintf("trimtab could not have %s %s%s", verb, what, why)
	}
	return fmt.Sprintf("trimtab %s %s", verb, what)
}

func podsOf(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

// spread is the least and the greatest of some amounts, as Kubernetes writes them.
func spread(resource string, all []*trimtab.Result, of func(*trimtab.Result) trimtab.Amount) string {
	text := func(v float64) string {
		if resource == trimtab.Replicas {
			return fmt.Sprint(v)
		}
		return kube.Text(resource, v)
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, r := range all {
		a := of(r)
		if a.Unlimited {
			return "no limit"
		}
		lo, hi = math.Min(lo, a.Value), math.Max(hi, a.Value)
	}
	if a, b := text(lo), text(hi); a != b {
		return a + " to " + b
	}
	return text(lo)
}

// noteOf returns the sentence of an event: the change, the reason, and where to read more.
func noteOf(c change, all []*trimtab.Result, why, plan string) string {
	note := textOf(c, all)
	if why != "" && c.status != trimtab.Refused && c.status != trimtab.Failed {
		note += ": " + why
	}
	return fmt.Sprintf("%.900s (plan %s: trimtab explain %s)", note, plan, c.workload)
}

// queue adds an event, or counts it with an earlier one of the same text.
func (e *Exporter) queue(x *event) {
	q, now := &e.events, e.now()
	x.first, x.last, x.count = now, now, 1
	if q.sent == nil {
		q.sent, q.of = map[string]*event{}, map[string]*bucket{}
	}
	maps.DeleteFunc(q.sent, func(_ string, old *event) bool { return !old.queued && now.Sub(old.last) >= sameFor })
	if old := q.sent[x.key]; old != nil {
		old.count, old.last = old.count+1, now
		x = old
		if x.queued {
			return
		}
	}
	own := x.Workload.String()
	if q.of[own] == nil {
		q.of[own] = &bucket{}
	}
	if len(q.waiting) >= maxWaiting || !q.of[own].take(now, burstOfOne, eachOfOne) {
		e.config.Metrics.Counter("trimtab_kubernetes_written_total", "event", "dropped").Inc()
		return
	}
	x.queued, q.sent[x.key] = true, x
	q.waiting = append(q.waiting, x)
}

// next returns the next event to send, and a copy of it; nil: none may be sent now.
func (e *Exporter) next() (x *event, as event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if q := &e.events; len(q.waiting) > 0 && q.all.take(e.now(), burstOfAll, eachOfAll) {
		x, q.waiting = q.waiting[0], q.waiting[1:]
		x.queued = false
		return x, *x
	}
	return nil, event{}
}

// sendEvents sends the waiting events, within the rate limits.
func (e *Exporter) sendEvents(ctx context.Context, cluster *kube.Cluster) {
	for e.tries("event") {
		x, as := e.next()
		if x == nil {
			return
		}
		err := error(nil)
		if as.Name != "" {
			err = cluster.RepeatEvent(ctx, &as.Event, as.count, as.last)
		} else if of, unknown := cluster.WorkloadOf(as.Workload); unknown == nil {
			as.UID = of.UID
			err = cluster.SendEvent(ctx, &as.Event, as.first)
		} else {
			err = unknown
		}
		if err != nil {
			e.failed("event", err)
			return
		}
		e.mu.Lock()
		x.Name = as.Name
		e.mu.Unlock()
		e.wrote("event")
	}
}
