package trimtab

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/trimtab/trimtab/internal/valid"
)

// Seconds is a length of time as a JSON number of seconds, >= 0 unless a
// field says otherwise. Fields of this type end in "_s" on the wire.
type Seconds float64

// SecondsOf converts d.
func SecondsOf(d time.Duration) Seconds { return Seconds(d.Seconds()) }

// Duration converts s, saturating at the range of [time.Duration].
func (s Seconds) Duration() time.Duration {
	ns := float64(s) * float64(time.Second)
	switch {
	case ns >= math.MaxInt64:
		return math.MaxInt64
	case ns <= math.MinInt64:
		return math.MinInt64
	}
	return time.Duration(ns)
}

// Amount is how much of a resource a knob gives: cores for cpu, bytes for memory, a count for
// replicas and tasks. Unlimited is a value of its own (v1 quota -1, v2 "max"), not a large
// number. The zero Amount is 0.
type Amount struct {
	// Value is finite and >= 0; it is 0 when Unlimited.
	Value float64
	// Unlimited means that the knob sets no bound.
	Unlimited bool
}

// Units returns the bounded amount v.
func Units(v float64) Amount { return Amount{Value: v} }

// Unlimited returns the amount without bound.
func Unlimited() Amount { return Amount{Unlimited: true} }

// Less reports whether a gives strictly less than b.
func (a Amount) Less(b Amount) bool {
	if a.Unlimited || b.Unlimited {
		return !a.Unlimited
	}
	return a.Value < b.Value
}

// Equal reports whether a and b differ by at most tolerance (in the
// resource's unit, >= 0). Unlimited equals only itself.
func (a Amount) Equal(b Amount, tolerance float64) bool {
	if a.Unlimited || b.Unlimited {
		return a.Unlimited && b.Unlimited
	}
	return math.Abs(a.Value-b.Value) <= tolerance
}

// Validate refuses NaN, infinite and negative values.
func (a Amount) Validate() error {
	if a.Unlimited {
		if a.Value != 0 {
			return Invalidf("amount: unlimited with value %v", a.Value)
		}
		return nil
	}
	return valid.NonNegative("amount", a.Value)
}

// String prints the shortest decimal that is exact to a billionth, so that
// 0.1 + 0.2 reads 0.3, or "unlimited".
func (a Amount) String() string {
	if a.Unlimited {
		return "unlimited"
	}
	v := a.Value
	if v < 1e6 {
		v = math.Round(v*1e9) / 1e9
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// MarshalJSON writes a number, or "unlimited".
func (a Amount) MarshalJSON() ([]byte, error) {
	if a.Unlimited {
		return []byte(`"unlimited"`), nil
	}
	return json.Marshal(a.Value)
}

// UnmarshalJSON reads a number or "unlimited".
func (a *Amount) UnmarshalJSON(b []byte) error {
	if string(b) == `"unlimited"` {
		*a = Unlimited()
		return nil
	}
	var v float64
	if err := json.Unmarshal(b, &v); err != nil {
		return fmt.Errorf("read amount: %w", err)
	}
	*a = Units(v)
	return nil
}

// figure is a number with its name in the wire form.
type figure struct {
	name string
	v    float64
}
