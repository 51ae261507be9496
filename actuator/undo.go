package actuator

import "encoding/json"

// UndoOf encodes the result of [Knob.Undo]. It panics if JSON cannot represent a value.
func UndoOf(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("actuator: encode undo: " + err.Error())
	}
	return b
}
