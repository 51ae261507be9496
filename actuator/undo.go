package actuator

import "encoding/json"

// UndoOf encodes what [Knob.Undo] returns. It panics where JSON has no form for a value.
func UndoOf(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("actuator: encode undo: " + err.Error())
	}
	return b
}
