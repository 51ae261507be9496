package kubernetes

import "time"

// At has a knob believe what time it is.
func (l *Limit) At(now func() time.Time) { l.now = now }

// At has a knob believe what time it is.
func (s *Scale) At(now func() time.Time) { s.now = now }
