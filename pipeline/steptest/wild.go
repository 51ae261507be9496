package steptest

import (
	"math"
	"reflect"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
	"github.com/trimtab/trimtab/quantity"
)

// wild makes valid values that nobody would send: those of a life, and one of each kind, with
// some fields changed.
type wild struct {
	seeds []trimtab.Value
	// names are the texts that the seeds have.
	names []string
	// made are those that were drawn.
	made []trimtab.Value
}

func newWild(l *Life) *wild {
	w := &wild{names: []string{""}}
	for _, c := range l.calls {
		if c.in != nil {
			w.seeds = append(w.seeds, c.in)
		}
		w.seeds = append(w.seeds, c.out...)
	}
	w.seeds = append(w.seeds, examples(l.calls[0].at)...)
	seen := map[string]bool{"": true}
	for _, v := range w.seeds {
		for _, f := range fields(reflect.ValueOf(v)) {
			if f.Kind() == reflect.String && !seen[f.String()] && len(w.names) < 100 {
				seen[f.String()] = true
				w.names = append(w.names, f.String())
			}
		}
	}
	return w
}

// examples is a small value of each kind.
func examples(at time.Time) []trimtab.Value {
	knob := trimtab.KnobID{Pool: "p", Host: "h", Workload: "w", Resource: trimtab.CPU}
	var frame codec.FrameWriter
	resource, _ := frame.AddResource([]trimtab.Attr{{Key: "service.name", Value: "w"}})
	frame.Add(&trimtab.Span{TraceID: [16]byte{1}, SpanID: [8]byte{1}, Start: at.UnixNano(), End: at.UnixNano() + 1e6, Adjusted: 1, Resource: resource})
	curve := &trimtab.Curve{Load: 1, Level: 0.9, Knots: []trimtab.Knot{{Allocation: 1, Band: trimtab.Band{Lower: 0.1, Mean: 0.2, Upper: 0.3}}, {Allocation: 2, Band: trimtab.Band{Lower: 0.8, Mean: 0.9, Upper: 1}}}}
	one := 1.0
	return []trimtab.Value{
		frame.Frame(0),
		&trimtab.Sketch{Workload: "w", From: at.Add(-time.Second), To: at, Requests: 2, Spans: 2, Under: 1},
		&trimtab.Sample{Workload: "w", Quantity: quantity.Usage, Source: "cgroup", Time: at, Window: 1, Value: 1},
		&trimtab.Alert{Workload: "w", Name: "a", Group: "g", Fingerprint: "f", Firing: true, Time: at},
		&trimtab.Estimate{Workload: "w", Time: at, Curve: curve, Performance: &one, Allocation: &one, Reports: 1, Model: "m",
			Load: &trimtab.LoadForecast{Now: 1, Mean: 1, Upper: 1, Level: 0.9, Model: "m"}},
		&trimtab.Plan{Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Time: at, Lease: 1, Capacity: 1, Actions: []trimtab.Action{{KnobID: knob, Mode: trimtab.Act}}},
		&trimtab.Outcome{Pool: "p", Host: "h", Epoch: 1, Sequence: 1, Step: 1, Time: at, Results: []trimtab.Result{{KnobID: knob, Status: trimtab.Written, Known: true}}},
		&trimtab.Holding{Pool: "p", Host: "h", Time: at, Targets: []trimtab.KnobState{{KnobID: knob, Since: at, Max: 1}}},
		&trimtab.Command{Pool: "p", Verb: trimtab.Round, Time: at},
		&trimtab.Leader{Pool: "p", Epoch: 1},
	}
}

// value draws a valid value: a new one, or an earlier one again.
func (w *wild) value(t *rapid.T, now time.Time) trimtab.Value {
	if len(w.made) > 0 && rapid.Bool().Draw(t, "again") {
		return rapid.SampledFrom(w.made).Draw(t, "which")
	}
	v := w.draw(t, now)
	w.made = append(w.made, v)
	return v
}

func (w *wild) draw(t *rapid.T, now time.Time) trimtab.Value {
	seed := rapid.SampledFrom(w.seeds).Draw(t, "seed")
	v := copyOf(t, seed)
	for range rapid.IntRange(1, 5).Draw(t, "changes") {
		before := copyOf(t, v)
		if f, ok := v.(*trimtab.SpanFrame); ok {
			if at := rapid.IntRange(-1, len(f.Data)-1).Draw(t, "byte"); at >= 0 {
				f.Data[at] = rapid.Byte().Draw(t, "becomes")
			}
		} else {
			all := fields(reflect.ValueOf(v))
			if numbers := slices.DeleteFunc(slices.Clone(all), func(f reflect.Value) bool { return !f.CanFloat() }); len(numbers) > 0 && rapid.Bool().Draw(t, "a number") {
				all = numbers
			}
			w.change(t, all[rapid.IntRange(0, len(all)-1).Draw(t, "field")], now)
		}
		if v.Validate() != nil {
			v = before
		}
	}
	if _, err := codec.Encode(v, trimtab.Origin{}); err != nil {
		return seed // it could not have come
	}
	return v
}

// fields returns all settable parts of a value, at every level.
func fields(v reflect.Value) (all []reflect.Value) {
	if v.CanSet() {
		all = append(all, v)
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			all = append(all, fields(v.Elem())...)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return all
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				all = append(all, fields(v.Field(i))...)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			all = append(all, fields(v.Index(i))...)
		}
	}
	return all
}

// change sets a field to something of its type.
func (w *wild) change(t *rapid.T, f reflect.Value, now time.Time) {
	if f.Type() == reflect.TypeFor[time.Time]() {
		f.Set(reflect.ValueOf(someTime(now).Draw(t, "time")))
		return
	}
	switch f.Kind() {
	case reflect.Bool:
		f.SetBool(!f.Bool())
	case reflect.Int, reflect.Int64:
		f.SetInt(rapid.SampledFrom([]int64{0, 1, -1, 7, math.MaxInt32, math.MinInt64, math.MaxInt64}).Draw(t, "int"))
	case reflect.Uint8, reflect.Uint64:
		f.SetUint(rapid.SampledFrom([]uint64{0, 1, 2, 7, math.MaxInt64, math.MaxUint64}).Draw(t, "uint"))
	case reflect.Float64:
		f.SetFloat(rapid.SampledFrom([]float64{0, 5e-324, 1e-12, 0.5, 1, 2, 1e3, 1e15, math.MaxFloat64, math.MaxFloat64}).Draw(t, "float"))
	case reflect.String:
		f.SetString(rapid.SampledFrom(w.names).Draw(t, "text"))
	case reflect.Slice:
		w.list(t, f)
	case reflect.Map:
		w.entry(t, f, now)
	case reflect.Pointer:
		if f.IsNil() {
			f.Set(reflect.New(f.Type().Elem()))
		} else {
			f.SetZero()
		}
	}
}

// list makes a list shorter, or longer by a copy of its beginning or by a zero value.
func (w *wild) list(t *rapid.T, f reflect.Value) {
	switch more := reflect.New(f.Type().Elem()).Elem(); rapid.IntRange(0, 3).Draw(t, "list") {
	case 0:
		f.SetZero()
	case 1:
		f.Set(f.Slice(0, f.Len()/2))
	case 2:
		if f.Len() > 0 {
			more = f.Index(0)
		}
		fallthrough
	default:
		f.Set(reflect.Append(f, more))
	}
}

// entry sets one entry of a map.
func (w *wild) entry(t *rapid.T, f reflect.Value, now time.Time) {
	if f.IsNil() {
		f.Set(reflect.MakeMap(f.Type()))
	}
	v := reflect.New(f.Type().Elem()).Elem()
	for _, part := range fields(v) {
		w.change(t, part, now)
	}
	key := reflect.ValueOf(rapid.SampledFrom(w.names).Draw(t, "key")).Convert(f.Type().Key())
	f.SetMapIndex(key, v)
}

// someTime is near now as a rule.
func someTime(now time.Time) *rapid.Generator[time.Time] {
	return rapid.SampledFrom([]time.Time{now, now.Add(-time.Nanosecond), now.Add(time.Nanosecond), now.Add(time.Second), now.Add(-time.Second), now.Add(-time.Hour),
		now.Add(time.Hour), now.AddDate(-100, 0, 0), now.AddDate(100, 0, 0), time.Unix(0, 0).UTC(), time.Unix(1<<37, 0).UTC(), {}})
}
