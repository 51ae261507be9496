package record

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
)

// Version is the version of a recording's format. A reader refuses a higher one.
const Version = 1

// maxLine bounds a line; longer ones are neither written nor read.
const maxLine = codec.MaxBytes + 64<<10

// Header is the first line of every segment.
type Header struct {
	// Recording is the Version.
	Recording int `json:"trimtab_recording"`
	// Build is the version of the program, Config the digest of its
	// configuration, "sha256:…", secrets left out.
	Build  string `json:"build"`
	Config string `json:"config"`
	// Segment counts from 1; Began is when it was opened.
	Segment int       `json:"segment"`
	Began   time.Time `json:"began"`
}

// Role says whether a line is an input, an output or a state of its step.
type Role string

// The roles.
const (
	// In is a value that the step was given, Tick a call without one.
	In   Role = "in"
	Tick Role = "tick"
	// Out is a value that the call before returned.
	Out Role = "out"
	// Begin is the start of the recording of a step, Restore a state that the
	// step was given.
	Begin   Role = "start"
	Restore Role = "restore"
)

// Line is one line of a recording.
type Line struct {
	// Received is the time passed to the step.
	Received time.Time `json:"received"`
	Stage    string    `json:"stage"`
	Role     Role      `json:"role"`
	// Fresh says, for Begin, that the step had not been called before.
	Fresh bool `json:"fresh,omitempty"`
	// Name and State are, for Restore, those of Snapshotter.
	Name  string `json:"name,omitempty"`
	State []byte `json:"state,omitempty"`
	// Lost counts the calls before this line that were not recorded.
	Lost uint64 `json:"lost,omitempty"`
	// Kind, Version and Raw are, for In and Out, those of an envelope.
	Kind    trimtab.Kind    `json:"kind,omitempty"`
	Version int             `json:"version,omitempty"`
	Raw     json.RawMessage `json:"value,omitempty"`
	// Value is Raw decoded and validated; nil for other roles.
	Value trimtab.Value `json:"-"`
}

// encode returns the line with its newline.
func (l *Line) encode() ([]byte, error) {
	if l.Value != nil {
		if err := l.Value.Validate(); err != nil {
			return nil, fmt.Errorf("record %s: %w", l.Value.Kind(), err)
		}
		raw, err := json.Marshal(l.Value)
		if err != nil {
			return nil, fmt.Errorf("record %s: %w: %w", l.Value.Kind(), trimtab.ErrInvalid, err)
		}
		l.Kind, l.Version, l.Raw = l.Value.Kind(), codec.Version, raw
	}
	b, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("record line: %w: %w", trimtab.ErrInvalid, err)
	}
	if len(b) >= maxLine {
		return nil, trimtab.Invalidf("record line: %d bytes, limit %d", len(b), maxLine)
	}
	return append(b, '\n'), nil
}

// decode reads a line. Every failure is trimtab.ErrInvalid.
func decode(b []byte) (*Line, error) {
	l := new(Line)
	if err := json.Unmarshal(b, l); err != nil {
		return nil, fmt.Errorf("read line: %w: %w", trimtab.ErrInvalid, err)
	}
	if l.Stage == "" || l.Received.IsZero() {
		return nil, trimtab.Invalidf("read line: no stage or time")
	}
	switch l.Role {
	case Tick, Begin, Restore:
		if l.Kind != "" || l.Raw != nil {
			return nil, trimtab.Invalidf("read line: %s with a value", l.Role)
		}
		return l, nil
	case In, Out:
	default:
		return nil, trimtab.Invalidf("read line: role %.40q", l.Role)
	}
	v, err := codec.DecodeValue(l.Kind, l.Version, l.Raw)
	if err != nil {
		return nil, fmt.Errorf("read line: %w", err)
	}
	l.Value = v
	return l, nil
}

// Apply passes an input line to a step of its stage as it was recorded, and returns what the step
// returns. Lines of role Out and Begin do nothing. The error says that the step refused a state.
func (l *Line) Apply(step trimtab.Step) ([]trimtab.Value, error) {
	switch l.Role {
	case In:
		return step.Step(l.Received, l.Value), nil
	case Tick:
		return step.Step(l.Received, nil), nil
	case Restore:
		s, ok := step.(trimtab.Snapshotter)
		if !ok {
			return nil, fmt.Errorf("restore %s: the step keeps no state: %w", l.Stage, trimtab.ErrUnsupported)
		}
		return nil, s.Restore(l.Name, l.State)
	}
	return nil, nil
}
