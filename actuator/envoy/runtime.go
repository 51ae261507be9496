package envoy

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/adminapi"
)

// maxAnswer bounds an answer. An entry of the runtime has about 150 bytes, so 50,000 fit.
const maxAnswer = 8 << 20

// api is Envoy's admin API.
func api() adminapi.API {
	return adminapi.API{Name: "Envoy", Start: "start Envoy, or name the address of `admin` in its bootstrap", Most: maxAnswer}
}

// runtime is the part of the answer to GET /runtime on one key and its marker. All slices are as long as
// layers; "": the layer has no value.
type runtime struct {
	layers, values, marks []string
	limit                 trimtab.Amount // in force; unlimited: no layer has the key
}

// entry is one key in the answer to GET /runtime.
type entry struct {
	Values []string `json:"layer_values"`
	Final  string   `json:"final_value"`
}

// parse decodes the answer to GET /runtime: {"layers": [NAME…], "entries": {KEY: entry}}.
func parse(b []byte, key string) (r runtime, err error) {
	var all struct {
		Layers  *[]string                  `json:"layers"`
		Entries map[string]json.RawMessage `json:"entries"`
	}
	if err := json.Unmarshal(b, &all); err != nil || all.Layers == nil || all.Entries == nil {
		return runtime{}, trimtab.Invalidf("%.60q is no answer of Envoy to GET /runtime: is this its admin address?", b)
	}
	r.layers = *all.Layers
	marks, _, err := entryOf(all.Entries[marker(key)], len(r.layers))
	if err != nil {
		return runtime{}, fmt.Errorf("runtime key %s of Envoy: %w", marker(key), err)
	}
	values, final, err := entryOf(all.Entries[key], len(r.layers))
	if err == nil {
		r.limit, err = parseLimit(final)
	}
	if err != nil {
		return runtime{}, fmt.Errorf("runtime key %s of Envoy: %w", key, err)
	}
	r.marks, r.values = marks, values
	return r, nil
}

// entryOf decodes one entry; nil: Envoy lists none. The slice has n values.
func entryOf(b json.RawMessage, n int) (values []string, final string, err error) {
	if b == nil {
		return make([]string, n), "", nil
	}
	var e entry
	if err := json.Unmarshal(b, &e); err != nil {
		return nil, "", trimtab.Invalidf("read its values: %w", err)
	}
	switch {
	case len(e.Values) != n:
		return nil, "", trimtab.Invalidf("it has %d values in %d layers", len(e.Values), n)
	case e.Final == "":
		return nil, "", fmt.Errorf("it is listed without a value, as versions of Envoy 1.26 do: use another version: %w", trimtab.ErrUnsupported)
	}
	return e.Values, e.Final, nil
}

// parseLimit parses a value as Envoy does; "" is no limit.
func parseLimit(text string) (trimtab.Amount, error) {
	if text == "" {
		return trimtab.Unlimited(), nil
	}
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 32)
	if err != nil {
		return trimtab.Amount{}, trimtab.Invalidf("its value is %.40q, which Envoy takes for no limit: want a whole number of at most 4294967295", text)
	}
	return trimtab.Units(float64(n)), nil
}

// admin returns the index of the layer that has the marker; -1: none has.
func (r *runtime) admin() int {
	return slices.IndexFunc(r.marks, func(mark string) bool { return mark != "" })
}

// below returns the value of the key without the layer with that index and those after it.
func (r *runtime) below(layer int) (value string) {
	for _, v := range r.values[:max(layer, 0)] {
		if v != "" {
			value = v
		}
	}
	return value
}

// above returns an error if a layer after that index has the key, and so wins.
func (r *runtime) above(layer int) error {
	for i := len(r.layers) - 1; layer >= 0 && i > layer; i-- {
		if r.values[i] != "" {
			return fmt.Errorf("layer %.80q of Envoy's runtime sets it to %.40s and comes after the admin layer: remove the key there, or make the admin layer the last: %w", r.layers[i], r.values[i], trimtab.ErrRefused)
		}
	}
	return nil
}

// marker is the key that trimtab sets beside key. Envoy does not know it.
func marker(key string) string { return "trimtab." + key }

// modify sets keys of the admin layer in one request; an empty value removes the key.
func modify(ctx context.Context, admin string, set map[string]string) error {
	q := url.Values{}
	for key, value := range set {
		q.Set(key, value)
	}
	b, err := api().Call(ctx, admin, http.MethodPost, "/runtime_modify?"+q.Encode(), nil)
	switch {
	case err != nil && strings.Contains(err.Error(), "No admin layer"):
		return fmt.Errorf("%w: add `- name: admin` with `admin_layer: {}` as the last of layered_runtime.layers in Envoy's bootstrap, and restart it", err)
	case err == nil && strings.TrimSpace(string(b)) != "OK":
		return trimtab.Invalidf("%.60q is no answer of Envoy to POST /runtime_modify", b)
	}
	return err
}
