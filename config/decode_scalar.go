package config

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// isSecret reports whether values of t must not be shown.
func isSecret(t reflect.Type) bool { return t.Kind() == reflect.String && t.Name() == "Secret" }

// scalarText returns the text of a scalar as it is in the file.
func scalarText(n ast.Node) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return strings.TrimRight(n.Value.Value, "\n")
	}
	if t := n.GetToken(); t != nil {
		return t.Value
	}
	return ""
}

func isText(n ast.Node) bool {
	switch n.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		return true
	}
	return false
}

func isNumber(n ast.Node) bool {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return true
	}
	return false
}

// scalar decodes n into v when v is of a scalar type, and reports whether it is.
func (d *decoder) scalar(path string, n ast.Node, v reflect.Value) bool {
	switch target := v.Addr().Interface().(type) {
	case *time.Duration:
		d.duration(path, n, target)
		return true
	case *Bytes:
		d.bytes(path, n, target)
		return true
	case *Quantity:
		if q, ok := quantityOf(scalarText(n)); ok {
			*target = Quantity(q)
			return true
		}
		d.report(d.at[path], fmt.Sprintf("%s is %s, want a number or a quantity", lastOf(path), d.shown(n)), `write 0.05, "0.05" or 50m`)
		return true
	case *Values:
		if _, list := n.(*ast.SequenceNode); list {
			return false
		}
		var s string
		d.text(path, n, reflect.ValueOf(&s).Elem())
		*target = Values{s}
		return true
	}
	switch v.Kind() {
	case reflect.String:
		d.text(path, n, v)
	case reflect.Float64:
		d.float(path, n, v)
	case reflect.Int, reflect.Int64, reflect.Uint16:
		d.integer(path, n, v)
	case reflect.Bool:
		b, ok := n.(*ast.BoolNode)
		if !ok {
			d.report(d.at[path], fmt.Sprintf("%s is %s, want true or false", lastOf(path), d.shown(n)), "write true or false, without quotes")
			return true
		}
		v.SetBool(b.Value)
	case reflect.Interface:
		v.Set(reflect.ValueOf(scalarText(n)))
	default:
		return false
	}
	return true
}

// shown quotes a scalar for a message.
func (d *decoder) shown(n ast.Node) string {
	if isText(n) {
		return strconv.Quote(clip(scalarText(n)))
	}
	return describe(n)
}

func (d *decoder) text(path string, n ast.Node, v reflect.Value) {
	_, boolean := n.(*ast.BoolNode)
	if !isText(n) && !isNumber(n) && !boolean {
		d.report(d.at[path], fmt.Sprintf("%s is %s, want a text", lastOf(path), describe(n)), "write "+lastOf(path)+": text")
		return
	}
	v.SetString(scalarText(n))
}

// plainNumber reads a scalar that is a number by the core schema of YAML 1.2: 8, 010 (ten),
// 0x1F, 0o17, .5, 1e9. The parser takes one with an exponent and no point for a text.
func plainNumber(n ast.Node) (v float64, ok bool) {
	t := n.GetToken()
	if t == nil || !isNumber(n) && t.Type != token.StringType {
		return 0, false
	}
	text := strings.ReplaceAll(t.Value, "_", "")
	for prefix, base := range map[string]int{"0x": 16, "0o": 8} {
		if digits, found := strings.CutPrefix(text, prefix); found {
			i, err := strconv.ParseUint(digits, base, 63)
			return float64(i), err == nil
		}
	}
	if text == "" || strings.Trim(text, "0123456789+-.eE") != "" {
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && !math.IsInf(v, 0)
}

func (d *decoder) float(path string, n ast.Node, v reflect.Value) {
	text := scalarText(n)
	switch n.(type) {
	case *ast.InfinityNode, *ast.NanNode:
		d.report(d.at[path], fmt.Sprintf("%s is %s, want a finite number", lastOf(path), text), "write a number, or remove the key for its default")
		return
	}
	if x, ok := plainNumber(n); ok {
		v.SetFloat(x)
		return
	}
	hint := numberHint(text)
	if x, err := strconv.ParseFloat(text, 64); isText(n) && err == nil && !math.IsInf(x, 0) && !math.IsNaN(x) {
		hint = "remove the quotes: " + text
	}
	d.report(d.at[path], fmt.Sprintf("%s is %s, want a number", lastOf(path), d.shown(n)), hint)
}

// rounded prints a number without the digits that its binary representation adds.
func rounded(x float64) string { return strconv.FormatFloat(x, 'g', 12, 64) }

// numberHint says what to write for a number with something behind it.
func numberHint(text string) string {
	end := strings.LastIndexAny(text, "0123456789") + 1
	x, err := strconv.ParseFloat(text[:end], 64)
	if err != nil || math.IsInf(x, 0) {
		return "write a plain number, such as 0.5 or 8"
	}
	switch unit := strings.ToLower(strings.TrimSpace(text[end:])); unit {
	case "%":
		return fmt.Sprintf("write a share of 1: %s is %s", clip(text), rounded(x/100))
	case "m":
		return fmt.Sprintf("write cores, not millicores: %s is %s", clip(text), rounded(x/1000))
	case "core", "cores", "cpu", "cpus":
		return fmt.Sprintf("write the number alone: %v", x)
	}
	return "write a plain number, such as 0.5 or 8"
}

func (d *decoder) integer(path string, n ast.Node, v reflect.Value) {
	x, ok := plainNumber(n)
	if ok && x == math.Trunc(x) && math.Abs(x) < 1<<53 {
		if v.CanInt() && !v.OverflowInt(int64(x)) {
			v.SetInt(int64(x))
			return
		}
		if v.CanUint() && x >= 0 && !v.OverflowUint(uint64(x)) {
			v.SetUint(uint64(x))
			return
		}
	}
	d.report(d.at[path], fmt.Sprintf("%s is %s, want a whole number", lastOf(path), d.shown(n)), wholeHint(strings.ReplaceAll(scalarText(n), "_", "")))
}

// wholeHint says what to write for a whole number with something around it.
func wholeHint(text string) string {
	end := strings.LastIndexAny(text, "0123456789") + 1
	if n, err := strconv.Atoi(text[:end]); err == nil && len(text) < end+8 {
		return fmt.Sprintf("write the number alone: %d", n)
	}
	if x, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(x) < 1e9 {
		return fmt.Sprintf("write a whole number, such as %d", int(math.Ceil(x)))
	}
	return "write digits only, such as 16"
}

func (d *decoder) duration(path string, n ast.Node, target *time.Duration) {
	text := scalarText(n)
	if isText(n) {
		if x, err := time.ParseDuration(text); err == nil {
			*target = x
			return
		}
	}
	hint := "write a number with a unit, such as 200ms, 30s, 5m or 1h30m"
	x, numeric := plainNumber(n)
	switch {
	case isNumber(n):
		hint = fmt.Sprintf("add a unit: %ss or %sms", clip(text), clip(text))
	case numeric:
		hint = fmt.Sprintf("add a unit: %ss or %sms", rounded(x), rounded(x))
	default:
		if short, ok := shortDuration(text); ok {
			hint = fmt.Sprintf("write %s", short)
		}
	}
	d.report(d.at[path], fmt.Sprintf("%s is %s, want a duration", lastOf(path), d.shown(n)), hint)
}

// shortDuration converts a duration such as "2 days" or "5 min" into one such as 48h or 5m.
func shortDuration(text string) (string, bool) {
	end := strings.LastIndexAny(text, "0123456789") + 1
	x, err := strconv.ParseFloat(text[:end], 64)
	units := map[string]time.Duration{
		"milliseconds": time.Millisecond, "millis": time.Millisecond, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second, "s": time.Second,
		"min": time.Minute, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute, "m": time.Minute, "hour": time.Hour, "hours": time.Hour, "h": time.Hour,
		"d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour, "ms": time.Millisecond,
	}
	unit, known := units[strings.ToLower(strings.TrimSpace(text[end:]))]
	if err != nil || !known || math.Abs(x*float64(unit)) > math.MaxInt64/2 {
		return "", false
	}
	return short(time.Duration(x * float64(unit))), true
}

func (d *decoder) bytes(path string, n ast.Node, target *Bytes) {
	if x, ok := plainNumber(n); ok && x == math.Trunc(x) && x >= 0 && x < 1<<53 { // 0x40000000 too
		*target = Bytes(x)
		return
	}
	if isText(n) || isNumber(n) {
		if b, ok := parseBytes(scalarText(n)); ok {
			*target = b
			return
		}
	}
	d.report(d.at[path], fmt.Sprintf("%s is %s, want a size", lastOf(path), d.shown(n)), sizeHint(scalarText(n)))
}

// sizeHint says how a size is written that was written as Kubernetes or people do.
func sizeHint(text string) string {
	end := strings.LastIndexAny(text, "0123456789") + 1
	digits, unit := strings.TrimSpace(text[:end]), strings.ToLower(strings.TrimSpace(text[end:]))
	units := map[string]string{
		"ki": "KiB", "mi": "MiB", "gi": "GiB", "ti": "TiB", "k": "kB", "m": "MB", "g": "GB", "t": "TB", "kb": "kB", "mb": "MB", "gb": "GB", "tb": "TB",
		"megabyte": "MB", "megabytes": "MB", "gigabyte": "GB", "gigabytes": "GB", "gig": "GB", "gigs": "GB", "meg": "MB", "megs": "MB",
	}
	if known := units[unit]; known != "" {
		if _, ok := parseBytes(digits + known); ok {
			return "write " + digits + known
		}
	}
	return "write a number with a unit, such as 64MiB or 1GiB"
}
