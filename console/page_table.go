package console

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// column is the head of a column that can be sorted by.
type column struct{ Label, Href, Aria, Class string }

// Column is the head of a column: its link sorts by the key, another click the other way
// round, a third brings the usual order back. Of a list that the read model sorts, the
// key is one of view.Filter; of a table that is wholly on the page, table.Field.
func (f *frame) Column(key, label string, class ...string) column {
	c := column{Label: label, Class: strings.Join(class, " ")}
	next := key
	switch f.Sort() {
	case key:
		c.Aria, next = "ascending", "-"+key
	case "-" + key:
		c.Aria, next = "descending", ""
	}
	q := with(with(f.query, "sort", next), "offset", "")
	c.Href = "?" + q.Encode()
	return c
}

// Sort is the column and direction by which the page's address wants a table sorted.
func (f *frame) Sort() string { return f.query.Get("sort") }

// Sorted returns rows in the order that the address asks of the table, those without a
// value last. A field that they do not have leaves them as they are.
func (f *frame) Sorted(table string, rows any) any {
	key, down := strings.CutPrefix(f.Sort(), "-")
	name, field, _ := strings.Cut(key, ".")
	all := reflect.ValueOf(rows)
	if name != table || field == "" || all.Kind() != reflect.Slice {
		return rows
	}
	type ranked struct {
		row reflect.Value
		by  rank
	}
	path, order := strings.Split(field, "."), make([]ranked, all.Len())
	for i := range order {
		order[i] = ranked{all.Index(i), rankOf(all.Index(i), path)}
	}
	slices.SortStableFunc(order, func(a, b ranked) int { return a.by.compare(b.by, down) })
	out := reflect.MakeSlice(all.Type(), all.Len(), all.Len())
	for i := range order {
		out.Index(i).Set(order[i].row)
	}
	return out.Interface()
}

// rank sorts a value: by number, or by text where it has none.
type rank struct {
	number  float64
	text    string
	missing bool
}

func (a rank) compare(b rank, down bool) int {
	switch {
	case a.missing || b.missing:
		return cmp.Compare(truth(a.missing), truth(b.missing))
	case down:
		a, b = b, a
	}
	return cmp.Or(cmp.Compare(a.number, b.number), strings.Compare(a.text, b.text))
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// rankOf follows a path of exported fields and of keys of maps.
func rankOf(v reflect.Value, path []string) rank {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if len(path) > 0 {
		return rankOf(child(v, path[0]), path[1:])
	}
	if !v.IsValid() || v.Kind() == reflect.Pointer {
		return rank{missing: true}
	}
	switch of := v.Interface().(type) {
	case time.Time:
		return rank{number: float64(of.UnixNano()), missing: of.IsZero()}
	case trimtab.Amount:
		if of.Unlimited {
			return rank{number: math.Inf(1)}
		}
		return rank{number: of.Value}
	}
	switch {
	case v.CanInt():
		return rank{number: float64(v.Int())}
	case v.CanUint():
		return rank{number: float64(v.Uint())}
	case v.CanFloat():
		return rank{number: v.Float()}
	case v.Kind() == reflect.Bool:
		return rank{number: truth(v.Bool())}
	case v.Kind() == reflect.String:
		return rank{text: strings.ToLower(v.String()), missing: v.Len() == 0}
	}
	return rank{missing: true}
}

// child is a field of a struct or an entry of a map by name; the zero value where there is none.
func child(v reflect.Value, name string) (out reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if f, ok := v.Type().FieldByName(name); ok && f.IsExported() {
			out, _ = v.FieldByIndexErr(f.Index)
		}
	case reflect.Map:
		if v.Type().Key().Kind() == reflect.String {
			out = v.MapIndex(reflect.ValueOf(name).Convert(v.Type().Key()))
		}
	}
	return out
}

// spark is the SVG path of values over time in a box of 100 by 20, from 0 to the larger of most
// and the largest value; "" with too few values.
func spark(points []*float64, most float64) string {
	n := 0
	for _, p := range points {
		if p != nil {
			n++
			most = max(most, *p)
		}
	}
	if n < 3 || !(most > 0) {
		return ""
	}
	var b strings.Builder
	down := false
	for i, p := range points {
		if p == nil {
			down = false
			continue
		}
		verb := "M"
		if down {
			verb = "L"
		}
		fmt.Fprintf(&b, "%s%.1f %.1f", verb, 100*float64(i)/float64(len(points)-1), 20-19*min(1, max(0, *p/most)))
		down = true
	}
	return b.String()
}
