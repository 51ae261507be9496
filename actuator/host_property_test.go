package actuator_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// machine is one host with several pools whose actuators are killed, restarted and
// restored in any order. It looks at all limits after every single write.
type machine struct {
	*rapid.T
	all      []*host
	capacity float64
	// base are the baselines of each pool, together.
	base []float64
	// alive pools have an actuator. Restored ones have none, and nothing to restore:
	// nobody counts what they have until they are back.
	alive, restored []bool
	sequence        uint64
	// bound is what the limits may be together: no more than the host has, or than they
	// came to when a pool was there anew and nobody could be asked; planned is
	// the pool whose plan is carried out, or -1: that may raise nothing while they are over,
	// but to what it had, as high says, when it last settled or since.
	bound   float64
	planned int
	high    []float64
	last    []bool // whether the last plan of a pool was whole
}

func newMachine(t *testing.T, r *rapid.T) *machine {
	n := rapid.IntRange(2, 3).Draw(r, "pools")
	m := &machine{T: r, planned: -1, high: make([]float64, n), last: make([]bool, n), base: make([]float64, n), alive: make([]bool, n), restored: make([]bool, n)}
	rows := make([][]trimtab.Amount, n)
	for i := range rows {
		for range rapid.IntRange(1, 2).Draw(r, "knobs") {
			v := float64(rapid.IntRange(1, 4).Draw(r, "start"))
			rows[i] = append(rows[i], units(v))
			m.base[i] += v
		}
	}
	m.capacity = float64(rapid.IntRange(4, 16).Draw(r, "cores"))
	m.all = pools(t, m.capacity, rows...)
	for i, h := range m.all {
		for _, k := range h.knobs {
			k.before = func(v trimtab.Amount) error { return m.look(k, v) }
		}
		h.config.Shared = true // what was measured bounds a pool that is alone, too
		m.open(i)
	}
	return m
}

func (m *machine) values(i int) (all []float64) {
	for _, k := range m.all[i].knobs {
		v, err := k.Read(m.all[i].t.Context())
		if err != nil {
			m.Fatal(err)
		}
		all = append(all, v.Value)
	}
	return all
}

func sum(values []float64) (s float64) {
	for _, v := range values {
		s += v
	}
	return s
}

// limits is the sum of all limits that count, and the most that they may come to, which
// is what was claimed for them.
func (m *machine) limits() (now, may float64) {
	for i := range m.all {
		if !m.restored[i] {
			has := sum(m.values(i))
			now += has
			may += max(has, m.base[i], m.high[i])
		}
	}
	return now, may
}

// look is called before each write.
func (m *machine) look(k *fileKnob, v trimtab.Amount) error {
	now, _ := m.limits()
	was, err := k.Read(context.Background())
	if err != nil {
		return err
	}
	after := now - was.Value + v.Value
	switch {
	case !was.Less(v):
	case m.planned >= 0 && after > m.capacity+0.01 && sum(m.values(m.planned))-was.Value+v.Value > m.high[m.planned]+0.01:
		m.Errorf("a plan raises the limits from %v to %v of %v cores", now, after, m.capacity)
	case after > m.bound+0.01:
		m.Errorf("the limits come to %v, at most %v were claimed, of %v cores", after, m.bound, m.capacity)
	}
	return nil
}

func (m *machine) open(i int) {
	if m.restored[i] || m.bound == 0 {
		// What nobody counted until now may bring them over the host.
		m.restored[i] = false
		_, may := m.limits()
		m.bound = max(m.capacity, may)
	}
	m.all[i].open()
	m.alive[i] = true
	m.high[i] = sum(m.values(i))
}

// begin tells that an operation begins: once they fit again, they stay within the host.
func (m *machine) begin() {
	_, may := m.limits()
	m.bound = max(m.capacity, min(m.bound, may))
}

// plan hands a random plan to a pool, which may be killed before one of its writes.
func (m *machine) plan(i int) {
	h := m.all[i]
	m.sequence++
	p := h.plan(1, m.sequence)
	p.Last = rapid.Bool().Draw(m.T, "last")
	for at, v := range m.values(i) {
		p.Actions = append(p.Actions, set(at, units(v), units(float64(rapid.IntRange(1, 8).Draw(m.T, "set")))))
	}
	dies := rapid.IntRange(0, 8).Draw(m.T, "dies before write")
	for _, k := range h.knobs {
		k.before = func(v trimtab.Amount) error {
			if dies--; dies == 0 {
				return errors.New("killed")
			}
			return m.look(k, v)
		}
	}
	m.planned = i
	h.Handle(h.t.Context(), p)
	m.planned = -1
	m.high[i] = max(m.high[i], sum(m.values(i)))
	m.last[i] = p.Last
	if dies <= 0 {
		m.kill(i)
	}
	for _, k := range h.knobs {
		k.before = func(v trimtab.Amount) error { return m.look(k, v) }
	}
}

func (m *machine) kill(i int) {
	m.all[i].crash()
	m.alive[i] = false
	state, _, err := hostfs.ReadJournal(m.all[i].config.Dir)
	if err != nil {
		m.Fatal(err)
	}
	m.restored[i] = true // unless
	for key := range state {
		if strings.HasPrefix(key, "knob/") {
			m.restored[i] = false
		}
	}
}

// restore is what a watchdog does, or `trimtab restore`.
func (m *machine) restore(i int) {
	h := m.all[i]
	m.begin()
	if _, err := actuator.Restore(h.t.Context(), h.config.Dir, func(undo []byte) (actuator.Knob, error) {
		k, err := reopen(undo)
		if err == nil {
			f := k.(*fileKnob)
			f.before = func(v trimtab.Amount) error { return m.look(f, v) }
		}
		return k, err
	}); err != nil {
		m.Fatal(err)
	}
	m.restored[i] = true
}

func (m *machine) pass(d time.Duration) {
	for _, h := range m.all {
		h.pass(d)
	}
}

func TestTheLimitsOfAllPoolsNeverRiseOverTheHostWhoeverIsKilled(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := newMachine(t, r)
		for step := range rapid.IntRange(1, 25).Draw(r, "operations") {
			i := rapid.IntRange(0, len(m.all)-1).Draw(r, "pool "+strconv.Itoa(step))
			m.pass(time.Duration(rapid.IntRange(1, 12).Draw(r, "seconds")) * time.Second)
			m.begin()
			what := rapid.IntRange(0, 9).Draw(r, "what")
			switch {
			case !m.alive[i] && what < 5:
				m.open(i)
			case !m.alive[i] && what < 8:
				m.restore(i)
			case !m.alive[i]:
			case what < 6:
				m.plan(i)
			case what < 9:
				m.all[i].Tick(t.Context())
				if m.last[i] {
					m.high[i] = 0
				}
				m.high[i] = max(m.high[i], sum(m.values(i))) // it may have had its baselines back
			default:
				m.kill(i)
			}
		}
		for i := range m.all {
			if m.alive[i] {
				m.kill(i)
			}
		}
	})
}
