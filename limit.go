package trimtab

import (
	"github.com/trimtab/trimtab/internal/valid"
)

// The bounds of lists and texts in one value. No stage comes near them; they limit what a
// misbehaving peer can cost its readers.
const (
	// maxInputs bounds the inputs, and the alternatives, of one decision.
	maxInputs = 256
	// maxLatencies bounds the latencies of one estimate.
	maxLatencies = 64
	// MaxShares bounds the instances of a workload whose load share an estimate has.
	MaxShares = 1000
)

// validInputs checks what a decision looked at.
func validInputs(inputs []Input) error {
	if len(inputs) > maxInputs {
		return Invalidf("%d inputs, limit %d", len(inputs), maxInputs)
	}
	text := 0
	for _, in := range inputs {
		if valid.IsFinite(in.Value) && valid.IsFinite(float64(in.Age)) {
			text += len(in.Name) + len(in.Source) + len(in.Missing)
			continue // no text is put together for an error that is not there
		}
		if err := valid.Finite("input "+in.Name, in.Value); err != nil {
			return err
		}
		return valid.Finite("age of input "+in.Name, float64(in.Age))
	}
	if text > valid.MaxText {
		return Invalidf("inputs: %d bytes of text, limit %d", text, valid.MaxText)
	}
	return nil
}
