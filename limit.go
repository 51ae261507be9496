package trimtab

// The bounds of lists and texts in one value. No stage comes near them; they limit what a
// misbehaving peer can cost its readers.
const (
	// MaxText bounds a text that tells a reason or names a place, in bytes.
	MaxText = 32 << 10
	// MaxInputs bounds the inputs, and the alternatives, of one decision.
	MaxInputs = 256
	// MaxLatencies bounds the latencies of one estimate.
	MaxLatencies = 64
	// MaxShares bounds the instances of a workload whose load share an estimate has.
	MaxShares = 1000
)

// told refuses texts that are longer than MaxText together.
func told(what string, texts ...string) error {
	n := 0
	for _, t := range texts {
		n += len(t)
	}
	if n > MaxText {
		return Invalidf("%.300s: %d bytes of text, limit %d", what, n, MaxText)
	}
	return nil
}

// validInputs checks what a decision looked at.
func validInputs(inputs []Input) error {
	if len(inputs) > MaxInputs {
		return Invalidf("%d inputs, limit %d", len(inputs), MaxInputs)
	}
	text := 0
	for _, in := range inputs {
		if isFinite(in.Value) && isFinite(float64(in.Age)) {
			text += len(in.Name) + len(in.Source) + len(in.Missing)
			continue // no text is put together for an error that is not there
		}
		if err := finite("input "+in.Name, in.Value); err != nil {
			return err
		}
		return finite("age of input "+in.Name, float64(in.Age))
	}
	if text > MaxText {
		return Invalidf("inputs: %d bytes of text, limit %d", text, MaxText)
	}
	return nil
}
