package trimtab

import (
	"github.com/trimtab/trimtab/internal/valid"
)

// Phase is the stage of an instance's life. The zero Phase serves.
type Phase string

// The phases of an instance that serves nothing: it starts, or is not ready; it ends.
const (
	Unready Phase = "unready"
	Ending  Phase = "ending"
)

// KnobStatus is the state of a knob's instance, if it belongs to a cluster, and what bounds the
// knob from above.
type KnobStatus struct {
	// Node is the host's node that the instance runs on, and Has what that node gives to all
	// instances together; 0: unknown.
	Node string  `json:"node,omitempty"`
	Has  float64 `json:"has,omitempty"`
	// Phase is "" while it serves.
	Phase Phase `json:"phase,omitempty"`
	// Rollout: another version of the workload is being rolled out, so that measurements belong
	// to neither.
	Rollout bool `json:"rollout,omitempty"`
	// Most is the largest value that the cluster, or a group above, allows, and By which one; 0:
	// no bound. Caps: no more than Most is in force, whatever the knob is set to, since a control
	// group gets at most what those above it allow.
	Most float64 `json:"most,omitempty"`
	By   string  `json:"by,omitempty"`
	Caps bool    `json:"caps,omitempty"`
	// Reserved is what the scheduler keeps free of the resource for the instance: the request of its
	// container; nil: unknown, or it has none.
	Reserved *float64 `json:"reserved,omitempty"`
	// Note is what else is to be known of what the knob is set to.
	Note string `json:"note,omitempty"`
	// Left is what a quota leaves for all instances together beside what they have, and LeftBy
	// which quota; nil: there is none.
	Left   *float64 `json:"left,omitempty"`
	LeftBy string   `json:"left_by,omitempty"`
	// Starts is what one more instance begins with, by resource, for a knob that is the number of
	// instances.
	Starts map[string]float64 `json:"starts,omitempty"`
}

// maxNode bounds the name of a node and of a phase.
const maxNode = 253

func (s *KnobStatus) validate(workload string) error {
	if s == nil {
		return nil
	}
	if len(s.Node) > maxNode || len(s.Phase) > maxNode || len(s.Starts) > MaxResources {
		return Invalidf("status of %.253s: node %.40q, phase %.40q, %d resources: want names of at most %d bytes, and %d resources", workload, s.Node, s.Phase, len(s.Starts), maxNode, MaxResources)
	}
	if err := valid.Texts("status of "+workload, s.By, s.LeftBy, s.Note); err != nil {
		return err
	}
	values := []float64{s.Has, s.Most}
	for _, v := range []*float64{s.Left, s.Reserved} {
		if v != nil {
			values = append(values, *v)
		}
	}
	for name, v := range s.Starts {
		if err := valid.Named("resource of "+workload, name); err != nil {
			return err
		}
		values = append(values, v)
	}
	for _, v := range values {
		if err := valid.NonNegative("status of "+workload, v); err != nil {
			return err
		}
	}
	return nil
}

// Cap returns how much of a knob's value is in force below the limits above.
func (s *KnobStatus) Cap(a Amount) Amount {
	if s != nil && s.Caps && s.Most > 0 && Units(s.Most).Less(a) {
		return Units(s.Most)
	}
	return a
}

// Serves reports whether the instance of the knob takes load.
func (k *KnobState) Serves() bool { return k.Status == nil || k.Status.Phase == "" }
