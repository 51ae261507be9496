package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

const (
	// maxChanges is the largest number of remembered changes of one instance, MaxInstances that of
	// instances for one resource of one workload, MaxKept that of all instances.
	maxChanges, MaxInstances, MaxKept = 32, 1000, 50_000
	// Forgotten is how long, in addition to four rounds, an instance that went away is remembered:
	// longer than any report reaches back.
	Forgotten = 10 * time.Minute
	// LeastSilence is the least time after which a host that reports nothing, while others do,
	// counts as lost: the shortest default lease, after which the planner does the same.
	LeastSilence = time.Minute
)

// instanceID identifies one running copy of a workload.
type instanceID struct{ host, name string }

func (a instanceID) compare(b instanceID) int {
	return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.name, b.name))
}

// String returns the instance as text for people.
func (a instanceID) String() string {
	if a.name == "" {
		return "host " + a.host
	}
	return "instance " + a.name + " on host " + a.host
}

// Loads are the loads of all instances of a workload; nil: unknown.
type Loads map[instanceID]float64

// change is the allocation of one instance from the time since on, as reported at the time reportedAt.
type change struct {
	since, reportedAt time.Time
	amount            trimtab.Amount
	// unknown: the knob cannot be read. gone: the instance no longer exists.
	unknown, gone bool
}

// History records, by host and instance, when the allocation of one resource of one workload
// changed.
type History struct {
	resource string
	hosts    []*hostHistory // in order of key
	// kept is the number of remembered instances, mark the number of the last holding.
	kept int
	mark uint64
	// silence is the time after which a host that reports nothing, while others do, counts as lost;
	// 0: never.
	silence time.Duration
	// rollout is when a holding last reported that another version is being rolled out.
	rollout time.Time
	// times and steps are scratch space for During.
	times []time.Time
	steps []step
}

// hostHistory is the history from the holdings with one key, that is of one pool and host.
type hostHistory struct {
	key, host  string
	reportedAt time.Time   // the latest holding
	instances  []*instance // in order of name
	// over: there are more instances than are remembered. rolls: another version is being rolled
	// out, until a holding says otherwise.
	over, rolls bool
	// lost is from when on the host counts as lost; zero: it does not.
	lost time.Time
}

// instance is the history of one instance.
type instance struct {
	name    string
	changes []change // in order of since
	// reportedAt is the time of the latest holding that named it. floor is how much of its knob is in
	// use, with a margin (0: not measured), and most its maximum, both from that holding.
	reportedAt  time.Time
	floor, most float64
	// above is the largest amount that a parent control group allows it; 0: no limit.
	above float64
	// shared: its amount is a share of what a parent control group has. reserves: its amount is a
	// reservation on its node.
	shared, reserves bool
	// mark is the number of the last holding that named it. counted: it counted at the previous
	// time that at was called for.
	mark    uint64
	counted bool
}

// NewHistory returns an empty history of a resource. A host that reports nothing for longer than
// silence, and at least LeastSilence, while others do, counts as lost.
func NewHistory(resource string, silence time.Duration) History {
	return History{resource: resource, silence: max(LeastSilence, silence)}
}

// Observe adds what a holding v says about the workload target. An instance on that host that v does
// not name is gone from then on. room is the number of further instances of all workloads that may
// be remembered. Take returns how many instances it refused.
func (h *History) Observe(v *trimtab.Holding, target string, room *int) (refused uint64) {
	key := v.Key()
	if key != v.Host {
		// This holding replaces those of an older build, which knew no pools.
		h.drop(v.Host, room)
	} else if slices.ContainsFunc(h.hosts, func(x *hostHistory) bool { return x.host == v.Host && x.key != key }) {
		return 0
	}
	at, found := h.find(key)
	var x *hostHistory
	if found {
		x = h.hosts[at]
	} else {
		x = &hostHistory{key: key, host: v.Host}
	}
	h.mark++
	rolls := false
	for k := range v.Targets {
		t := &v.Targets[k]
		if t.Workload != target || t.Resource != h.resource {
			continue
		}
		rolls = rolls || t.Status != nil && t.Status.Rollout
		i, known := x.find(t.Instance)
		if !known {
			if !h.admit(room) {
				refused++
				continue
			}
			i, _ = x.find(t.Instance)
			x.instances = slices.Insert(x.instances, i, &instance{name: t.Instance})
		}
		if in := x.instances[i]; in.mark != h.mark {
			in.mark = h.mark
			in.observe(v.Time, t)
		}
	}
	for _, in := range x.instances {
		if in.mark != h.mark {
			in.add(change{since: v.Time, reportedAt: v.Time, amount: trimtab.Units(0), gone: true})
		}
	}
	if (rolls || x.rolls) && v.Time.After(h.rollout) {
		h.rollout = v.Time // it may have run until now
	}
	if !v.Time.Before(x.reportedAt) {
		x.reportedAt, x.over, x.rolls = v.Time, refused > 0, rolls
	}
	if !found && (len(x.instances) > 0 || x.over && len(h.hosts) < MaxInstances) {
		h.hosts = slices.Insert(h.hosts, at, x)
	}
	return refused
}

func (h *History) find(key string) (int, bool) {
	return slices.BinarySearchFunc(h.hosts, key, func(x *hostHistory, key string) int { return cmp.Compare(x.key, key) })
}

// Knows reports whether holdings with the key, that is of a pool and host, have named instances.
func (h *History) Knows(key string) bool { _, found := h.find(key); return found }

// Keys returns the keys of the holdings that have named instances, sorted.
func (h *History) Keys() (keys []string) {
	for _, x := range h.hosts {
		keys = append(keys, x.key)
	}
	return keys
}

func (x *hostHistory) find(name string) (int, bool) {
	return slices.BinarySearchFunc(x.instances, name, func(in *instance, name string) int { return cmp.Compare(in.name, name) })
}

// admit reports whether one more instance may be remembered. If there are too many, it forgets the
// one that has been gone for longest.
func (h *History) admit(room *int) bool {
	if h.kept >= MaxInstances || *room <= 0 {
		var on *hostHistory
		var oldest *instance
		for _, y := range h.hosts {
			for _, in := range y.instances {
				if in.gone() && (oldest == nil || in.last().since.Before(oldest.last().since)) {
					on, oldest = y, in
				}
			}
		}
		if oldest == nil {
			return false
		}
		on.instances = slices.DeleteFunc(on.instances, func(in *instance) bool { return in == oldest })
		h.kept--
		*room++
	}
	h.kept++
	*room--
	return true
}

// drop forgets the holdings with one key.
func (h *History) drop(key string, room *int) {
	if i, found := h.find(key); found {
		h.kept -= len(h.hosts[i].instances)
		*room += len(h.hosts[i].instances)
		h.hosts = slices.Delete(h.hosts, i, i+1)
	}
}

// Forget drops the instances that went away, and the hosts that were lost, before the given time.
// It keeps the last instance, so that it stays known that none is left.
func (h *History) Forget(before time.Time, room *int) {
	h.lose()
	for i := len(h.hosts) - 1; i >= 0; i-- {
		x := h.hosts[i]
		if !x.lost.IsZero() && x.lost.Before(before) {
			h.drop(x.key, room)
			continue
		}
		x.instances = slices.DeleteFunc(x.instances, func(in *instance) bool {
			if h.kept == 1 || !in.gone() || !in.last().since.Before(before) {
				return false
			}
			h.kept--
			*room++
			return true
		})
		if len(x.instances) == 0 && !x.over {
			h.hosts = slices.Delete(h.hosts, i, i+1)
		}
	}
}

// lose marks the hosts that are lost: they reported nothing for the time silence before the latest
// report of another host.
func (h *History) lose() {
	latest := h.Latest()
	for _, x := range h.hosts {
		x.lost = time.Time{}
		if h.silence > 0 && latest.Sub(x.reportedAt) > h.silence {
			x.lost = x.reportedAt.Add(h.silence)
		}
	}
}

// Latest returns when any host last reported; zero: none has.
func (h *History) Latest() (t time.Time) {
	for _, x := range h.hosts {
		if x.reportedAt.After(t) {
			t = x.reportedAt
		}
	}
	return t
}

// present calls f with every instance that exists by the latest holdings, and whether its knob can
// be read.
func (h *History) present(f func(id instanceID, in *instance, readable bool)) {
	h.lose()
	for _, x := range h.hosts {
		for _, in := range x.instances {
			if x.lost.IsZero() && !in.gone() {
				f(instanceID{x.host, in.name}, in, !in.last().unknown)
			}
		}
	}
}

func (in *instance) last() *change { return &in.changes[len(in.changes)-1] }

func (in *instance) gone() bool { return len(in.changes) > 0 && in.last().gone }

// observe adds what a holding says of the instance.
func (in *instance) observe(at time.Time, t *trimtab.KnobState) {
	since := t.Since
	if since.IsZero() || since.After(at) {
		since = at
	}
	if !at.Before(in.reportedAt) {
		in.reportedAt, in.floor, in.most, in.shared, in.reserves, in.above = at, t.Floor, t.Max, t.Shared, t.Reserves, 0
		if s := t.Status; s != nil && s.Caps {
			in.above = s.Most
		}
	}
	c := change{since: since, reportedAt: at, amount: t.InForce(), unknown: t.Problem != ""}
	if !t.Serves() { // it serves no requests, whatever it has
		c.amount, c.unknown, c.gone = trimtab.Units(0), false, true
	}
	if t.Status != nil {
		c.since = in.standing(c)
	}
	in.add(c)
}

// standing returns the time of change c. If the instance begins or ceases to serve while its knob
// stays the same, that is the time of the holding: KnobState.Since is about the knob only.
func (in *instance) standing(c change) time.Time {
	if len(in.changes) == 0 || in.last().since.Before(c.since) {
		return c.since
	}
	if in.last().gone == c.gone {
		return in.last().since
	}
	return c.reportedAt
}

// add inserts c in order of time. Of two changes at the same time, the one reported later counts.
func (in *instance) add(c change) {
	i, found := slices.BinarySearchFunc(in.changes, c.since, func(x change, since time.Time) int { return x.since.Compare(since) })
	if found {
		if c.reportedAt.After(in.changes[i].reportedAt) {
			in.changes[i] = c
		}
		return
	}
	if i > 0 && in.changes[i-1].same(c) {
		return // the value has not changed
	}
	in.changes = slices.Insert(in.changes, i, c)
	if len(in.changes) > maxChanges {
		in.changes = slices.Delete(in.changes, 0, len(in.changes)-maxChanges)
	}
}

func (c change) same(d change) bool {
	return c.amount == d.amount && c.unknown == d.unknown && c.gone == d.gone
}

// at returns the state at t; false: no holding covers that time.
func (in *instance) at(t time.Time) (change, bool) {
	i, found := slices.BinarySearchFunc(in.changes, t, func(x change, t time.Time) int { return x.since.Compare(t) })
	if found {
		return in.changes[i], true
	}
	if i == 0 {
		return change{}, false
	}
	return in.changes[i-1], true
}
