package conformal

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/num"
)

// saved is the form of a snapshot.
type saved struct {
	State  state             `json:"state"`
	Models []json.RawMessage `json:"models"`
}

// Snapshot returns the reports kept, the models and their scores, sealed.
func (f *Forecaster) Snapshot() ([]byte, error) {
	out := saved{State: f.state}
	for _, m := range f.models {
		b, err := json.Marshal(m.State())
		if err != nil {
			return nil, fmt.Errorf("save %s: %w", m.Name(), err)
		}
		out.Models = append(out.Models, b)
	}
	return num.Seal(f.name, out)
}

// Restore restores a snapshot of a forecaster of the same name, horizon and
// level.
func (f *Forecaster) Restore(b []byte) error {
	var in saved
	if err := num.Unseal(f.name, b, &in); err != nil {
		return fmt.Errorf("restore forecaster: %w: %w", trimtab.ErrInvalid, err)
	}
	if in.State.Config != f.state.Config || len(in.Models) != len(f.models) {
		return trimtab.Invalidf("restore forecaster: %d models for %+v, want %d for %+v", len(in.Models), in.State.Config, len(f.models), f.state.Config)
	}
	if err := in.State.check(len(f.models)); err != nil {
		return fmt.Errorf("restore forecaster: %w", err)
	}
	models := make([]Model, len(f.models))
	for i, m := range f.models {
		models[i] = m.Clone()
		if err := json.Unmarshal(in.Models[i], models[i].State()); err != nil {
			return fmt.Errorf("restore %s: %w: %w", m.Name(), trimtab.ErrInvalid, err)
		}
		if err := models[i].Check(); err != nil {
			return fmt.Errorf("restore %s: %w", m.Name(), err)
		}
	}
	if u := in.State.Used; len(in.State.Y) > 0 && !models[u].Ready() {
		return trimtab.Invalidf("restore forecaster: %s is in use and not ready", models[u].Name())
	}
	f.state, f.models = in.State, models
	return nil
}

// check refuses what see could not have made.
func (s *state) check(models int) error {
	pending := min(s.Seen, s.Horizon)
	if len(s.Trackers) != models || s.Used < 0 || s.Gap < 0 || s.Gap > 2*MaxHorizon || s.Seen > math.MaxInt32 || s.Used >= models || len(s.Y) > window+max(window, s.Horizon) || len(s.Y) < min(s.Seen, max(window, s.Horizon)) || s.Seen < len(s.Y) ||
		!(s.Miss >= least && s.Miss <= most) || !(s.Square >= 0 && s.Square <= Greatest) {
		return trimtab.Invalidf("state: %d trackers, model %d, %d of %d reports, aim %v, error %v", len(s.Trackers), s.Used, len(s.Y), s.Seen, s.Miss, s.Square)
	}
	for _, y := range s.Y {
		if !(y >= 0 && y*y <= 2*Greatest) {
			return trimtab.Invalidf("state: report %v", y)
		}
	}
	if len(s.Given) != pending {
		return trimtab.Invalidf("state: %d bounds given for %d reports", len(s.Given), len(s.Y))
	}
	for i := range s.Trackers {
		t := &s.Trackers[i]
		if err := t.check(&s.Config); err != nil {
			return err
		}
		if len(t.Base) != len(s.Given) {
			return trimtab.Invalidf("tracker: %d pending, want %d", len(t.Base), len(s.Given))
		}
	}
	return nil
}
