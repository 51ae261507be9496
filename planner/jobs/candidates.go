package jobs

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// candidates are the hosts on which speculative tasks may be placed.
type candidates struct {
	config *Config
	hosts  *hosts
	rng    *rand.Rand
	names  []string
	turn   int // index of the next one in turn
}

// usable are the candidates that can take another attempt.
type usable struct {
	hosts []*host
	// turn is the index from which choose looks for a host.
	turn int
	// why there is none
	why string
}

func (c *candidates) usable() usable {
	u := usable{why: "no host is a candidate"}
	heard, free, blocked := 0, 0, ""
	n := len(c.names)
	for k := range n {
		h := c.hosts.byName[c.names[(c.turn+k)%n]]
		if !c.hosts.takes(h) {
			continue
		}
		heard++
		switch {
		case h.blocked != "":
			blocked = h.blocked
		case c.hosts.room(h):
			u.hosts = append(u.hosts, h)
			fallthrough
		default:
			free++
		}
	}
	switch {
	case heard > 0 && free == 0:
		u.why = "all candidates start nothing now, one of them because of: " + blocked
	case heard > 0:
		u.why = "the queues of all candidates are full, or refused tasks just now"
	case n > 0:
		u.why = fmt.Sprintf("none of %d candidates was heard within %v", n, c.config.HostTimeout)
	}
	return u
}

// probes is the largest number of hosts tried for one task.
const probes = 8

// choose returns a host for a task, at random or in turn. It avoids hosts where an attempt at the
// task went wrong, unless it finds no other. nil: no host has room.
func (c *candidates) choose(u *usable, t *task) *host {
	at := -1
	if len(u.hosts) > 0 && c.config.Dispatch == Random {
		u.turn = c.rng.IntN(len(u.hosts))
	}
	for k := range min(probes, len(u.hosts)) {
		i := (u.turn + k) % len(u.hosts)
		if u.hosts[i].size+int(t.size) > maxList {
			continue
		}
		if at < 0 || !t.shuns(u.hosts[i].name) {
			at = i
		}
		if !t.shuns(u.hosts[i].name) {
			break
		}
	}
	if at < 0 {
		return nil
	}
	h := u.hosts[at]
	u.turn = at + 1
	if len(h.live)+1 >= c.config.Here || len(h.live)-h.running+1 >= c.config.Queued { // now full
		u.hosts = slices.Delete(u.hosts, at, at+1)
		u.turn = at
	}
	if c.config.Dispatch == RoundRobin {
		c.turn = (slices.Index(c.names, h.name) + 1) % len(c.names)
	}
	return h
}
