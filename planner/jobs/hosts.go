package jobs

import (
	"fmt"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/speculation"
)

// host is a host that reported, or that has an attempt of an earlier manager.
type host struct {
	name string
	// heard: the host has reported to this manager. life and report are the numbers of the newest
	// report; at is when it came.
	heard        bool
	life, report uint64
	at           time.Duration
	// ack is the sequence number of the newest list of this manager that the host carried out.
	// later says that the host follows a manager of a later epoch.
	ack   uint64
	later bool
	// blocked is why the host starts no speculative task; "": it does.
	blocked string
	// deadline is when the leases of all its attempts have certainly expired, by the reports
	// answered so far.
	deadline time.Duration
	timed    bool
	live     []*attempt
	byID     map[speculation.AttemptID]*attempt
	running  int // the live attempts that run
	size     int // upper bound of the size of its list, in bytes
	// foreign are the attempts that the host reported and that are not placed on it.
	foreign map[speculation.AttemptID]bool
	// tries is the number of attempts in a row that the host did not accept. Until hold it gets no
	// speculative attempt.
	tries int
	hold  time.Duration
	// changed says that its list changed; reported says that its report must be answered.
	touched, changed, reported bool
}

// hosts has all known hosts, and makes their lists of attempts.
type hosts struct {
	config   *Config
	clock    *clock
	byName   map[string]*host
	swept    time.Duration // when silent hosts may be removed again
	touched  []*host       // hosts whose lists the next tick checks
	sequence uint64        // number of the newest list
}

// meet returns the host with that name, and creates it if needed.
func (all *hosts) meet(name string) (*host, error) {
	if h := all.byName[name]; h != nil {
		return h, nil
	}
	if len(all.byName) >= all.config.MaxHosts && all.clock.now >= all.swept {
		all.swept = all.clock.now + time.Second
		for name, h := range all.byName {
			if len(h.live) == 0 && all.clock.now-h.at > all.config.HostTimeout && !h.touched {
				delete(all.byName, name)
			}
		}
	}
	if len(all.byName) >= all.config.MaxHosts {
		return nil, fmt.Errorf("report of host %.60q: %d hosts are known: %w", name, len(all.byName), trimtab.ErrRefused)
	}
	h := &host{name: name}
	all.byName[name] = h
	return h, nil
}

// older reports whether a report is older than the last one. After a host was silent for so long
// that nothing runs on it, a lower life is accepted: its clock may have been set back.
func (all *hosts) older(h *host, r *speculation.Machine) bool {
	if r.Life == h.life {
		return r.Report <= h.report
	}
	return r.Life < h.life && (len(h.live) > 0 || all.clock.now-h.at <= sure(all.config.Lease))
}

// takes reports whether a host may get an attempt.
func (all *hosts) takes(h *host) bool {
	return h != nil && h.heard && !h.later && all.clock.now-h.at <= all.config.HostTimeout
}

// room reports whether a host may get another speculative attempt.
func (all *hosts) room(h *host) bool {
	return h.hold <= all.clock.now && len(h.live) < all.config.Here && len(h.live)-h.running < all.config.Queued
}

// touch makes the next tick check a host's list.
func (all *hosts) touch(h *host, changed bool) {
	if !h.touched {
		h.touched = true
		all.touched = append(all.touched, h)
	}
	h.changed = h.changed || changed
	h.reported = h.reported || !changed
}

// watch sets the alarm for the end of the leases on a host.
func (all *hosts) watch(h *host) {
	if !h.timed {
		h.timed = true
		all.clock.wake(alarm{kind: leaseAlarm, host: h}, h.deadline-all.clock.now)
	}
}

// lists returns the lists of all hosts whose list changed or whose report must be answered.
func (all *hosts) lists() []*speculation.Placements {
	var out []*speculation.Placements
	for _, h := range all.touched {
		tells := h.changed || len(h.live) > 0 || len(h.foreign) > 0
		if h.heard && tells && (h.changed || h.reported) {
			out = append(out, all.list(h))
		}
		h.touched, h.changed, h.reported = false, false, false
	}
	all.touched = nil
	return out
}

// list builds the complete list of a host, which renews the leases of the attempts in it.
func (all *hosts) list(h *host) *speculation.Placements {
	all.sequence++
	p := &speculation.Placements{
		Pool: all.config.Pool, Host: h.name, Epoch: all.config.Epoch, Sequence: all.sequence, Time: all.clock.wall,
		Life: h.life, Report: h.report, Lease: trimtab.SecondsOf(all.config.Lease),
	}
	for _, a := range h.live {
		if a.dropped {
			continue
		}
		if a.kill != "" && a.asked == 0 {
			a.asked = all.sequence
		}
		p.Tasks = append(p.Tasks, speculation.Placement{
			AttemptID: a.id, Class: a.class, Priority: a.job.Priority, Spec: a.job.Tasks[a.task].TaskSpec, Kill: a.kill,
		})
	}
	if len(p.Tasks) > 0 {
		h.deadline = max(h.deadline, h.at+sure(all.config.Lease))
	}
	if len(h.live) > 0 {
		all.watch(h)
	}
	return p
}

// enlist adds an attempt to its job and host.
func (a *attempt) enlist() {
	a.job.live = append(a.job.live, a)
	a.host.live = append(a.host.live, a)
	if a.host.byID == nil {
		a.host.byID = map[speculation.AttemptID]*attempt{}
	}
	a.host.byID[a.id] = a
	a.host.size += int(a.of().size)
}

// remove removes an attempt from its job and host.
func (a *attempt) remove() {
	j, t, h := a.job, a.of(), a.host
	if a.runs() {
		j.running--
		h.running--
	}
	a.gone, t.live = true, nil
	h.size -= int(t.size)
	at := slices.Index(h.live, a)
	h.live = slices.Delete(h.live, at, at+1)
	delete(h.byID, a.id)
	last := len(j.live) - 1
	j.live[a.at] = j.live[last]
	j.live[a.at].at = a.at
	j.live[last] = nil
	j.live = j.live[:last]
}
