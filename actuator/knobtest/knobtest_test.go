package knobtest

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

// pod stands for what takes effect late: a file with what was asked for, what is in
// force and what is in use.
type pod struct {
	Path   string `json:"path"`
	broken string
}

// podState is the file's content.
type podState struct {
	Asked, InForce trimtab.Amount
	Used           float64
}

func (p *pod) String() string                     { return "pod " + filepath.Base(p.Path) }
func (p *pod) Resource() string                   { return trimtab.CPU }
func (p *pod) Probe(ctx context.Context) error    { _, err := p.state(ctx); return err }
func (p *pod) MayWrite(ctx context.Context) error { return p.Probe(ctx) }
func (p *pod) Traits() actuator.Traits {
	return actuator.Traits{Effective: p.Effective, Floor: p.Floor}
}
func (p *pod) Close() error { return nil }

func (p *pod) Undo() []byte { b, _ := json.Marshal(p); return b }

func (p *pod) Nearest(a trimtab.Amount) trimtab.Amount {
	if a.Unlimited {
		return a
	}
	// What was rounded up stays where it is, though a float may be a little over it.
	return trimtab.Units(math.Ceil(100*a.Value*(1-1e-12)-1e-9) / 100)
}

func (p *pod) state(ctx context.Context) (s podState, err error) {
	if err := ctx.Err(); err != nil {
		return s, err
	}
	b, err := os.ReadFile(p.Path)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(b, &s)
}

func (p *pod) change(ctx context.Context, f func(s *podState)) error {
	s, err := p.state(ctx)
	if err != nil {
		return err
	}
	f(&s)
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(p.Path, b, 0o644)
}

func (p *pod) Read(ctx context.Context) (trimtab.Amount, error) {
	s, err := p.state(ctx)
	if p.broken == "reads what is in force" {
		return s.InForce, err
	}
	return s.Asked, err
}

func (p *pod) Effective(ctx context.Context) (trimtab.Amount, error) {
	switch p.broken {
	case "effective of a vanished pod":
		return trimtab.Units(1), nil
	case "effective writes":
		_ = p.change(ctx, func(s *podState) { s.Asked = s.InForce })
	case "effective is something else":
		s, err := p.state(ctx)
		return trimtab.Units(s.InForce.Value / 3), err
	}
	s, err := p.state(ctx)
	return s.InForce, err
}

func (p *pod) Floor(ctx context.Context) (trimtab.Amount, error) {
	s, err := p.state(ctx)
	switch p.broken {
	case "floor below use":
		return p.Nearest(trimtab.Units(s.Used / 2)), err
	case "floor between two values":
		return trimtab.Units(s.Used + 0.0025), err
	case "floor of a vanished pod":
		return trimtab.Units(1), nil
	}
	return p.Nearest(trimtab.Units(s.Used)), err
}

func (p *pod) Write(ctx context.Context, a trimtab.Amount) error {
	if err := a.Validate(); err != nil {
		return err
	}
	s, err := p.state(ctx)
	if err != nil {
		return err
	}
	low := a.Less(trimtab.Units(s.Used))
	switch p.broken {
	case "turned below the floor":
		low = false
	case "not turned up below the floor":
	case "refused after the effect":
		if low {
			err = fmt.Errorf("in use: %w", trimtab.ErrRefused)
			low = false
		}
	default:
		low = low && a.Less(s.Asked)
	}
	if low {
		return fmt.Errorf("lower %s: in use: %w", p, trimtab.ErrRefused)
	}
	if err := p.change(ctx, func(s *podState) { s.Asked = p.Nearest(a) }); err != nil {
		return err
	}
	return err
}

// newPod makes one with 1 core that uses nothing.
func newPod(t testing.TB, broken string) Fixture {
	p := &pod{Path: filepath.Join(t.TempDir(), "web"), broken: broken}
	b, err := json.Marshal(podState{Asked: trimtab.Units(1), InForce: trimtab.Units(1)})
	if err == nil {
		err = os.WriteFile(p.Path, b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	change := func(f func(s *podState)) {
		if err := p.change(t.Context(), f); err != nil {
			t.Error(err)
		}
	}
	return Fixture{
		Knob: p, Least: 0.5, Most: 16,
		Reopen: func(undo []byte) (actuator.Knob, error) {
			again := pod{broken: broken}
			if err := json.Unmarshal(undo, &again); err != nil || again.Path == "" {
				return nil, fmt.Errorf("reopen pod: %w", trimtab.ErrUnsupported)
			}
			return &again, nil
		},
		Vanish:     func() { os.Remove(p.Path) },
		Use:        func(v float64) { change(func(s *podState) { s.Used = v }) },
		TakeEffect: func() { change(func(s *podState) { s.InForce = s.Asked }) },
	}
}

func TestAKnobThatIsDelayedAndFlooredMeetsTheContractOfKnobs(t *testing.T) {
	Run(t, func(t *testing.T) Fixture { return newPod(t, "") })
}

// recorder notes what a suite finds instead of failing.
type recorder struct {
	testing.TB
	found []string
}

type stopped struct{}

func (r *recorder) Errorf(format string, args ...any) {
	r.found = append(r.found, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(stopped{})
}

// findings runs one test on a fixture.
func findings(t *testing.T, run func(testing.TB, Fixture), f Fixture) (text string) {
	r := &recorder{TB: t}
	defer func() {
		if p := recover(); p != nil && p != (stopped{}) {
			panic(p)
		}
		text = strings.Join(r.found, "\n")
	}()
	run(r, f)
	return ""
}

func TestAKnobThatBreaksItsPromiseIsFound(t *testing.T) {
	for _, c := range []struct {
		broken string
		run    func(testing.TB, Fixture)
		want   string
	}{
		{"floor below use", floored, "are in use"},
		{"floor between two values", floored, "cannot be set"},
		{"floor of a vanished pod", floored, "of a vanished target: no error"},
		{"turned below the floor", floored, "want refused"},
		{"refused after the effect", floored, "it wrote"},
		{"not turned up below the floor", floored, "in use"},
		{"reads what is in force", delayed, "asked for"},
		{"effective writes", delayed, "asking what is in force changed"},
		{"effective is something else", delayed, "is in force"},
		{"effective of a vanished pod", delayed, "of a vanished target: no error"},
	} {
		if got := findings(t, c.run, newPod(t, c.broken)); !strings.Contains(got, c.want) {
			t.Errorf("%s: found %q, want %q in it", c.broken, got, c.want)
		}
		if got := findings(t, c.run, newPod(t, "")); got != "" {
			t.Errorf("a good one: %q", got)
		}
	}
}
