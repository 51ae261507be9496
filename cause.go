package trimtab

import (
	"fmt"

	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/internal/valid"
)

// Cause is what started a round.
type Cause struct {
	Kind codes.CauseKind `json:"kind"`
	// Ref names the alert, or the plan to apply; By who asked.
	Ref string `json:"ref,omitempty"`
	By  string `json:"by,omitempty"`
	// Workload is the one that it is about; "": all.
	Workload string `json:"workload,omitempty"`
	// Text is what else a person reads: programs read the other fields.
	Text string `json:"text,omitempty"`
}

// AnswersApply reports whether the plan of this cause answers a command to
// apply an earlier one, whose ID is Ref.
func (c Cause) AnswersApply() bool { return c.Kind == codes.CauseApply || c.Kind == codes.CauseRefused }

// String is the cause for people.
func (c Cause) String() string {
	switch {
	case c.Text != "" && c == Cause{Kind: c.Kind, Text: c.Text}:
		return c.Text
	case c.Kind == codes.CauseAlert:
		return fmt.Sprintf("alert %s of %s (%s)", c.Ref, c.Workload, c.Text)
	case c.Kind == codes.CauseLoan:
		return fmt.Sprintf("fast loop of %s: %s (%s)", c.Workload, c.Ref, c.Text)
	case c.Kind == codes.CauseAlertOver:
		return fmt.Sprintf("alert %s of %s is over (%s)", c.Ref, c.Workload, c.Text)
	case c.Kind == codes.CauseRefused:
		return fmt.Sprintf("apply %s refused: %s", c.Ref, c.Text)
	}
	s := string(c.Kind)
	for _, part := range [...]struct{ before, text string }{{" ", c.Ref}, {" of ", c.Workload}, {" by ", c.By}, {": ", c.Text}} {
		if part.text != "" {
			s += part.before + part.text
		}
	}
	return s
}

// validate bounds what a cause says.
func (c *Cause) validate(what string) error {
	return valid.Texts(what, string(c.Kind), c.Ref, c.By, c.Workload, c.Text)
}

// Binding is the constraint that stopped more.
type Binding struct {
	Kind codes.BindingKind `json:"kind"`
	// Detail is for people.
	Detail string `json:"detail,omitempty"`
}

// String is the constraint for people; "" of the zero Binding.
func (b Binding) String() string {
	kind := string(b.Kind)
	if b.Kind == codes.BindingLeftOver {
		kind = "leftover capacity"
	}
	if b.Detail == "" || kind == "" {
		return kind + b.Detail
	}
	return kind + ": " + b.Detail
}

// Held is why a workload keeps what it has.
type Held struct {
	Code codes.HeldCode `json:"code"`
	// Text is for people.
	Text string `json:"text"`
	// Input and Source name the input that is missing, where it is one.
	Input  string `json:"input,omitempty"`
	Source string `json:"source,omitempty"`
}

// String is the reason for people.
func (h Held) String() string { return h.Text }

// validate bounds what a reason says, and refuses one without a code.
func (h *Held) validate(what string) error {
	if h.Code == "" {
		return Invalidf("%.300s: held without a code", what)
	}
	return valid.Texts(what, string(h.Code), h.Text, h.Input, h.Source)
}
