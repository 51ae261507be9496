// Package schema prints the JSON Schemas of the values that the stages exchange, from the Go types,
// so that a stage can be written in another language. A test compares the committed files in
// docs/schema with its output. It validates nothing at run time: the values do that themselves.
package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"reflect"

	"github.com/invopop/jsonschema"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
	"github.com/trimtab/trimtab/topic"
)

// Generate returns one schema per JSON kind, by file name. The current directory must be the root
// of the module's sources, from which it reads comments.
func Generate() (map[string][]byte, error) {
	r := &jsonschema.Reflector{
		BaseSchemaID:              jsonschema.ID("https://trimtab.dev/schema"),
		AllowAdditionalProperties: true,
		Mapper:                    special,
	}
	if err := r.AddGoComments("github.com/trimtab/trimtab", "."); err != nil {
		return nil, fmt.Errorf("read comments of the sources: %w", err)
	}
	out := map[string][]byte{}
	for _, info := range topic.All() {
		if info.Kind == trimtab.KindSpans || info.Delivery == topic.Local {
			continue
		}
		s := r.ReflectFromType(reflect.TypeOf(info.New()).Elem())
		s.Title = fmt.Sprintf("%s, version %d", info.Kind, codec.Version)
		s.Description = fmt.Sprintf("The value of an envelope {kind, version, origin, value} on the subject trimtab.%s.<%s>, from %s to %s (%s).",
			info.Kind, info.KeyIs, info.From, info.To, info.Delivery)
		b, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("print schema of %s: %w", info.Kind, err)
		}
		out[string(info.Kind)+".json"] = append(bytes.TrimSpace(b), '\n')
	}
	return out, nil
}

// special maps the types that write themselves.
func special(t reflect.Type) *jsonschema.Schema {
	switch path.Base(t.PkgPath()) + "." + t.Name() {
	case "trimtab.Amount":
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{
			{Type: "number", Minimum: "0"}, {Const: "unlimited"},
		}, Description: "A bounded amount in the resource's unit, or unlimited."}
	case "trimtab.Seconds":
		return &jsonschema.Schema{Type: "number", Description: "Seconds."}
	case "quantile.Histogram":
		props := jsonschema.NewProperties()
		props.Set("zero", &jsonschema.Schema{Type: "number", Description: "Weight of the value 0."})
		props.Set("sum", &jsonschema.Schema{Type: "number", Description: "Sum of weight times value."})
		props.Set("buckets", &jsonschema.Schema{Type: "array",
			Description: "[i, weight]: weight in (1.02^(i-1), 1.02^i].",
			Items:       &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Type: "number"}}})
		return &jsonschema.Schema{Type: "object", Properties: props, Required: []string{"sum"}}
	}
	return nil
}
