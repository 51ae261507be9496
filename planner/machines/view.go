package machines

import (
	"fmt"
	"time"

	"github.com/trimtab/trimtab"
)

// View is a job manager's copy of the list and the candidates.
//
// Messages may be lost, repeated, or reordered. Each contains everything but the names, so that
// only the newest counts: after it the view has exactly the aggregator's candidates, or
// [View.MustAsk].
type View struct {
	timeout time.Duration
	heard   time.Time
	// newest is the newest message, with the list that is needed. Its life is 0 before the first.
	newest message
	// list and ids are the newest list that has arrived; life 0: none.
	list list
	ids  []string
	// named are the candidates' names, made when a caller first asks for them.
	named []string
}

// NewView returns an empty view. After timeout without a message its candidates expire, and a
// message of an earlier life is accepted: the aggregator's clock may have been set back.
func NewView(timeout time.Duration) (*View, error) {
	if timeout <= 0 {
		return nil, trimtab.Invalidf("make view: time-out %v: want > 0", timeout)
	}
	return &View{timeout: timeout}, nil
}

// Receive applies one message that arrived at now: candidates, or a full one. trimtab.ErrInvalid
// and trimtab.ErrStale (it is older than the newest) mean that nothing changed.
func (v *View) Receive(now time.Time, b []byte) error {
	m, err := decode(b)
	if err != nil {
		return fmt.Errorf("receive candidates: %w", err)
	}
	if m.kind == kindRequest || m.list.life == 0 {
		return trimtab.Invalidf("receive candidates: %v: want candidates, of a life > 0", m)
	}
	if m.overtaken(&v.newest, v.fresh(now)) {
		return fmt.Errorf("receive candidates: %v, after life %d, ver_c %d: %w", m, v.newest.list.life, v.newest.version, trimtab.ErrStale)
	}
	v.heard, v.named = now, nil
	if m.kind == kindFull {
		v.list, v.ids, m.ids = m.list, m.ids, nil
	}
	v.newest = *m
	return nil
}

// overtaken reports whether m is older than as. ver_c increases within a life of the aggregator; a
// later life has a larger number, which counts as long as messages of it still arrive.
func (m *message) overtaken(as *message, heard bool) bool {
	if m.list.life == as.list.life {
		return m.version < as.version
	}
	return heard && m.list.life < as.list.life
}

// fresh reports whether a message came within the time-out. A time before the last one means that
// the clock was set back.
func (v *View) fresh(now time.Time) bool {
	age := now.Sub(v.heard)
	return v.newest.list.life > 0 && age >= 0 && age <= v.timeout
}

// MustAsk says whether the view needs the full message: it has no list, or
// another one than the newest message is over.
func (v *View) MustAsk() bool {
	return v.list.life == 0 || !v.list.same(v.newest.list)
}

// Request returns the request to send to the aggregator when [View.MustAsk], or with each
// heartbeat: it says which list the view has.
func (v *View) Request() []byte {
	m := message{kind: kindRequest, list: v.list}
	return m.encode()
}

// Candidates returns the names of the candidates, in the order of the list, if they are known:
// not while a list is needed, and not if no message came within the time-out.
func (v *View) Candidates(now time.Time) (names []string, ok bool) {
	if v.MustAsk() || !v.fresh(now) {
		return nil, false
	}
	if v.named == nil {
		v.named = make([]string, len(v.newest.candidates))
		for i, at := range v.newest.candidates {
			v.named[i] = v.ids[at]
		}
	}
	return v.named, true
}
