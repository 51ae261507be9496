package otlp

import (
	"reflect"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/trimtab/trimtab"
)

// Limits of what waits, in bytes, about: values for the exporter, open decisions with their
// estimates, and spans for the endpoint. As one value may have 4 MiB, a limit by count is not
// enough.
const (
	maxQueuedBytes, maxOpenBytes, maxKeptBytes, maxSpanBytes = 32 << 20, 32 << 20, 32 << 20, 32 << 20
)

// weigh is about how many bytes a value uses.
func weigh(v trimtab.Value) int64 { return int64(sizeOf(reflect.ValueOf(v))) }

// sizeOf returns the size of v and of all it points to, in bytes.
func sizeOf(v reflect.Value) uintptr {
	own := v.Type().Size()
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			own += sizeOf(v.Elem())
		}
	case reflect.String:
		own += uintptr(v.Len())
	case reflect.Slice:
		own += uintptr(v.Len()) * v.Type().Elem().Size()
		if flat(v.Type().Elem()) {
			break
		}
		for i := range v.Len() {
			own += sizeOf(v.Index(i)) - v.Type().Elem().Size()
		}
	case reflect.Map:
		for each := v.MapRange(); each.Next(); {
			own += sizeOf(each.Key()) + sizeOf(each.Value())
		}
	case reflect.Struct:
		if flat(v.Type()) {
			break
		}
		for i := range v.NumField() {
			f := v.Field(i)
			own += sizeOf(f) - f.Type().Size()
		}
	}
	return own
}

// flat reports whether values of t contain no pointers to further memory.
func flat(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.String, reflect.Slice, reflect.Map:
		return false
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			return true
		}
		for i := range t.NumField() {
			if !flat(t.Field(i).Type) {
				return false
			}
		}
	}
	return true
}

// weighSpan is about how many bytes a span uses.
func weighSpan(s sdktrace.ReadOnlySpan) int64 {
	n := 500 + len(s.Name()) + weighAttributes(s.Attributes())
	for _, e := range s.Events() {
		n += 100 + len(e.Name) + weighAttributes(e.Attributes)
	}
	for _, l := range s.Links() {
		n += 100 + weighAttributes(l.Attributes)
	}
	return int64(n)
}

func weighAttributes(all []attribute.KeyValue) int {
	n := 0
	for _, a := range all {
		n += 60 + len(a.Key)
		switch a.Value.Type() {
		case attribute.STRING:
			n += len(a.Value.AsString())
		case attribute.STRINGSLICE:
			for _, s := range a.Value.AsStringSlice() {
				n += 16 + len(s)
			}
		}
	}
	return n
}
