package signals

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/trimtab/trimtab/analyzer/fingerprint"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/planner/throttle"
)

// learnedFile is the file with the state that outlives the agent: verdicts, and models of the
// services.
const learnedFile = "learned.json"

// maxLearned is the largest learnedFile that is read, in bytes.
const maxLearned = 16 << 20

// learned is the content of learnedFile.
type learned struct {
	Policy map[string][]byte `json:"policy"`
	Models []savedModel      `json:"models"`
}

// savedModel is the model of one signal of one copy of a service.
type savedModel struct {
	Workload string `json:"workload"`
	Instance string `json:"instance,omitempty"`
	Signal   string `json:"signal"`
	State    []byte `json:"state"`
}

// Save saves the learned state.
func (s *Set) Save(dir string, p *throttle.Policy) error {
	out := learned{Policy: p.Snapshot(), Models: []savedModel{}}
	for id, m := range s.models {
		b, err := m.Save()
		if err != nil {
			return fmt.Errorf("save what was learned of %s: %w", id.workload, err)
		}
		out.Models = append(out.Models, savedModel{id.workload, id.instance, id.signal, b})
	}
	b, err := json.Marshal(out)
	if err == nil {
		err = hostfs.ReplaceFile(filepath.Join(dir, learnedFile), b)
	}
	if err != nil {
		return fmt.Errorf("save what was learned of speculative tasks: %w", err)
	}
	return nil
}

// Restore restores the valid part of what Save saved. The error names the invalid part.
func (s *Set) Restore(dir string, p *throttle.Policy) error {
	b, err := hostfs.ReadFile(filepath.Join(dir, learnedFile), maxLearned)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var in learned
	if err == nil {
		err = json.Unmarshal(b, &in)
	}
	for name, state := range in.Policy {
		err = errors.Join(err, p.Restore(name, state))
	}
	for _, m := range in.Models {
		w, bad := fingerprint.Restore(m.State)
		if err = errors.Join(err, bad); bad == nil && len(s.models) < maxModels {
			s.models[modelID{copyID{m.Workload, m.Instance}, m.Signal}] = w
		}
	}
	return err
}
