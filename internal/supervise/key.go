package supervise

import (
	"crypto/sha256"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// KeyOf returns a digest of the values from which a part is built: over a reload, a part with the
// same key continues. It follows pointers and compares secrets, which printing does not, without
// revealing them. Of a function it only sees whether it is nil: what it was compiled from must be
// passed too. It panics at a channel, which no configuration contains.
func KeyOf(built ...any) string {
	var b strings.Builder
	writeText(&b, reflect.ValueOf(built))
	return fmt.Sprintf("%x", sha256.Sum256([]byte(b.String())))
}

// writeText writes v so that different values have different texts.
func writeText(b *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Invalid:
		b.WriteString("nil,")
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			b.WriteString(v.Elem().Type().String() + ":")
		}
		writeText(b, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			b.WriteString(v.Type().Field(i).Name + "=")
			writeText(b, v.Field(i))
		}
		b.WriteString(";")
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			writeText(b, v.Index(i))
		}
		b.WriteString("]")
	case reflect.Map:
		var entries []string
		for key, value := range v.Seq2() {
			var e strings.Builder
			writeText(&e, key)
			writeText(&e, value)
			entries = append(entries, e.String())
		}
		slices.Sort(entries)
		fmt.Fprintf(b, "%q}", entries)
	case reflect.Func:
		fmt.Fprintf(b, "func %t,", v.IsNil())
	case reflect.String:
		fmt.Fprintf(b, "%q,", v.String())
	case reflect.Bool:
		fmt.Fprintf(b, "%t,", v.Bool())
	case reflect.Float32, reflect.Float64:
		fmt.Fprintf(b, "%x,", math.Float64bits(v.Float()))
	default:
		switch {
		case v.CanInt():
			fmt.Fprintf(b, "%d,", v.Int())
		case v.CanUint():
			fmt.Fprintf(b, "%d,", v.Uint())
		default:
			panic("a part is built from a " + v.Kind().String())
		}
	}
}
